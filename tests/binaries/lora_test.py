"""Runs whose encoder has adapters: what is frozen, kept, refused and carried on."""

import collections
import json
import re

import numpy as np
import pytest
import tensorflow_federated as tff

from binaries import evaluate
from binaries import fedavg_ssl
from binaries.building import encoders
from binaries.experiment import encoder_card
from binaries.experiment import init_from
from tasks import registry
from tests import tiny
from tests.binaries import in_process
from tests.binaries import launch
from tff_ssl.encoders import parameter_names
from tff_ssl.encoders import vit
from tff_ssl.export import encoder_file
from tff_ssl.federated import server
from tff_ssl.objectives import base
from tff_ssl.runs import checkpoints
from tff_ssl.runs import frozen_base
from tff_ssl.runs.privacy import disclosure

_RANK = 2
_PARTIAL = (f'lora={_RANK}', 'frozen=0.5')
_HEAD = 'projector/output/kernel'


def _plain():
  config = vit.ViTConfig(dim=8, depth=1, heads=2, patch_size=4)
  return vit.from_config(config, tiny.IMAGE_SHAPE)


def _state(params):
  weights = tff.learning.models.ModelWeights(params, collections.OrderedDict())
  return server.initial_state(weights, 0)


def _with_head(params, value):
  head = {_HEAD: np.full([2], value, np.float32)}
  return collections.OrderedDict(parameter_names.with_prefix(params, 'encoder'), **head)


def _source(folder):
  """Writes the checkpoint of a run; returns the parameters of its encoder."""
  params = {
    name: np.asarray(value) + np.float32(0.5)
    for name, value in _plain().init([3, 4]).items()
  }
  checkpoints.Checkpoints(folder / 'checkpoints').save(7, _state(_with_head(params, 9)))
  return params


def _config(source, folder, partial=f'lora={_RANK}'):
  flags = f'--encoder=vit_micro:{partial} --init_from={source}'
  return in_process.read('fedavg_ssl', flags, run_dir=str(folder))


def _begun(source, folder, *partial):
  """Returns a run's encoder and its state after its start."""
  config = _config(source, folder, *partial)
  folder.mkdir()
  adapted = init_from.adapted(config, _plain())
  own = {name: value.numpy() for name, value in adapted.init([0, 1]).items()}
  start = init_from.build(config, folder, adapted, base.Objective())
  return adapted, start(_state(_with_head(own, 0))).global_model_weights.trainable


@pytest.mark.parametrize('partial', _PARTIAL)
def test_a_run_begins_as_what_it_starts_from(tmp_path, partial):
  params = _source(tmp_path / 'source')
  adapted, weights = _begun(tmp_path / 'source', tmp_path / 'run', partial)
  own = parameter_names.select(weights, 'encoder')
  assert list(own) == list(adapted.specs)
  x = np.random.default_rng(0).normal(size=(3, *tiny.IMAGE_SHAPE)).astype(np.float32)
  np.testing.assert_array_equal(adapted.apply(own, x), _plain().apply(params, x))
  # A head comes with the encoder.
  np.testing.assert_array_equal(weights[_HEAD], [9, 9])
  # It is compared with that, as far as it is still there.
  given = _config(tmp_path / 'source', tmp_path / 'run'), _plain()
  for name, value in init_from.initial(*given).items():
    np.testing.assert_array_equal(value, params[name])
  changed = _state(_with_head(params, 8))
  checkpoints.Checkpoints(tmp_path / 'source' / 'checkpoints').save(8, changed)
  with pytest.raises(ValueError, match='source after round 8 has changed; it must'):
    init_from.initial(*given)


def test_each_entry_of_the_card_may_be_given_away(tmp_path):
  _source(tmp_path / 'source')
  adapted, _ = _begun(tmp_path / 'source', tmp_path / 'run')
  config = _config('gone', tmp_path / 'run')
  card = encoder_card.build(config, registry.load('digits'), adapted, 1)
  assert card['trained_parameters'] == adapted.num_parameters
  assert [name for name in card if not disclosure.of_entry(name).is_public] == []


@pytest.mark.parametrize('partial', _PARTIAL)
def test_a_run_goes_on_without_what_it_started_from(tmp_path, partial):
  params = _source(tmp_path / 'source')
  begun, _ = _begun(tmp_path / 'source', tmp_path / 'run', partial)
  again = init_from.adapted(_config('gone', tmp_path / 'run', partial), _plain())
  shapes = {name: spec.shape for name, spec in begun.specs.items()}
  assert {name: spec.shape for name, spec in again.specs.items()} == shapes
  assert list(again.adapters.base) == list(params)
  for name, value in again.adapters.base.items():
    np.testing.assert_array_equal(value, params[name])


