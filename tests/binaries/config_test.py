"""Configurations of runs: their kinds, JSON values, roles."""

import dataclasses
import json
import re
import typing

import pytest

from binaries.config import changing
from binaries.config import checks
from binaries.config import command_line
from binaries.config import data
from binaries.config import docstrings
from binaries.config import evaluations
from binaries.config import programs
from binaries.config import run_config
from binaries.config import runtimes
from tasks import groups
from tasks import image_folders
from tasks import images
from tasks import manifest
from tff_ssl.algorithms import fedavg
from tff_ssl.algorithms.divergence_aware import online_networks
from tff_ssl.computing import kinds
from tff_ssl.encoders import network
from tff_ssl.encoders import pixels
from tff_ssl.encoders import registry as encoder_registry
from tff_ssl.encoders import resnet
from tff_ssl.encoders import vit
from tff_ssl.runs import removed
from tff_ssl.runs import run_config as stored_config
from tff_ssl.runs.privacy import accounting
from tff_ssl.settings import aggregations
from tff_ssl.settings import encoders
from tff_ssl.settings import learning
from tff_ssl.settings import methods
from tff_ssl.settings import objectives
from tff_ssl.settings import roles
from tff_ssl.storage import files

_METHODS = programs.all_methods()
_ROWS = {
  f'{name} {method} {objective}': row
  for name in programs.NAMES
  for method, by_objective in programs.load(name).rows.items()
  for objective, row in by_objective.items()
}
_TABLES = {**run_config.KINDS, 'method': _METHODS}
_CLASSES = dict.fromkeys(
  [*(cls for table in _TABLES.values() for cls in table.values())]
  + [*run_config.PARTS.values()]
)
# Texts that are neither choices nor paths. The partition has no path in it
# (`tff_ssl.partition.spec`), the hospital and the clients are names in the data, sites
# and classes are named by people, and the others are looked up in tables of ours.
_TEXTS = {
  'task',
  'partition',
  'augmentation',
  'columns',
  'hospital',
  'names',
  'classes',
  'methods',
  'personal',
  'export_clients',
}
_WITHOUT_CAFFE = {*typing.get_args(pixels.Pixels)} - {'caffe'}


@pytest.mark.parametrize(
  ('cls', 'field', 'expected'),
  [
    (_METHODS['fedu'], 'divergence_norm', online_networks.NORMS),
    (encoders.ResNet, 'stem', typing.get_args(resnet.Stem)),
    (encoders.TorchResNet, 'pixels', _WITHOUT_CAFFE),
    (encoders.TorchViT, 'pixels', _WITHOUT_CAFFE),
    (encoders.KerasResNet, 'pixels', typing.get_args(pixels.Pixels)),
    (encoders.KerasMobileNet, 'pixels', typing.get_args(pixels.Pixels)),
    (encoders.TorchViT, 'pool', typing.get_args(vit.Pool)),
    (encoders.Encoder, 'precision', (*network.PRECISIONS, encoders.AUTO)),
    (evaluations.Evaluation, 'precision', network.PRECISIONS),
    (learning.Clients, 'weighting', fedavg.WEIGHTINGS),
    (data.Data, 'fit', images.FITS),
    (data.Data, 'classify', manifest.CLASSIFIED),
    (data.Data, 'folders', image_folders.MEANINGS),
    (data.Data, 'groups', groups.WAYS),
    (
      aggregations.Private,
      'cohorts',
      (accounting.FIXED, accounting.POISSON, accounting.PASSES),
    ),
  ],
)
def test_choices_are_those_of_the_library(cls, field, expected):
  _, choices = kinds.without_none(kinds.field_types(cls)[field])
  assert sorted(typing.get_args(choices)) == sorted(expected)


def test_encoders_are_those_of_the_library_with_their_options():
  assert (*encoders.ENCODERS,) == encoder_registry.NAMES
  options = {name: cls(name).options for name, cls in encoders.ENCODERS.items()}
  for option in {each for own in options.values() for each in own}:
    takers = [name for name, own in options.items() if option in own]
    assert (*takers,) == encoder_registry.with_option(option)


@pytest.mark.parametrize('cls', [*_CLASSES, run_config.RunConfig])
def test_each_field_is_described(cls):
  assert all(docstrings.attributes(cls).values()), docstrings.attributes(cls)
  assert cls.__doc__ and not cls.__doc__.startswith(f'{cls.__name__}(')


def test_a_name_is_one_method_in_all_programs():
  for name in programs.NAMES:
    program = programs.load(name)
    assert program.name == name
    for method, cls in program.methods.items():
      assert _METHODS[method] is cls
      assert cls.kind == method


