"""Tests of MoCo on linear networks, against NumPy in float64."""

import numpy as np
import pytest
import tensorflow as tf

from tests.losses import references
from tests.objectives import networks
from tff_ssl.objectives import moco
from tff_ssl.settings import objectives

_SEED = tf.constant([1, 2])


def _objective(batch_negatives=True, **options) -> moco.MocoObjective:
  settings = objectives.MocoV2(queue_size=4, **options)
  return moco.MocoObjective(networks.siamese('byol'), settings, batch_negatives)


def _start(objective, n=3, dtype=tf.float64):
  """Parameters, other key networks with two keys in the queue, and examples."""
  params = objective.init(_SEED, dtype)
  state = objective.init_state(objective.init(tf.constant([3, 4]), dtype))
  state['queue'] = tf.constant([[0.6, 0.8], [1, 0], [0, 0], [0, 0]], dtype)
  state['count'] = tf.constant(2)
  return params, state, networks.tensors(networks.examples(n))


def _queries_and_keys(objective, params, state, n, seed=_SEED):
  views = networks.numpy_views(objective.model, networks.examples(n), seed)
  queries = networks.numpy_linear(params, 'projector', views[0])
  keys = networks.numpy_linear(state, 'target/projector', views[1])
  return references.unit(queries), references.unit(keys)


@pytest.mark.parametrize('batch_negatives', [True, False])
@pytest.mark.parametrize('temperature', [0.07, 0.5])
def test_loss_and_spread_equal_numpy(batch_negatives, temperature):
  objective = _objective(temperature=temperature, batch_negatives=batch_negatives)
  params, state, batch = _start(objective)
  loss, metrics, carry = objective.loss_with_state(params, state, batch, _SEED)
  q, k = _queries_and_keys(objective, params, state, 3)
  negatives = state['queue'].numpy()[:2]

  def negatives_of(i):
    others = np.delete(k, i, axis=0) if batch_negatives else k[:0]
    return np.concatenate([others, negatives])

  expected = references.info_nce(q, k, negatives_of, temperature)
  assert float(loss) == pytest.approx(expected, rel=1e-5)
  np.testing.assert_allclose(carry['keys'], k, rtol=1e-5)
  spread = references.encoding_std(q)
  got = objective.summarize(metrics)['encoding_std']
  assert float(got) == pytest.approx(spread, rel=1e-5)


def test_no_gradient_reaches_keys_or_queue():
  objective = _objective()
  params, state, batch = _start(objective)
  watched = {name: value for name, value in state.items() if name != 'count'}
  with tf.GradientTape() as tape:
    tape.watch((params, watched))
    loss = objective.loss_with_state(params, {**state, **watched}, batch, _SEED)[0]
  online, local = tape.gradient(loss, (params, watched))
  assert all(np.any(value) for value in online.values())
  assert all(value is None for value in local.values())


@pytest.mark.parametrize('momentum', [0.0, 0.9, 1.0])
@pytest.mark.parametrize('n', [1, 3, 6])
def test_three_steps_of_keys_and_queue_follow_numpy(momentum, n):
  objective = _objective(target_momentum=momentum)
  params, state, batch = _start(objective, n)
  queue = list(state['queue'].numpy()[:2])
  kernel = state['target/projector/dense0/kernel'].numpy()
  for step in range(3):
    seed = tf.constant([step, 5])
    _, keys = _queries_and_keys(objective, params, state, n, seed)
    for key in keys:
      queue.insert(0, key)
    carry = objective.loss_with_state(params, state, batch, seed)[2]
    params = networks.stepped(params, 0.1)
    same, after = objective.after_step(params, state, carry)
    assert same is params
    assert list(after) == list(state)
    state = after
    online = params['projector/dense0/kernel'].numpy()
    kernel = momentum * kernel + (1 - momentum) * online
  np.testing.assert_allclose(state['target/projector/dense0/kernel'], kernel, rtol=1e-9)
  filled = min(2 + 3 * n, 4)
  assert int(state['count']) == filled
  np.testing.assert_allclose(state['queue'][:filled], queue[:filled], rtol=1e-5)


def test_state_keeps_its_shapes_in_a_loop_over_batches_of_unknown_sizes():
  objective = _objective()
  params, state, _ = _start(objective)
  batch = networks.tensors(networks.examples(5))

  @tf.function(autograph=False)
  def train(sizes):
    def body(i, state):
      taken = {name: value[: sizes[i]] for name, value in batch.items()}
      _, _, carry = objective.loss_with_state(params, state, taken, _SEED)
      return i + 1, objective.after_step(params, state, carry)[1]

    return tf.while_loop(lambda i, _: i < tf.size(sizes), body, (0, dict(state)))[1]

  assert int(train(tf.constant([0, 0]))['count']) == 2
  assert int(train(tf.constant([1, 0]))['count']) == 3
  assert int(train(tf.constant([1, 5]))['count']) == 4


def test_the_versions_differ_in_head_and_views():
  v1 = moco.build_moco(networks.encoder(), settings=objectives.MocoV1())
  v2 = moco.build_moco(networks.encoder())
  assert list(v1.model.projector.specs) == ['dense0/kernel', 'dense0/bias']
  kernels = [v2.model.projector.specs[f'dense{i}/kernel'].shape for i in (0, 1)]
  assert kernels == [(3, 256), (256, 128)]
  blurs = [x.model.augmentation.blur_probability[0] for x in (v1, v2)]
  assert blurs == [0.0, 0.5]
  state = v1.init_state(v1.init(_SEED))
  assert (state['queue'].shape, int(state['count'])) == ((1024, 128), 0)
