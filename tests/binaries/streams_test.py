"""Standard streams that are closed, and what programs write to them."""

import os
import subprocess
import sys

import pytest

from tests.binaries import launch

_WRITES = """
import os, sys
from binaries.launching import streams
streams.fill()
streams.make_inert()
streams.make_inert()
# As libraries do, which write to numbers.
file = open({path!r}, 'w')
print('out', flush=True)
print('err', file=sys.stderr, flush=True)
os.write(1, b'1')
os.write(2, b'2')
sys.exit(len(sys.stdin.read()))
"""

# The beginning of a program without flags.
_PROGRAM = """
import dataclasses, sys
from binaries.launching import program
@dataclasses.dataclass(frozen=True)
class Options:
  pass
"""


@pytest.mark.parametrize('closed', [(0,), (1,), (2,), (0, 1, 2)])
def test_no_file_takes_the_place_of_a_closed_stream(tmp_path, closed):
  path = tmp_path / 'file'
  ended = launch.python(
    _WRITES.format(path=str(path)),
    input='',
    preexec_fn=lambda: [os.close(number) for number in closed],
  )
  assert ended.returncode == 0
  assert ended.stdout == ('' if 1 in closed else 'out\n1')
  assert ended.stderr == ('' if 2 in closed else 'err\n2')
  assert path.read_text() == ''


@pytest.mark.parametrize(
  'last', ['print("x", flush=True)', 'print("x")', 'print("x", file=sys.stderr)']
)
def test_without_a_reader_a_program_ends_with_its_own_status(last):
  """Whether it sees that in the middle, or only at its end."""
  code = f"""
{_PROGRAM}
def main(options):
  sys.stdin.read()
  {last}
program.run_module('__main__')
"""
  process = subprocess.Popen(
    [sys.executable, '-c', code],
    cwd=launch.ROOT,
    stdin=subprocess.PIPE,
    stdout=subprocess.PIPE,
    stderr=subprocess.PIPE,
  )
  for stream in (process.stdout, process.stderr):
    stream.close()
  process.stdin.close()
  assert process.wait() == 120


def test_names_of_strangers_give_no_orders_to_a_terminal():
  # The last would end a program: the name of a file that is not UTF-8.
  name = '\x1b[2J\u202egnp.exe\x9b1m\udce4'
  code = f"""
{_PROGRAM}
from absl import logging
def main(options):
  print('ok\\tok', {name!r})
  print({name!r}, file=sys.stderr)
  logging.warning('%s', {name!r})
  raise ValueError({name!r} + ' is\\n bad')
program.run_module('__main__')
"""
  strict = {**os.environ, 'PYTHONIOENCODING': 'utf-8:strict'}
  ended = launch.python(code, env=strict)
  shown = r'\x1b[2J\u202egnp.exe\x9b1m\udce4'
  assert ended.stdout == f'ok\tok {shown}\n'
  first, logged, last = ended.stderr.splitlines()
  assert first == shown
  assert logged.endswith(f'] {shown}')
  assert last == f'Error: {shown} is bad.'
  assert ended.returncode == 1
