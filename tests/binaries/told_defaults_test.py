"""What --help says a default is, is what a run has."""

import json
import re

from absl import flags
import pytest

from binaries.flags import outline
from binaries.methods import choice
from binaries.methods import told_defaults
from tasks import registry
from tests.binaries import in_process
from tff_ssl.augment import multiview

_ROWS = {
  'dcco': ({'algorithm': 'dcco'}, {'algorithm': 'fedavg_nt_xent'}),
  'fedavg_ssl': (
    {'algorithm': 'fedavg', 'objective': 'simclr'},
    {'algorithm': 'scaffold', 'objective': 'byol'},
    {'algorithm': 'scaffold', 'objective': 'simclr'},
    {'algorithm': 'l_dawa', 'objective': 'simsiam'},
    {'algorithm': 'fedbn', 'objective': 'swav'},
  ),
  'fedema': ({'method': 'fedema'}, {'method': 'fedu'}, {'method': 'fed_moco_v1'}),
  'ssfl': ({'method': 'per'}, {'method': 'bilevel'}),
  'dec_ssl': (
    {'method': 'fedavg', 'objective': 'mae'},
    {'method': 'ring', 'objective': 'simsiam'},
  ),
  'fedsup': ({'method': 'fedsup'}, {'method': 'fedmatch'}),
}
# They follow from others: the norm of the divergence from --divergence_of.
_OF_OTHER_FLAGS = ('divergence_norm',)


def _told(text, row):
  """Returns the default of a row, as text, from what --help tells of all.

  Where several places name the row, the one with the most flags counts.
  """
  usual, *others = text.split('; ') if text else ['']
  if usual.startswith('with '):
    others, usual = [usual, *others], ''
  found = {0: {usual}}
  for other in others:
    places, _, value = other.removeprefix('with ').partition(': ')
    for place in places.split(' or '):
      flags_of_it = re.findall(r'--(\w+)=([\w,]+)', place)
      assert flags_of_it, text
      if all(row.get(name) in values.split(',') for name, values in flags_of_it):
        found.setdefault(len(flags_of_it), set()).add(value)
  (told,) = found[max(found)]
  return told


def _as_told(value):
  if value is None or value == []:
    return ('', 'none', "''")
  if isinstance(value, list):
    return (repr(','.join(map(str, value))),)
  return (repr(str(value).lower() if isinstance(value, bool) else str(value)),)


@pytest.mark.parametrize(
  ('program', 'row'), [(name, row) for name, rows in _ROWS.items() for row in rows]
)
def test_defaults_are_those_that_a_run_has(program, row):
  given = [f'--{name}={value}' for name, value in row.items()]
  # Digits, the task by default, has views of its own.
  with in_process.parsed(*given, '--task=cifar10', '--run_dir=x'):
    told = told_defaults.of_program(program)
    taken = choice.taken(choice.read(program).method)
    values = {name: flags.FLAGS[name].value for name in taken - {'run_dir', 'task'}}
  compared = set(values) - set(_OF_OTHER_FLAGS)
  assert {'rounds', 'encoder_norm', 'partition'} <= compared
  for name in compared:
    assert _told(told.get(name, ''), row) in _as_told(values[name]), name


def test_the_help_has_them():
  help_text = '\n'.join(json.loads(outline.path_of('fedema').read_text())['help'])
  (said,) = re.findall(r'--client_momentum: [^(]*\(default: ([^)]*)\)', help_text)
  assert said == "'0.9'"
  (said,) = re.findall(r'--encoder_norm: [^(]*\(default: ([^)]*)\)', help_text)
  assert said == "'batch'"


@pytest.mark.parametrize('program', ['dcco', 'fedema', 'fedsup'])
@pytest.mark.parametrize(
  ('line', 'views'),
  [
    ('--task=cifar10', 'byol_no_blur'),
    # A crop of 8 % of 8 x 8 pixels shows nothing, and a mirrored digit another sign.
    ('--task=digits', 'mild'),
    ('--task=digits --augmentation=simclr', 'simclr'),
  ],
)
def test_digits_has_views_of_its_own_unless_they_are_given(program, line, views):
  with in_process.parsed(*line.split()):
    assert choice.read(program).values()['augmentation'] == views


def test_views_of_tasks_exist():
  assert set(registry.VIEWS) <= set(registry.TASKS)
  assert set(registry.VIEWS.values()) <= set(multiview.CONFIGS)
