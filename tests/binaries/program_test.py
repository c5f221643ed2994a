import logging
import pathlib
import signal
import sys
import time

import pytest

from binaries import dcco
from binaries import sweep
from binaries.config import help_text
from binaries.launching import program
from tests.binaries import launch

pytestmark = pytest.mark.forks


def _raise(error):
  raise error


def test_help_begins_with_the_program_s_own_flags():
  text = help_text.build(sweep, '')
  assert text.index('--seeds') < text.index('--task')


@pytest.mark.parametrize('name', ['sweep', 'compare', 'dcco', 'evaluate', 'partition'])
def test_help_waits_for_no_library_that_takes_long_to_import(name):
  code = f"""
import sys
from binaries.config import help_text
from binaries import {name}
assert help_text.build({name}, '')
print(*{{'tensorflow', 'numpy', 'pandas', 'matplotlib', 'tff_ssl.algorithms'}} & {{
  *sys.modules
}})
"""
  assert launch.python(code, check=True).stdout == '\n'


# How it is asked for, and what it lists: command_line_test.
@pytest.mark.parametrize(('arguments', 'status'), [(['--help'], 0), (['help'], 1)])
def test_help_is_what_ends_a_program(monkeypatch, capsys, arguments, status):
  monkeypatch.setattr(sys, 'argv', ['binaries/dcco.py', *arguments])
  monkeypatch.setattr(program.allocator, 'keep_freed_memory', lambda: None)
  # That would be the end of the tests.
  monkeypatch.setattr(program, 'end', _raise)
  monkeypatch.setattr(dcco, 'main', pytest.fail)
  # It needs stderr's own file, which pytest has replaced.
  monkeypatch.setattr(program.faulthandler, 'enable', lambda: None)
  with pytest.raises(SystemExit) as ended:
    program.run('dcco')
  assert ended.value.code == status
  shown = capsys.readouterr()
  assert ('  --run_dir\n' in shown.out) == (status == 0)
  assert ('is no flag' in shown.err) == (status == 1)


_STOPS = """
import os, signal, sys
sys.argv = {argv}
from binaries.launching import stopping
try:
  os.kill(os.getpid(), signal.{name})
except KeyboardInterrupt as stopped:
  sys.exit(f'raised {{stopped.args}}')
"""
# A child for each line that a program's start, work and end go through.
_STOPS_ANYWHERE = """
import os, re, signal, sys, tempfile, traceback, types
sys.argv = ['-m']
from binaries.launching import program, stopping
from binaries import dcco
sys.modules['binaries.idle'] = idle = types.ModuleType('idle')
idle.PROGRAM, idle.main = dcco.PROGRAM, lambda config: None
# Children need not import what it does.
program.work(idle, ['--run_dir=x'])
files = (program.__file__, stopping.__file__)

def live(number, place, flags):
  def trace(frame, event, argument):
    nonlocal place
    if frame.f_code.co_filename not in files:
      return None
    place -= 1
    if not place:
      sys.settrace(None)
      os.kill(os.getpid(), number)
    return trace
  sys.argv = ['idle', *flags]
  sys.settrace(trace)
  program.run('idle')

for flags in (['--run_dir=x'], []):
  for place in range(1, 1000):
    number = (signal.SIGINT, signal.SIGTERM)[place % 2]
    with tempfile.TemporaryFile() as log:
      if not (child := os.fork()):
        os.dup2(log.fileno(), 2)
        try:
          live(number, place, flags)
        except BaseException:
          traceback.print_exc()
        os._exit(99)
      status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
      log.seek(0)
      said = log.read().decode()
    if status == (not flags):
      break
    # What was wrong before is said too.
    lines = [line for line in said.splitlines() if line[:6] not in ('', 'Error:')]
    assert status == 128 + number, (number, place, flags, status, said)
    assert len(lines) == 1 and lines[0].startswith('stopped'), (place, flags, said)
  assert place > 40, place
"""


