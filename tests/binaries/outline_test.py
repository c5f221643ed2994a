"""Recorded flags: as the flags are, and told without TensorFlow."""

import ast
import os
import pathlib
import subprocess
import sys

from absl import flags
import pytest

import binaries
from binaries.flags import outline
from binaries.flags import parsing
from binaries.methods import outlines

_BUILT = outlines.build()


@pytest.mark.parametrize('program', _BUILT)
def test_recorded_outlines_match_the_programs(program):
  path = outline.path_of(program)
  assert path.read_text() == _BUILT[program], 'run `make outlines`'


def test_nothing_else_is_recorded():
  assert {path.stem for path in outline.path_of('*').parent.iterdir()} == set(_BUILT)


@pytest.fixture(scope='module')
def run(tmp_path_factory):
  """Runs a program where TensorFlow cannot be imported; returns how it ended."""
  without = tmp_path_factory.mktemp('without')
  for name in ('tensorflow', 'tensorflow_federated'):
    (without / f'{name}.py').write_text('raise SystemExit("TensorFlow is imported")')

  def end(*arguments):
    command = [sys.executable, '-m', *arguments]
    environment = {**os.environ, 'PYTHONPATH': str(without)}
    ended = subprocess.run(
      command, capture_output=True, text=True, env=environment, check=False
    )
    return ended.returncode, ended.stdout, ended.stderr.strip()

  return end


@pytest.mark.parametrize('program', ['dcco', 'sweep'])
def test_help_needs_no_tensorflow(run, program):
  status, shown, said = run(f'binaries.{program}', '--task=digits', '--help')
  assert (status, said) == (0, '')
  assert shown.startswith(sys.modules[f'binaries.{program}'].__doc__.strip()[:40])
  assert '\n  --rounds: ' in shown


def test_every_program_says_its_help_without_tensorflow(run):
  folder = pathlib.Path(binaries.__file__).parent
  programs = {path.stem for path in folder.glob('*.py')} - {'__init__'}
  assert {'benchmark', 'worker'} < programs
  for program in programs:
    doc = ast.get_docstring(ast.parse((folder / f'{program}.py').read_text()))
    status, shown, said = run(f'binaries.{program}', '--help')
    assert (status, said) == (0, ''), program
    assert shown.startswith(doc), program


@pytest.mark.parametrize(
  ('argument', 'said'),
  [
    ('--rounds=x', '--rounds=x: it must be a whole number of at least 1.'),
    ('--rounds=0', '--rounds=0: it must be a whole number of at least 1.'),
    ('--task=mnist', '--task=mnist: it must be one of digits, '),
    ('--download=perhaps', '--download=perhaps: it must be true or false.'),
    (
      '--server_learning_rate=fast',
      '--server_learning_rate=fast: it must be a number.',
    ),
    ('--roundz=3', 'There is no flag --roundz; did you mean --rounds?'),
    ('--qqq', 'There is no flag --qqq; --help lists all flags.'),
  ],
)
def test_malformed_flags_are_reported_as_by_absl(run, capsys, argument, said):
  status, shown, found = run('binaries.dcco', argument)
  assert (status, shown) == (1, '')
  assert found.startswith(f'Error: {said}') and '\n' not in found
  known = flags.FLAGS
  offered = [name for name in known if name in _BUILT['dcco']]
  with pytest.raises(SystemExit):
    parsing.parse(['dcco', argument], offered, _copy(known))
  assert capsys.readouterr().err.strip() == found


@pytest.mark.parametrize(
  ('command', 'said'),
  [
    ('export', '--run is not given; it must name the folder of a run.'),
    ('export --run=runs/a --to=keras', '--out is not given; it must name a folder.'),
    (
      'embed -run runs/a --out=b',
      '--images is not given; it must name a folder or .tar',
    ),
    ('evaluate --baselines', '--run is not given; it must name the folder of a run.'),
    ('audit --', '--run is not given; it must name the folder of a run.'),
    # What is malformed is said first.
    ('export --classifier=perhaps', '--classifier=perhaps: it must be true or false.'),
  ],
)
def test_required_flags_are_checked_without_tensorflow(run, command, said):
  status, shown, found = run(*f'binaries.{command}'.split())
  assert (status, shown) == (1, '')
  assert found.startswith(f'Error: {said}') and '\n' not in found


@pytest.mark.parametrize(
  'arguments',
  [['--run=runs/a', '--out=b'], ['-run', 'a', '--out', 'b'], ['--flagfile=flags.txt']],
)
def test_paths_that_may_exist_are_left_to_the_program(arguments):
  assert outline.look('export', arguments) is None


def _copy(known):
  """Flags of their own, for a value that is parsed stays."""
  copied = flags.FlagValues()
  copied.append_flag_values(known)
  return copied


@pytest.mark.parametrize(
  'arguments',
  [
    [],
    ['--rounds', '3'],
    ['--norounds'],
    ['--nodownload', '--task=digits'],
    ['--data_dir=~/x', '--label_fractions=0.1,1'],
    # Of absl, of another program of ours, and what is behind the end of the flags.
    ['--verbosity=1', '--tau=0.5', '--', '--rounds=x'],
  ],
)
def test_wellformed_flags_are_left_to_the_program(arguments):
  assert outline.look('dcco', arguments) is None


def test_of_a_program_that_is_not_recorded_nothing_is_said(tmp_path, monkeypatch):
  assert outline.look('compare', ['--help', '--qqq']) is None
  monkeypatch.setattr(outline, '_FOLDER', tmp_path)
  (tmp_path / 'dcco.json').write_text('{')
  assert outline.look('dcco', ['--help']) is None
