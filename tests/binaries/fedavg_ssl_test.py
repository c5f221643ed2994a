"""Runs of FedAvg over several objectives."""

import json
import types

import numpy as np
import pytest
import tensorflow as tf

from binaries import evaluate
from binaries import fedavg_ssl
from binaries.building import data
from binaries.building import encoders
from binaries.building import objectives
from binaries.experiment import messages
from binaries.experiment import running
from tasks import registry
from tests.binaries import in_process
from tests.binaries import launch
from tff_ssl.encoders import registry as encoder_registry
from tff_ssl.partition import describe
from tff_ssl.runs import checkpoints

_CLIENTS = ('--partition=classes:per_client=2,clients=5', '--participation=1')
_LOCAL = ('--clients=sgd:batch_size=64,momentum=0.9,schedule=cosine',)
_CONV2 = ('--encoder=conv2:width=0.125',)
_RUNS = {
  'byol': (
    *_CONV2,
    '--objective=byol',
    '--method=fed_ssl',
    '--objective=projector=16/8,predictor_width=8',
    *_LOCAL,
  ),
  'fedprox': (
    *_CONV2,
    launch.FLIP,
    '--objective=moco_v2',
    '--method=fedprox',
    '--clients=proximal_weight=0.1',
    '--encoder=norm=batch',
    '--objective=projector=16/8,queue_size=32',
    '--clients=weighting=uniform',
    *_LOCAL,
  ),
  'fedbn': (
    *_CONV2,
    launch.APART,
    '--objective=simclr',
    '--method=fedbn',
    '--encoder=norm=batch',
    '--objective=projector=16/8',
    *_LOCAL,
  ),
  'mae': (
    launch.APART,
    '--objective=mae',
    '--encoder=vit_micro:patch=4,width=0.25',
    *_LOCAL,
  ),
}


@pytest.fixture(scope='module')
def runs(tmp_path_factory):
  """Returns the runs by name."""
  base, flags = tmp_path_factory.mktemp('fedavg_ssl'), ('--task=digits', '--rounds=2')

  def run(name):
    own = (*flags, *_CLIENTS, *_RUNS[name], f'--run_dir={base / name}')
    return in_process.run(fedavg_ssl, *own)

  return launch.Made(run)


@pytest.mark.long_for('byol', 'fedprox', 'mae')
@pytest.mark.parametrize('name', _RUNS)
def test_a_run_is_complete(runs, name):
  run = runs[name]
  assert run.status == 0, run.stderr
  rows = launch.table(run.folder)
  assert len(rows) == 2
  assert all(np.isfinite(float(row['client_work/loss'])) for row in rows)
  assert float(rows[-1]['client_work/examples']) == pytest.approx(1438, abs=10)
  evaluation = json.loads((run.folder / 'evaluation.json').read_text())
  assert evaluation['knn/10%/accuracy'] > 0.2
  # Those of labels have one: validation_test.
  assert 'classifier/accuracy' not in evaluation
  assert (run.folder / 'encoder.keras').exists()


@pytest.mark.long
def test_batch_norm_is_exported_and_evaluated_with_its_statistics(runs, capsys):
  run = runs['fedprox']
  folder = run.folder / 'checkpoints'
  encoder = encoder_registry.build_encoder(
    'conv2', (8, 8, 1), 0.125, normalization='batch'
  )
  where = 'global_model_weights/{}/encoder'
  params = {
    name: array
    for kind in ('trainable', 'non_trainable')
    for name, array in checkpoints.read_newest(folder, where.format(kind))[1].items()
  }
  assert np.any(params['stage1/norm/population_mean'])
  images = np.random.default_rng(0).random((3, 8, 8, 1)).astype(np.float32)
  exported = tf.keras.models.load_model(run.folder / 'encoder.keras')
  np.testing.assert_allclose(
    exported(images), encoder.infer(params, images), rtol=1e-4, atol=1e-5
  )
  path = run.folder / 'evaluation.json'
  before = json.loads(path.read_text())
  in_process.call(
    evaluate,
    f'--run={run.folder}',
    '--evaluation=methods=knn/finetune,finetune_steps=2,baselines=true,supervised_steps=2',
  )
  after = json.loads(path.read_text())
  assert after['knn/10%/accuracy'] == before['knn/10%/accuracy']
  assert after['random_encoder/knn/10%/accuracy'] > 0.3
  assert 'finetune/10%/accuracy' in after
  # By default the rate is chosen, on a fifth of 145 labels, with at most two steps.
  assert after['finetune/10%/learning_rate'] in (1e-3, 3e-3, 1e-2)
  assert after['finetune/10%/steps'] in (1, 2)
  assert 20 < after['finetune/10%/validated'] < 80
  assert 'supervised_from_scratch/finetune/10%/learning_rate' not in after
  shown = capsys.readouterr().out
  assert 'Fine-tuning of fedprox moco_v2 with 10% (145) labels: rate 0.0' in shown
  in_process.call(
    evaluate,
    f'--run={run.folder}',
    '--evaluation=methods=finetune,finetune_steps=2,finetune_rate=0.01,label_fractions=0.05',
  )
  assert 'finetune/5%/learning_rate' not in json.loads(path.read_text())