@pytest.mark.parametrize(
  ('argv', 'name', 'expected'),
  [
    (['-m'], 'SIGINT', (130, 'stopped before it began: the same command starts')),
    (['-m'], 'SIGTERM', (143, 'stopped before it began: the same command starts')),
    # Who imports programs has handlers of their own.
    (['x'], 'SIGTERM', (-15, '')),
    (['x'], 'SIGINT', (1, 'raised ()')),
  ],
)
def test_signals_before_the_program_begins(argv, name, expected):
  code = _STOPS.format(argv=argv, name=name)
  ended = launch.python(code, preexec_fn=launch.heed_ctrl_c)
  assert ended.returncode == expected[0]
  assert ended.stderr.strip().startswith(expected[1])
  assert ended.stderr.strip().count('\n') == 0


def test_a_signal_at_any_line_of_the_start_and_the_end_is_one_line():
  ended = launch.python(_STOPS_ANYWHERE, preexec_fn=launch.heed_ctrl_c)
  assert ended.returncode == 0, ended.stderr


def test_ctrl_c_while_it_imports_is_one_line(tmp_path):
  process = launch.start('dcco', f'--run_dir={tmp_path}/run')
  maps = pathlib.Path(f'/proc/{process.pid}/maps')
  while process.poll() is None and 'tensorflow' not in maps.read_text():
    time.sleep(0.01)
  process.send_signal(signal.SIGINT)
  ended = launch.end(process, tmp_path)
  assert ended.status == 130
  assert ended.stderr.strip().startswith('stopped')
  assert ended.stderr.strip().count('\n') == 0


@pytest.mark.parametrize(
  ('path', 'level', 'message', 'told'),
  [
    ('site/tensorflow_datasets/core/reader.py', logging.INFO, 'Creating a', False),
    ('site/tensorflow_datasets/core/reader.py', logging.WARNING, 'Damaged', True),
    ('tasks/cache.py', logging.INFO, 'made', True),
    ('site/tensorflow_federated/x.py', logging.WARNING, 'retryable gRPC error', False),
  ],
)
def test_lines_of_libraries_that_say_nothing_are_left_out(path, level, message, told):
  record = logging.LogRecord('absl', level, path, 1, message, (), None)
  assert program.is_for_users(record) == told


@pytest.mark.parametrize(
  ('how', 'said'),
  [
    ('another', 'stopped: the same command resumes it'),
    ('lost', 'stopped: nothing unfinished was written'),
  ],
)
def test_a_signal_that_c_loses_or_makes_another_error_of_is_one_line(how, said):
  """As of a property that TensorFlow reads while it traces, and in a destructor."""
  code = f"""
import os, signal, sys, time
sys.argv = ['-m']
from binaries.launching import program
class Dying:
  def __del__(self):
    os.kill(os.getpid(), signal.SIGTERM)
def lost():
  Dying()
  time.sleep(60)
def another():
  try:
    os.kill(os.getpid(), signal.SIGTERM)
  except KeyboardInterrupt:
    pass
  raise AttributeError('there is no _type_spec')
program.run_checked({how}, resumes={how == 'another'})
"""
  process = launch.python(code)
  assert process.returncode == 143
  assert process.stderr.strip() == said


@pytest.mark.parametrize(
  ('message', 'sentence'),
  [
    ('rounds is 0; it must be\n positive', 'rounds is 0; it must be positive.'),
    ('there is no flag --round.', 'there is no flag --round.'),
    ('did you mean --rounds?', 'did you mean --rounds?'),
  ],
)
def test_an_error_is_one_line_that_ends_as_a_sentence(capsys, message, sentence):
  def wrong():
    raise ValueError(message)

  with pytest.raises(SystemExit) as ended:
    program.run_checked(wrong)
  assert ended.value.code == 1
  assert capsys.readouterr().err == f'Error: {sentence}\n'
