"""Tests of the methods of `binaries.ssfl`, in a process whose flags are theirs."""

import pathlib
import subprocess
import sys

import pytest

from tests.binaries import launch

# One process for all: importing TensorFlow is what costs.
_PROGRAM = """
import sys
from absl import flags
from absl.testing import flagsaver
from binaries import ssfl_setup
for line in sys.argv[1:]:
  with flagsaver.flagsaver():
    flags.FLAGS(['ssfl', *line.split()])
    try:
      ssfl_setup.check_flags()
      print('fine')
    except ValueError as error:
      print(error)
"""
_LINES = {
  '--method=bilevel --consensus_weight=1': 'it is for per only',
  '--method=per --proximal_weight=0.1': 'it is for global, la, maml, bilevel only',
  '--method=maml --encoder_norm=batch': 'it is for global only',
  '--method=la --adaptation_rate=-1': 'adaptation_rate is -1.0; it must be at least 0',
  '--personal_methods=knn': "personal_methods has 'knn'; allowed are logistic, lars",
  '--method=maml --nosecond_order --inner_rate=0.1': 'fine',
}


@pytest.fixture(scope='module')
def said():
  lines = [f'--run_dir=/tmp/none {line}' for line in _LINES]
  found = subprocess.run(
    [sys.executable, '-c', _PROGRAM, *lines],
    cwd=pathlib.Path(launch.ROOT),
    capture_output=True,
    text=True,
    timeout=launch.SECONDS,
    check=True,
  )
  return dict(zip(_LINES, found.stdout.strip().splitlines(), strict=True))


@pytest.mark.parametrize('line', _LINES)
def test_flags_that_do_nothing_are_refused(said, line):
  assert _LINES[line] in said[line]