def test_fedbn_is_evaluated_by_the_mean_of_its_clients(runs):
  run = runs['fedbn']
  model = tf.keras.models.load_model(run.folder / 'encoder.keras')
  layers = [
    x for x in model.layers if isinstance(x, tf.keras.layers.BatchNormalization)
  ]
  assert layers
  # Statistics of images, not those that batch norm begins with.
  assert all(np.any(layer.moving_mean.numpy()) for layer in layers)
  with pytest.raises(ValueError, match='is a run of fedbn: its checkpoints have no'):
    in_process.call(evaluate, f'--run={run.folder}')


def _warned(capsys, program, flags, sizes):
  config = in_process.read(program, flags)
  task = registry.load('digits')
  objective = objectives.build(config, encoders.build(config, task), task)
  messages.warn_of_batches(config, objective, sizes)
  return capsys.readouterr().err


@pytest.mark.parametrize(
  ('norm', 'clients', 'said'),
  [
    # Of 66 in batches of 32 the last two are left out, for they are few.
    ('batch', 'batch_size=32', 'on 1 of 4 clients (the smallest: 2)'),
    ('batch', 'batch_size=32,drop_last_batch=never', 'on 2 of 4'),
    # Of 26 and 66 in batches of 20 the last six, which are more than a quarter.
    ('batch', 'batch_size=20', 'on 3 of 4 clients (the smallest: 2)'),
    ('batch', 'batch_size=20,drop_last_batch=always', 'on 1 of 4'),
    ('batch', '', 'on 1 of 4 clients (the smallest: 2)'),
    ('group', 'batch_size=20', ''),
    # 1, 2, 4 and 5 batches of 16. Batch norm leaves out the last two of 66.
    ('group', 'batch_size=16', ''),
    (
      'group',
      'batch_size=16,accumulate=4',
      'on 2 of 4 clients an epoch is a single step',
    ),
    ('batch', 'batch_size=16,accumulate=4', 'on 3 of 4 clients an'),
    ('group', 'batch_size=16,accumulate=5', 'on 3 of 4 clients an'),
  ],
)
def test_batches_too_small_or_too_few_are_reported(capsys, norm, clients, said):
  flags = [f'--encoder=norm={norm}', *([f'--clients={clients}'] if clients else [])]
  told = _warned(capsys, 'fedavg_ssl', ' '.join(flags), [2, 26, 64, 66])
  assert bool(told) == bool(said)
  assert said in told


@pytest.mark.parametrize(
  ('flags', 'is_told'),
  [
    ('dcco --method=fedavg --objective=simclr', True),
    ('dcco --method=fedavg --objective=lejepa', False),
    ('dcco --objective=cco', False),
    ('fedavg_ssl --objective=moco_v2', True),
  ],
)
def test_clients_of_one_example_that_objectives_learn_nothing_from(
  capsys, flags, is_told
):
  told = _warned(capsys, *flags.split(maxsplit=1), [1, 26, 0, 1])
  assert ('2 of 4 clients have one example, from which ' in told) == is_told


@pytest.mark.parametrize(
  ('labelled', 'sizes', 'said'),
  [
    (False, [3, 2, 1], ''),
    (True, [3, 1, 0], '2 of 6 examples of clients have no label'),
  ],
)
def test_examples_without_a_label_are_counted_where_the_loss_needs_one(
  capsys, labelled, sizes, said
):
  partition = {'a': np.arange(3), 'b': np.arange(3, 5), 'c': np.arange(5, 6)}
  report = describe.describe(partition, np.array([0, 0, 1, 1, -1, -1]), 2)
  chosen = types.SimpleNamespace(objective=types.SimpleNamespace(labelled=labelled))
  assert messages.sizes_in_loss(chosen, report) == sizes
  told = capsys.readouterr().out
  assert bool(told) == bool(said)
  assert said in told
  assert not said or '1 of 3 clients have none that does' in told


def test_a_supervised_bound_sees_only_what_clients_hold():
  flags = (
    '--task=digits',
    '--run_dir=unused',
    '--method=centralized',
    '--objective=supervised',
    '--partition=iid:clients=5',
    '--data=at_most=8',
    '--participation=1',
    *_CONV2,
  )
  config = in_process.read('fedavg_ssl', ' '.join(flags), seed=0)
  prepared = running.prepare(config)
  held = np.concatenate(list(data.partition(config, prepared.task).values()))
  assert len(held) == 40
  batches = [prepared.cohort_fn(round)[0] for round in (1, 2, 3)]
  drawn = [int(x['example_id']) for batch in batches for x in batch]
  assert len(drawn) == 3 * 40
  assert set(drawn) == set(prepared.task.train.example_id[held])