# In loops: to pytest each of 800 tests is more work than what it tests.
def test_a_row_is_read_from_its_json_values():
  for name, row in _ROWS.items():
    values = json.loads(json.dumps(run_config.to_json(row)))
    read = run_config.from_json(values, _METHODS)
    assert read.settings() == row.settings(), name
    assert run_config.to_json(read) == run_config.to_json(row), name
    assert values.keys() >= {'method', 'objective', 'task', 'rounds', 'encoder'}, name


def test_the_parts_of_a_row_are_read_from_their_texts():
  for name, row in _ROWS.items():
    for flag, table in _TABLES.items():
      if row.uses(flag):
        part = getattr(row, flag)
        own = run_config.clients_of(row.method) if flag == 'clients' else table
        assert type(part) is own[kinds.kind_of(part)], name
        assert kinds.parse(kinds.to_text(part), own) == part, name


def test_what_a_row_does_not_use_is_a_field():
  for name, row in _ROWS.items():
    known = {*roles.flat(row), *kinds.field_types(run_config.RunConfig)}
    assert {*row.unused} <= known, name
    checks.check(dataclasses.replace(row, run_dir='r'))
    free = {*row.names(roles.is_free)}
    assert free and free <= {*row.names(roles.is_neutral)}, name


@pytest.mark.parametrize(
  ('method', 'fields', 'said'),
  [
    (
      'centralized',
      {'aggregation': aggregations.Private(epsilon=8.0)},
      'aggregation is private with the method centralized, which does not use it; ',
    ),
    ('fedbn', {'init_from': 'there'}, 'init_from is there with the method fedbn, wh'),
    ('server_finetuned', {'init_from': 'there'}, 'init_from is there with the method'),
    (
      'centralized',
      {'clients': learning.SgdClients(proximal_weight=0.5)},
      'proximal_weight of clients is 0.5 with the method centralized, which does not',
    ),
    (
      'fedprox',
      {'evaluation': evaluations.Evaluation(personal=('linear',))},
      "personal of evaluation is ('linear',) with the method fedprox, which does not",
    ),
  ],
)
def test_what_a_method_does_not_use_is_refused_from_python_too(method, fields, said):
  config = run_config.RunConfig(
    _METHODS[method](), objectives.Simclr(), run_dir='r', **fields
  )
  with pytest.raises(ValueError, match=re.escape(said)):
    checks.check(config)


def _configs():
  """Yields a run with each kind of each field."""
  row = run_config.RunConfig(_METHODS['fedema'](), objectives.Byol())
  for name, table in _TABLES.items():
    for kind, cls in table.items():
      own = (
        {'kind': kind} if 'kind' in {f.name for f in dataclasses.fields(cls)} else {}
      )
      changes = {name: cls(**own)}
      if cls in learning.STEPS.values():
        changes['method'] = _METHODS['dcco']()
      elif name == 'method' and cls.steps:
        changes['clients'] = learning.StepClients()
      yield dataclasses.replace(row, **changes)


def _with_theirs(config):
  """Returns JSON values in which each path is a stranger's, and the names of these."""
  values, theirs = run_config.to_json(config), []
  for name, own, field in roles.fields(config):
    part, _, last = name.rpartition('.')
    where = values.get(part, {}) if part else values
    if not roles.is_path(field) or isinstance(where.get(last, {}), dict):
      continue
    owner = type(getattr(config, part) if part else config)
    type_ = kinds.without_none(kinds.field_types(owner)[last])[1]
    by_type = {bool: not own, tuple: ['/theirs']}
    where[last] = by_type.get(typing.get_origin(type_) or type_, '/theirs')
    theirs.append(name)
  return values, theirs


@pytest.mark.parametrize('config', _configs())
def test_a_stranger_s_run_gives_no_path_address_or_order(config):
  values, theirs = _with_theirs(config)
  assert {'run_dir', 'data.dir', 'data.scaling', 'trackers'} <= {*theirs}
  taken = run_config.from_json(values, _METHODS, keep_paths=True)
  left = run_config.from_json(values, _METHODS, keep_paths=False)
  flat = roles.flat(left)
  assert all(roles.flat(taken)[name] != flat.get(name) for name in theirs)
  assert left.settings() == config.settings()


