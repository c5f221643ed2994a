"""Runs that go on with more rounds than they began with, or from another's weights."""

import collections
import dataclasses
import hashlib
import json
import re
import types

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from binaries import fedavg_ssl
from binaries import fedema
from binaries import fedsup
from binaries.building import algorithms
from binaries.building import encoders
from binaries.building import objectives
from binaries.config import checks
from binaries.config import run_config
from binaries.experiment import init_from
from binaries.experiment import report
from binaries.experiment import running
from tests.binaries import in_process
from tests.binaries import launch
from tests.encoders import torch_networks
from tests.worlds import made_runs
from tff_ssl.encoders import parameter_names
from tff_ssl.encoders import registry
from tff_ssl.federated import server
from tff_ssl.objectives import base
from tff_ssl.runs import checkpoints
from tff_ssl.runs import run_config as stored_config

_FLAGS = (
  *launch.TINY,
  '--clients=schedule=constant',
  '--encoder=conv2:width=0.125',
)


@pytest.mark.parametrize(
  ('program', 'line', 'why'),
  [
    ('fedavg_ssl', '', None),
    ('dcco', '--server=schedule=constant', None),
    ('dcco', '--method=centralized_steps --server=sgd:schedule=constant', None),
    ('fedema', '--clients=schedule=steps,steps=6', None),
    ('dcco', '', 'the rate of the server with schedule=cosine'),
    ('fedema', '', 'the rate of the clients with schedule=cosine'),
    ('fedavg_ssl', '--objective=dino', 'the schedules of dino'),
    ('fedsup', '', 'the weight feature_weight of the objective'),
    ('fedsup', '--objective=stages=0', None),
    ('fedsup', '--objective=feature_weight=1', None),
    ('fedsup', '--method=server_finetuned --objective=fixmatch', None),
    ('fedavg_ssl', '--aggregation=private:epsilon=8,update_clip=1', 'its noise'),
    # The guarantee follows from the noise and the rounds that were made.
    ('fedavg_ssl', '--aggregation=private:noise_multiplier=1,update_clip=1', None),
    ('fedavg_ssl', '--aggregation=distributed:noise_multiplier=1,epsilon=8', None),
  ],
)
def test_rounds_are_fixed_by_what_depends_on_all_of_them(program, line, why):
  config = in_process.read(program, line)
  found = run_config.why_rounds_are_fixed(config)
  assert found is None if why is None else found.startswith(why)
  assert run_config.may_grow(config) == (('rounds',) if why is None else ())


@pytest.mark.parametrize(
  ('flags', 'rounds', 'said'),
  [
    ('', 9, 'is a run with --rounds=3, and the rate of the server with schedule=cos'),
    ('', 9, 'from its weights, with --init_from='),
    ('', 2, 'is a run with rounds=3, not rounds=2'),
    (
      '--server=schedule=constant --aggregation=private:epsilon=8,delta=1e-4',
      9,
      'for all rounds: with 9 it would differ from its first round on.',
    ),
  ],
)
def test_why_a_run_has_no_more_rounds_and_what_to_do(tmp_path, flags, rounds, said):
  folder = tmp_path / 'run'
  config = in_process.checked('dcco', f'--rounds=3 {flags}', run_dir=str(folder))
  made_runs.run(folder)
  stored = stored_config.build(run_config.to_json(config), '')
  (folder / 'config.json').write_text(json.dumps(stored))
  with pytest.raises(ValueError, match=re.escape(said)):
    running.check(dataclasses.replace(config, rounds=rounds))


# Heads of fewer than eight units have no group norm.
def _run(folder, *flags, objective='simclr:projector=32/32'):
  given = (*_FLAGS, f'--objective={objective}', *flags, f'--run_dir={folder}')
  return in_process.finished(fedavg_ssl, *given)


