"""A program that leaves a file with its number, and sleeps."""

import os
import pathlib
import sys
import time

if __name__ == '__main__':
  print('begun', file=sys.stderr, flush=True)
  pathlib.Path(sys.argv[1], f'{os.getpid()}.pid').touch()
  time.sleep(600)