def test_each_text_is_a_choice_a_path_or_a_name_in_a_table():
  for cls in (*_CLASSES, run_config.RunConfig):
    types = kinds.field_types(cls)
    for field in dataclasses.fields(cls):
      inner = kinds.without_none(types.get(field.name))[1]
      if typing.get_origin(inner) is tuple:
        inner = typing.get_args(inner)[0]
      if inner is str:
        assert roles.is_path(field) != (field.name in _TEXTS), (cls, field.name)


def test_what_opens_ports_or_sends_something_away_is_never_a_stranger_s_to_say():
  acts = {
    data.Data: ('dir', 'follow_links', 'strict'),
    runtimes.Ray: ('address',),
    run_config.RunConfig: ('trackers', 'run_dir', 'init_from'),
  }
  for cls, names in acts.items():
    fields = {field.name: field for field in dataclasses.fields(cls)}
    for name in names:
      assert roles.is_path(fields[name]), name


@pytest.mark.parametrize(
  ('change', 'said'),
  [
    ({'secret': 1}, "The run has the field 'secret'; there is none."),
    ({'rounds': '5'}, "The run has rounds='5'; it must be a whole number at least 1"),
    ({'rounds': True}, 'The run has rounds=True; it must be a whole number'),
    ({'seed': {}}, 'The run has seed={}; it must be a whole number'),
    ({'clients': 5}, 'The run has clients=5; it must be an object.'),
    (
      {'clients': {'kind': 'sgd', 'x': 1}},
      "The run has the field 'clients.x'; there is",
    ),
    (
      {'clients': {'kind': 'x'}},
      "The run has the clients 'x'; it must be one of sgd, ",
    ),
    ({'encoder': {'kind': ['mlp']}}, "The run has the encoder ['mlp']; it must be one"),
    ({'data': {'columns': [1]}}, 'The run has data.columns=[1]; it must be'),
    ({'method': None}, 'The run has method=None; it must be an object.'),
  ],
)
def test_wrong_json_values_are_refused_in_one_sentence(change, said):
  values = {**run_config.to_json(_ROWS['dcco fedavg cco']), **change}
  with pytest.raises(ValueError) as refused:
    run_config.from_json(values, _METHODS)
  assert said in str(refused.value)
  assert '\n' not in str(refused.value)


def test_a_run_needs_its_method_and_objective():
  with pytest.raises(ValueError, match='The run has no method'):
    run_config.from_json({}, _METHODS)


def test_only_some_fields_do_not_tell_two_methods_apart():
  config = _ROWS['fedema fedema byol']
  neutral = {*config.names(roles.is_neutral)}
  assert {'evaluation.knn_k', 'runtime.packs', 'run_dir', 'data.dir'} <= neutral
  assert not {'seed', 'rounds', 'clients.epochs', 'encoder.norm'} & neutral
  at_server = _ROWS['fedsup fedsup fedsup'].names(roles.is_neutral)
  assert 'labels.accuracy_every' in at_server
  assert 'labels.learning_rate' not in at_server
  free = {*config.names(roles.is_free)}
  assert {'run_dir', 'checkpoint_every', 'evaluation.personal'} <= free
  assert 'evaluation.knn_k' not in free
  assert evaluations.Evaluation().methods == ('knn', 'linear')
  assert not methods.FedAvg.unused.count('aggregation')


def test_a_run_of_before_with_a_removed_setting_at_its_value_goes_on(tmp_path):
  row = _ROWS['ssfl maml simsiam']
  now = run_config.to_json(row)
  before = json.loads(json.dumps(now))
  before['method'].update(inner_rate=0.01, second_order=True)
  files.write_json(tmp_path / 'config.json', stored_config.build(before, 'abc'))
  assert changing.read(tmp_path, keep_paths=True).settings() == row.settings()
  stored_config.check(tmp_path, now)
  before['method']['inner_rate'] = 0.1
  files.write_json(tmp_path / 'config.json', stored_config.build(before, 'abc'))
  said = (
    'inner_rate of method was removed in 0.3, where it is always 0.01; leave it out.'
  )
  with pytest.raises(ValueError, match=re.escape(said)):
    changing.read(tmp_path, keep_paths=True)


def test_removed_settings_are_no_fields():
  for part, field in removed.SETTINGS:
    assert all(field not in kinds.field_types(cls) for cls in _TABLES[part].values())


def test_columns_may_be_given_in_parts():
  given = ['--columns=image=Photo', '--columns=label=Kind,unused=Age']
  paths = ['--task=cases', '--data_dir=pictures', '--run_dir=run']
  config = command_line.parse_run('dcco', [*paths, *given])
  assert config.data.columns == ('image=Photo', 'label=Kind', 'unused=Age')