def test_another_run_starts_from_merged_weights(tmp_path):
  _source(tmp_path / 'source')
  adapted, weights = _begun(tmp_path / 'source', tmp_path / 'run')
  moved = collections.OrderedDict(
    (name, np.asarray(value) + np.float32(0.1)) for name, value in weights.items()
  )
  checkpoints.Checkpoints(tmp_path / 'run' / 'checkpoints').save(5, _state(moved))
  config = in_process.read('fedavg_ssl', f'--init_from={tmp_path / "run"}')
  fresh = _with_head(_plain().init([0, 0]), 0)
  (tmp_path / 'next').mkdir()
  start = init_from.build(config, tmp_path / 'next', _plain(), base.Objective())
  found = start(_state(fresh)).global_model_weights.trainable
  merged = adapted.merged(parameter_names.select(moved, 'encoder'))
  for name, value in merged.items():
    np.testing.assert_array_equal(found[f'encoder/{name}'], value)


@pytest.mark.parametrize(
  ('damage', 'said'),
  [
    (
      lambda path: path.write_bytes(b'\x80\x04 a pickle'),
      'cannot read the frozen weights',
    ),
    (
      lambda path: path.write_bytes(path.read_bytes()[:-200]),
      'cannot read the frozen weights',
    ),
    (
      lambda path: np.savez(path, **{'norm/gamma': np.array(['a', 'b'])}),
      "'norm/gamma' holds <U1; it must hold floats",
    ),
    (
      lambda path: np.savez(path, **{'norm/gamma': np.zeros(3, np.float32)}),
      'params of the base of vit has no embedding/patch/kernel',
    ),
    (lambda path: path.unlink(), 'base.npz is missing; it must hold the frozen'),
  ],
  ids=['damaged', 'truncated', 'text', 'another', 'missing'],
)
def test_frozen_weights_that_do_not_fit_are_refused(tmp_path, damage, said):
  _source(tmp_path / 'source')
  _begun(tmp_path / 'source', tmp_path / 'run')
  damage(tmp_path / 'run' / frozen_base.NAME)
  config = in_process.read(
    'fedavg_ssl', f'--encoder=vit_micro:lora={_RANK}', run_dir=str(tmp_path / 'run')
  )
  with pytest.raises(ValueError, match=re.escape(said)):
    init_from.adapted(config, _plain())


_FLAGS = (*launch.TINY, '--clients=schedule=constant')
_WITH = f'--encoder=vit_micro:width=0.25,patch=4,lora={_RANK}'


def _run(folder, *flags):
  given = (*_FLAGS, '--objective=simclr:projector=32/32', *flags)
  return in_process.finished(fedavg_ssl, *given, f'--run_dir={folder}')


@pytest.mark.long
def test_a_run_with_adapters_from_its_start_to_its_files(tmp_path):
  base, whole, grown = (tmp_path / name for name in ('base', 'whole', 'grown'))
  _run(base, '--rounds=1', _WITH.replace(f',lora={_RANK}', ''))
  start = f'--init_from={base}'
  _run(whole, '--rounds=2', _WITH, start)
  _run(grown, '--rounds=1', _WITH, start)
  base.rename(tmp_path / 'moved')
  _run(grown, '--rounds=2', _WITH, start)
  # It resumes without what it began from, and with the same numbers.
  newest = [
    checkpoints.read_newest(each / 'checkpoints', 'global_model_weights/trainable')
    for each in (whole, grown)
  ]
  assert newest[0][0] == newest[1][0] == 2
  for name, value in newest[0][1].items():
    np.testing.assert_array_equal(newest[1][1][name], value)
  # The encoder that is saved is the whole one, with the adapters merged.
  card = json.loads((whole / 'encoder.json').read_text())
  config = in_process.read('fedavg_ssl', _WITH, run_dir=str(whole))
  plain = encoders.of_shape(config, (8, 8, 1))
  adapted = init_from.adapted(config, plain)
  assert card['parameters'] == plain.num_parameters
  assert card['trained_parameters'] == adapted.num_parameters
  x = np.random.default_rng(0).random((4, 8, 8, 1)).astype(np.float32)
  features = adapted.infer(parameter_names.select(newest[0][1], 'encoder'), x)
  saved = encoder_file.read(whole / 'encoder.keras')
  np.testing.assert_allclose(saved(x), features, rtol=1e-4, atol=1e-5)
  # Of the newest checkpoint come the same numbers again.
  before = json.loads((whole / 'evaluation.json').read_text())
  in_process.finished(evaluate, f'--run={whole}', '--evaluation=methods=knn')
  assert json.loads((whole / 'evaluation.json').read_text()) == before