# What is compared, refused and read of a source is in the tests around it.
@pytest.mark.long
def test_a_longer_run_has_the_rounds_of_one_that_began_so(tmp_path):
  grown, whole, other = (tmp_path / name for name in ('grown', 'whole', 'other'))
  _run(grown, '--rounds=1')
  ended = _run(grown, '--rounds=2')
  assert f'{grown}: resuming after round 1 of 2' in ended.stdout
  _run(whole, '--rounds=2')
  for row, expected in zip(launch.table(grown), launch.table(whole), strict=True):
    # The first of the one was evaluated, for it was the last.
    names = [name for name in expected if name.startswith('client_work/')]
    assert {n: row[n] for n in names} == {n: expected[n] for n in names}
  assert launch.table(grown)[1] == launch.table(whole)[1]
  assert stored_config.read(grown)['config']['rounds'] == 2
  # Another run starts from these weights, and from what is new to both.
  ended = _run(
    other,
    '--rounds=1',
    '--encoder=norm=group',
    f'--init_from={grown}',
    objective='simsiam:projector=32/32',
  )
  assert f'starting from {grown} after round 2' in ended.stdout
  numbers, of_grown = (
    json.loads((folder / 'evaluation.json').read_text()) for folder in (other, grown)
  )
  name = 'knn/10%/accuracy'
  assert numbers[f'initial_encoder/{name}'] == of_grown[name]
  gain = numbers[name] - of_grown[name]
  assert numbers[f'{name}/initial_gain'] == pytest.approx(gain)
  was, now = launch.weights(grown, 2), launch.weights(other, 0)
  assert any(name.startswith('encoder/') for name in now)
  for name, value in now.items():
    if name.startswith('encoder/'):
      np.testing.assert_array_equal(value, was[name])
  # Its card names the weights by a digest of names, types, shapes and values.
  digest = hashlib.sha256()
  for name in sorted(was):
    value = was[name]
    digest.update(f'{name} {value.dtype} {value.shape}\n'.encode() + value.tobytes())
  parent = json.loads((other / 'encoder.json').read_text())['parent']
  assert parent == {'name': 'grown', 'weights_sha256': digest.hexdigest()}
  said = f'Started from the weights of grown (SHA-256 {digest.hexdigest()})'
  assert said in (other / 'encoder.md').read_text()


def test_an_encoder_of_ours_is_started_from_and_another_network_refused(
  tmp_path, encoder
):
  params = {name: value + 1 for name, value in encoder.init([0, 1]).items()}
  path = tmp_path / 'encoder.keras'
  encoder.to_keras(params).save(path)
  card = {'network': registry.describe(encoder)}
  path.with_suffix('.json').write_text(json.dumps(card))
  own = encoder.init([0, 0])
  weights = tff.learning.models.ModelWeights(
    collections.OrderedDict((f'encoder/{name}', value) for name, value in own.items()),
    collections.OrderedDict(),
  )
  state = server.initial_state(weights, 0)
  config = in_process.read('fedavg_ssl', f'--init_from={path}')
  init_from.check(config, tmp_path / 'run')
  (tmp_path / 'run').mkdir()
  objective = base.Objective()
  started = init_from.build(config, tmp_path / 'run', encoder, objective)(state)
  other = registry.build_encoder('conv2', (8, 8, 1), 0.125, normalization='batch')
  says = 'is not the conv2 of this run, as its card says of normalization=group;'
  with pytest.raises(ValueError, match=says):
    init_from.build(config, tmp_path / 'run', other, objective)
  got = started.global_model_weights.trainable
  assert got.keys() == weights.trainable.keys()
  for name, value in params.items():
    np.testing.assert_allclose(got[f'encoder/{name}'], value, rtol=1e-5)


@pytest.mark.long_for('folded')
@pytest.mark.parametrize('batch_norm', ['trained', 'folded'])
def test_published_weights_are_started_from_with_their_statistics(
  tmp_path, batch_norm, capsys
):
  path, published = tmp_path / 'a.safetensors', torch_networks.Resnet18((4, 8, 16, 32))
  torch_networks.write(path, published.weights)
  config = in_process.read(
    'fedavg_ssl',
    f'--init_from={path} --run_dir={tmp_path}/run '
    f'--encoder=torch_resnet18:width=0.0625,batch_norm={batch_norm}',
  )
  running.check(config)
  encoder = encoders.of_shape(config, (32, 32, 3))
  objective = objectives.build(config, encoder, types.SimpleNamespace(num_classes=2))
  state = server.initial_state(server.initial_weights(objective, 0), 0)
  (tmp_path / 'run').mkdir()
  started = init_from.build(config, tmp_path / 'run', encoder, objective)(state)
  weights = started.global_model_weights
  own = parameter_names.select(
    {**weights.trainable, **weights.non_trainable}, 'encoder'
  )
  x = np.random.default_rng(0).uniform(size=(2, 32, 32, 3))
  np.testing.assert_allclose(
    encoder.infer(own, tf.constant(x, tf.float32)), published.features(x), atol=1e-4
  )
  # What it is compared with has them too, whatever the examples are.
  initial = init_from.initial(config, encoder)
  np.testing.assert_array_equal(
    encoder.infer(initial, tf.constant(x, tf.float32)),
    encoder.infer(own, tf.constant(x, tf.float32)),
  )
  printed = capsys.readouterr().out
  assert f'not taken from {path} but initialised: predictor, projector\n' in printed
  assert printed.endswith(f'starting from {path}\n')
  # A run that has begun has its own weights.
  path.unlink()
  gone = types.SimpleNamespace(config=config, encoder=encoder)
  assert report.initial(gone) == {}
  assert 'initial encoder is not evaluated: [Errno 2] No' in capsys.readouterr().out
  gone.config = dataclasses.replace(config, init_from=None)
  assert report.initial(gone) == {}
  assert 'it is read when the run ends, not aft' in capsys.readouterr().out
  with pytest.raises(OSError, match=r'a\.safetensors'):
    checks.check(config)
  (tmp_path / 'run').mkdir(exist_ok=True)
  (tmp_path / 'run' / stored_config.NAME).touch()
  checks.check(config)


