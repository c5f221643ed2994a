"""What programs adopt from the config.json of a run, which may be a stranger's."""

import importlib
import pathlib

from absl import flags
import pytest

import binaries
from binaries.flags import adopting
from binaries.flags import paths
from binaries.flags import program
from binaries.methods import choice
from binaries.methods import table
from tests.binaries import in_process

# Texts that are neither numbers nor choices. All but the partition and the hospital are
# names in a table of ours or numbers; the partition has no path
# (`tff_ssl.partition.spec`), and the hospital is a client of the data.
_TEXTS = {
  'algorithm',
  'client_schedule_steps',
  'columns',
  'evaluation_methods',
  'label_fractions',
  'method',
  'objective',
  'partition',
  'personal_methods',
  'pixel_range',
  'projector',
  'server_hospital',
  'server_schedule_steps',
}
_VALUES = (
  flags.BooleanParser,
  flags.IntegerParser,
  flags.FloatParser,
  flags.EnumParser,
)
# What opens ports, downloads, or sends something away.
_ACTS = {
  'download',
  'host_timeout',
  'i_trust_this_network',
  'runtime',
  'trackers',
  'worker_address',
  'worker_addresses',
}


@pytest.fixture(scope='module')
def all_flags():
  """Every flag of every program, by name."""
  for path in pathlib.Path(binaries.__file__).parent.glob('*.py'):
    if path.stem != '__init__':
      importlib.import_module(f'binaries.{path.stem}')
  names = (name for own in program.flags_by_module().values() for name in own)
  return {name: flags.FLAGS[name] for name in names}


def test_adopted_flags_are_values(all_flags):
  assert len(all_flags) > 190
  assert all_flags.keys() >= adopting.ADOPTED
  for name in adopting.ADOPTED:
    parser = all_flags[name].parser
    assert not isinstance(parser, paths._Parser | paths._ListParser), name
    assert isinstance(parser, _VALUES) or name in _TEXTS, name
  assert not adopting.ADOPTED & _ACTS


def test_each_flag_is_in_one_list(all_flags):
  given, not_adopted = {*adopting.GIVEN_AGAIN}, adopting.NOT_ADOPTED
  assert not adopting.ADOPTED & given
  assert not (adopting.ADOPTED | given) & not_adopted
  of_paths = {
    name
    for name, flag in all_flags.items()
    if isinstance(flag.parser, paths._Parser | paths._ListParser)
  }
  assert not of_paths & adopting.ADOPTED
  # What a run writes down was decided on: a new flag is not silently left out.
  of_runs = {name for each in table.PROGRAMS for name in choice.flags_of(each)}
  assert of_runs <= adopting.ADOPTED | given | not_adopted


def _of_programs(names):
  with in_process.parsed():
    return {name: flags.FLAGS[name].value for name in names}


def test_unlisted_flags_are_not_adopted(all_flags):
  """Whether a stranger names a path, an address, or a flag that will be new."""
  before = _of_programs(all_flags)
  for name in all_flags.keys() - adopting.ADOPTED:
    with in_process.parsed():
      try:
        adopting.adopt({name: '/theirs'}, ())
      except ValueError as error:
        assert f'--{name}=/theirs, which is not taken from the folder' in str(error)
        assert name not in adopting.NOT_ADOPTED
      values = {each: flags.FLAGS[each].value for each in all_flags}
    assert values == before, name


def test_silent_omissions_are_refused():
  with (
    in_process.parsed(),
    pytest.raises(ValueError, match='give --mask_dir on the command line'),
  ):
    adopting.adopt({'mask_dir': '/theirs'}, ())
  with in_process.parsed('--mask_dir=mine'):
    adopting.adopt({'mask_dir': '/theirs'}, ())
    assert flags.FLAGS['mask_dir'].value == 'mine'
