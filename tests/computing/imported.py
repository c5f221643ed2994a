"""A program that prints whether sessions have own threads, and the environment."""

import os

if __name__ == '__main__':
  before = dict(os.environ)
  from tff_ssl.computing import sessions

  print(sessions.OWN_THREADS, dict(os.environ) == before)