@pytest.mark.parametrize(
  ('line', 'source'),
  [
    ('--method=centralized --objective=byol', 'byol'),
    ('--method=centralized --objective=moco_v1', 'moco_v1'),
    ('--method=centralized --objective=moco_v2', 'moco_v2'),
    ('--method=centralized --objective=dino', 'dino'),
    # The target is a part of the weights, which the source lacks.
    ('--method=centralized --objective=byol:stop_gradient=false', 'byol'),
  ],
)
def test_the_target_of_a_run_is_that_of_the_weights_it_starts_from(
  tmp_path, line, source
):
  flags = f'{line} --encoder=conv2:width=0.0625 --init_from={tmp_path}/source'
  config = in_process.read('fedavg_ssl', flags)
  encoder = encoders.of_shape(config, (8, 8, 1))
  task = types.SimpleNamespace(num_classes=2)
  objective = objectives.build(config, encoder, task)
  theirs = in_process.read('fedavg_ssl', f'--objective={source}')
  weights = server.initial_weights(objectives.build(theirs, encoder, task), seed=5)
  folder = checkpoints.Checkpoints(tmp_path / 'source' / 'checkpoints')
  folder.save(7, server.initial_state(weights, 0))
  state = algorithms.of(config).build(config, objective).initialize()
  (tmp_path / 'run').mkdir()
  state = init_from.build(config, tmp_path / 'run', encoder, objective)(state)
  found = {**state.global_model_weights.trainable, **state.objective}
  targets = parameter_names.select(found, 'target')
  assert {name.partition('/')[0] for name in targets} >= {'encoder', 'projector'}
  for name, value in targets.items():
    np.testing.assert_array_equal(value, weights.trainable[name])
    np.testing.assert_array_equal(found[name], weights.trainable[name])


@pytest.fixture
def encoder():
  return registry.build_encoder('conv2', (8, 8, 1), 0.125)


def test_a_head_is_taken_as_a_whole_or_starts_afresh(encoder, capsys):
  own = collections.OrderedDict(
    (f'encoder/{name}', np.zeros(spec.shape, np.float32))
    for name, spec in encoder.specs.items()
  )
  own.update(
    {
      'projector/a': np.zeros(3, np.float32),
      'projector/b': np.zeros(2, np.float32),
      'predictor/a': np.zeros(2, np.float32),
    }
  )
  found = {name: np.ones(np.shape(value)) for name, value in own.items()}
  found['projector/b'] = np.ones(5)
  got = init_from.take('there', own, found, encoder)
  assert list(got) == list(own)
  for name, value in got.items():
    expected = 0.0 if name.startswith('projector/') else 1.0
    assert value.dtype == np.float32
    np.testing.assert_array_equal(value, np.full(own[name].shape, expected))
  assert capsys.readouterr().out == (
    'not taken from there but initialised: projector\n'
  )
  name = next(iter(own))
  del found[name]
  with pytest.raises(ValueError, match=f'there does not fit: its {name} is absent;'):
    init_from.take('there', own, found, encoder)


@pytest.mark.parametrize(
  ('binary', 'flags', 'said'),
  [
    (fedavg_ssl, ['--init_from={run}'], 'the run itself'),
    (fedavg_ssl, ['--init_from={none}'], 'does not exist; it must be the folder'),
    (fedavg_ssl, ['--init_from={other}'], 'is a run with encoder=conv4, but this'),
    (fedsup, ['--init_from={other}'], '--init_from is given with --method=fedsup'),
    (fedema, ['--init_from={empty}'], 'has no checkpoint'),
  ],
)
def test_weights_that_cannot_be_taken_are_refused_before_the_run(
  tmp_path, binary, flags, said
):
  made_runs.run(tmp_path / 'other', {'encoder': 'conv4'})
  made_runs.run(tmp_path / 'empty')
  where = {name: tmp_path / name for name in ('run', 'none', 'other', 'empty')}
  given = [flag.format(**where) for flag in flags]
  with pytest.raises(ValueError, match=re.escape(said)):
    in_process.call(binary, *given, f'--run_dir={tmp_path}/run')
  assert not (tmp_path / 'run').exists()
