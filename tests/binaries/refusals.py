"""What a binary says to wrong command lines, all of them in one process of its own.

A process takes seconds to start; and a binary whose flags have the names of another's,
with other defaults, must not be imported beside it.
"""

from collections.abc import Iterable
import importlib
import json
import subprocess
import sys

from tests.binaries import in_process
from tests.binaries import launch


def of(binary: str, lines: Iterable[str]) -> dict[str, str]:
  """Returns what `python -m binaries.BINARY` would say, '' where it would run."""
  process = subprocess.run(
    [sys.executable, '-m', __name__, binary],
    cwd=launch.ROOT,
    input=json.dumps(list(lines)),
    stdout=subprocess.PIPE,
    text=True,
    timeout=launch.SECONDS,
    check=True,
  )
  said: dict[str, str] = json.loads(process.stdout.splitlines()[-1])
  return said


def main() -> None:
  """Calls a binary's `main` with each of the lines that are in stdin."""
  binary = importlib.import_module(f'binaries.{sys.argv[1]}')
  said = {}
  for line in json.load(sys.stdin):
    said[line] = ''
    try:
      in_process.call(binary, *line.split())
    except (ValueError, OSError) as error:
      said[line] = str(error)
  print(json.dumps(said))


if __name__ == '__main__':
  main()
