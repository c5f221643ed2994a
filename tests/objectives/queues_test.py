"""MoCo and SwAV, which keep queues, and target networks, against NumPy in float64."""

import collections

import numpy as np
import pytest
import tensorflow as tf

from tests.losses import references
from tests.objectives import networks
from tff_ssl.objectives import moco
from tff_ssl.objectives import swav
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


_KERNEL = 'prototypes/dense0/kernel'


def _swav(**options) -> swav.SwavObjective:
  return swav.SwavObjective(networks.siamese('byol'), 3, objectives.Swav(**options))


def _start_swav(objective, n=4, dtype=tf.float64):
  params = objective.init(_SEED, dtype)
  return params, networks.tensors(networks.examples(n))


def _reference(objective, params, n):
  views = networks.numpy_views(objective.model, networks.examples(n), _SEED)
  z = [networks.numpy_linear(params, 'projector', x) for x in views]
  kernel = params[_KERNEL].numpy()
  kernel = kernel / np.linalg.norm(kernel, axis=0)
  scores = [references.unit(x) @ kernel for x in z]
  loss = 0.0
  for a, b in (scores, scores[::-1]):
    log_p = a / 0.1 - np.log(np.exp(a / 0.1).sum(axis=1, keepdims=True))
    loss -= (references.sinkhorn(b) * log_p).sum(axis=1).mean() / 2
  return loss, z[0]


# As after a step, and as the mean of clients: shorter.
@pytest.mark.parametrize('length', [1.0, 0.3])
def test_loss_and_spread_of_swav_equal_numpy(length):
  objective = _swav()
  params, batch = _start_swav(objective)
  params[_KERNEL] *= length
  loss, metrics, carry = objective.loss_with_state(params, {}, batch, _SEED)
  expected, z = _reference(objective, params, 4)
  assert float(loss) == pytest.approx(expected, rel=1e-5)
  assert not carry
  spread = references.encoding_std(z)
  got = objective.summarize(metrics)['encoding_std']
  assert float(got) == pytest.approx(spread, rel=1e-5)


def test_prototypes_have_length_one_at_first_and_after_each_step():
  objective = _swav()
  params, _ = _start_swav(objective)
  np.testing.assert_allclose(np.linalg.norm(params[_KERNEL], axis=0), 1, rtol=1e-12)
  kernel = params[_KERNEL].numpy()
  for _ in range(3):
    moved = networks.stepped(params, 0.1)
    kernel = kernel + 0.1 * (1 + list(params).index(_KERNEL))
    kernel = kernel / np.linalg.norm(kernel, axis=0)
    params, state = objective.after_step(moved, collections.OrderedDict(), {})
    assert list(params) == list(moved)
    assert not state
    np.testing.assert_allclose(params[_KERNEL], kernel, rtol=1e-12)
    for name in set(params) - {_KERNEL}:
      np.testing.assert_array_equal(params[name], moved[name])


def test_networks_and_prototypes_are_trained():
  """The prototypes' gradient is by their value, not by their direction alone."""
  objective = _swav()
  params, batch = _start_swav(objective)
  with tf.GradientTape() as tape:
    tape.watch(params)
    loss = objective.loss_with_state(params, {}, batch, _SEED)[0]
  gradient = tape.gradient(loss, params)
  assert all(np.any(value) for value in gradient.values())
  # Softmax cross-entropy with constant labels, by hand.
  views = networks.numpy_views(objective.model, networks.examples(4), _SEED)
  z = [networks.numpy_linear(params, 'projector', x) for x in views]
  z = [x / np.linalg.norm(x, axis=1, keepdims=True) for x in z]
  scores = [x @ params[_KERNEL].numpy() for x in z]
  expected = 0.0
  for x, a, b in ((z[0], *scores), (z[1], *scores[::-1])):
    p = np.exp(a / 0.1) / np.exp(a / 0.1).sum(axis=1, keepdims=True)
    expected += x.T @ (p - references.sinkhorn(b)) / 0.1 / (2 * 4)
  np.testing.assert_allclose(gradient[_KERNEL], expected, rtol=1e-3, atol=1e-5)


def test_a_queue_holds_the_last_encodings_of_both_views():
  """Three steps with a queue of six, batches of four: the last six, newest first."""
  objective = _swav(queue_size=6)
  params, _ = _start_swav(objective)
  state = objective.init_state(params)
  assert objective.local_prefixes == ('queue', 'count')
  assert set(state) == {'queue', 'count'}
  kept = np.zeros([0, 4])
  for step in range(3):
    batch = networks.examples(4)
    batch['image'] = np.roll(batch['image'], step + 1, axis=-1)
    loss, _, carry = objective.loss_with_state(
      params, state, networks.tensors(batch), _SEED
    )
    views = networks.numpy_views(objective.model, batch, _SEED)
    z = [networks.numpy_linear(params, 'projector', x) for x in views]
    z = [x / np.linalg.norm(x, axis=1, keepdims=True) for x in z]
    kernel = params[_KERNEL].numpy()
    scores = [x @ kernel for x in z]
    earlier = [kept[:, :2] @ kernel, kept[:, 2:] @ kernel]
    expected = 0.0
    for a, b, e in ((scores[0], scores[1], earlier[1]), (*scores[::-1], earlier[0])):
      log_p = a / 0.1 - np.log(np.exp(a / 0.1).sum(axis=1, keepdims=True))
      q = references.sinkhorn(np.concatenate([b, e]))[:4]
      expected -= (q * log_p).sum(axis=1).mean() / 2
    assert float(loss) == pytest.approx(expected, rel=1e-5)
    params, state = objective.after_step(params, state, carry)
    kept = np.concatenate([np.concatenate(z, axis=1)[::-1], kept])[:6]
    assert int(state['count']) == len(kept)
    np.testing.assert_allclose(state['queue'][: len(kept)], kept, rtol=1e-5)


def test_there_are_3000_prototypes_of_the_projections():
  model = networks.siamese()
  kernel = swav.SwavObjective(model).init(_SEED)[_KERNEL]
  assert kernel.shape == (model.projector.output_dim, 3000)
