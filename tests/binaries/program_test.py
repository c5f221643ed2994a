import logging
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

import pytest

from binaries import partition
from binaries.launching import program
from tests.binaries import launch

pytestmark = pytest.mark.forks


def test_help_lists_the_flags_of_the_program(tmp_path):
  ended = launch.end(launch.start('dcco', '--help'), tmp_path)
  assert (ended.status, ended.stderr) == (0, '')
  assert ended.stdout.startswith('Pretrains an encoder with DCCO')
  assert 'Rounds between checkpoints' in ended.stdout
  listed = re.findall(r'^  --(\w+)', ended.stdout, re.MULTILINE)
  assert len(set(listed)) == len(listed)
  # Neither the flags of TFF and absl, nor those that no method of the program uses.
  assert not {'verbosity', 'logtostderr', 'tfds_debug', 'labels'} & set(listed)


_STOPS = """
import os, signal, sys
sys.argv = {argv}
from binaries.launching import stopping
{begin}
try:
  os.kill(os.getpid(), signal.{name})
except KeyboardInterrupt as stopped:
  sys.exit(f'raised {{stopped.args}}')
"""


@pytest.mark.parametrize(
  ('argv', 'begin', 'name', 'expected'),
  [
    (['-m'], '', 'SIGINT', (130, 'stopped before it began: the same command starts')),
    (['-m'], '', 'SIGTERM', (143, 'stopped before it began: the same command starts')),
    (['-m'], 'stopping.as_it_begins()', 'SIGINT', (1, 'raised (2,)')),
    (['-m'], 'stopping.as_it_begins()', 'SIGTERM', (1, 'raised (15,)')),
    # Who imports programs has handlers of their own.
    (['x'], 'stopping.as_it_begins()', 'SIGTERM', (-15, '')),
    (['x'], '', 'SIGINT', (1, 'raised ()')),
  ],
)
def test_signals_before_the_program_begins(argv, begin, name, expected):
  code = _STOPS.format(argv=argv, begin=begin, name=name)
  ended = subprocess.run(
    [sys.executable, '-c', code],
    cwd=launch.ROOT,
    capture_output=True,
    text=True,
    preexec_fn=launch.heed_ctrl_c,
  )
  assert ended.returncode == expected[0]
  assert ended.stderr.strip().startswith(expected[1])
  assert ended.stderr.strip().count('\n') == 0


def test_unencodable_characters_are_printed_as_escapes():
  """As the name of a file that is not UTF-8, which would end the program."""
  code = "def main():\n  print('\\udce4')\n" + launch.RUN_MAIN
  ended = subprocess.run(
    [sys.executable, '-c', code],
    cwd=launch.ROOT,
    env={**os.environ, 'PYTHONIOENCODING': 'utf-8:strict'},
    capture_output=True,
    text=True,
    check=True,
  )
  assert ended.stdout == '\\udce4\n'


def test_ctrl_c_while_it_imports_is_one_line(tmp_path):
  process = launch.start('dcco', f'--run_dir={tmp_path}/run')
  maps = pathlib.Path(f'/proc/{process.pid}/maps')
  while process.poll() is None and 'tensorflow' not in maps.read_text():
    time.sleep(0.01)
  process.send_signal(signal.SIGINT)
  ended = launch.end(process, tmp_path)
  assert ended.status == 130
  assert ended.stderr.strip() == 'stopped: the same command resumes it'
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


def test_a_signal_that_c_makes_another_error_of_is_one_line():
  """As of a property that TensorFlow reads while it traces."""
  code = """
import os, signal, sys
sys.argv = ['-m']
from binaries.launching import program, stopping
stopping.as_it_begins()
def main():
  try:
    os.kill(os.getpid(), signal.SIGTERM)
  except KeyboardInterrupt:
    pass
  raise AttributeError('there is no _type_spec')
"""
  code += launch.RUN_MAIN
  process = subprocess.run(
    [sys.executable, '-c', code], cwd=launch.ROOT, capture_output=True, text=True
  )
  assert process.returncode == 143
  assert process.stderr.strip() == 'stopped: the same command resumes it'


def test_sigterm_before_the_rounds_is_one_line(monkeypatch, capsys):
  def stopped(_):
    raise KeyboardInterrupt(signal.SIGTERM)

  monkeypatch.setattr(partition, 'main', stopped)
  with pytest.raises(SystemExit) as ended:
    program.start(partition, ['test', '--task=digits'])
  assert ended.value.code == 143
  assert capsys.readouterr().err.strip() == 'stopped: the same command resumes it'
