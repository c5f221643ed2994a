"""FedCA's pieces: what a client sends, and what the server keeps of it."""

import collections

import numpy as np
import pytest
import tensorflow as tf

from tests.algorithms import dictionaries
from tests.algorithms import harness
from tests.algorithms.labels_at_server import labels
from tff_ssl.algorithms import fedavg
from tff_ssl.algorithms import fedca
from tff_ssl.objectives import dictionary_contrast
from tff_ssl.objectives import simclr as simclr_lib


@pytest.mark.long
@pytest.mark.parametrize(('slots', 'full'), [(0, True), (dictionaries.SLOTS, False)])
def test_without_dictionary_and_alignment_a_client_trains_as_in_fedavg(slots, full):
  """With no slot at all, and with slots of which none is filled yet."""
  plan = dictionaries.config(slots)
  got = dictionaries.visit(4, plan, dictionaries.objective(beta=0.0), full)
  simclr = simclr_lib.SimclrObjective(harness.model('mild'))
  expected, _ = harness.visit(
    fedavg.client_function(simclr, labels.CLIENT_CONFIG),
    fedavg.sent_kinds(simclr),
    dictionaries.shared({}),
    dictionaries.batch(4),
  )
  assert np.abs(harness.flat(expected.means['update'])).max() > 1e-3
  for name, values in expected.means.items():
    exact = harness.flat(got.means[name]) - harness.flat(values)
    # To the bit without slots: a sum with zeros in it may be rounded otherwise.
    assert np.abs(exact).max() <= (1e-6 if slots else 0), name
  assert float(got.weight) == float(expected.weight)
  assert got.totals == expected.totals


@pytest.mark.parametrize('number', [4, 2])
def test_a_client_sends_unit_projections_of_its_images_at_its_number(number):
  params = dictionaries.objective().init(dictionaries.SEED)
  result = dictionaries.visit(number)
  rows, filled = dictionaries.sum_of(result)
  # Client 4 has four images for three slots, client 2 has two.
  expected = np.zeros((dictionaries.POPULATION, dictionaries.SLOTS))
  expected[number, : dictionaries.SIZE_OF[number]] = 1
  np.testing.assert_allclose(filled, expected, atol=1e-6)
  trained = {n: params[n] - u for n, u in result.means['update'].items()}
  z = harness.model().project(trained, dictionaries.batch(number)['image']).numpy()
  z /= np.linalg.norm(z, axis=1, keepdims=True)
  distance = np.linalg.norm(rows[number][:, np.newaxis] - z[np.newaxis], axis=2)
  count = min(dictionaries.SLOTS, dictionaries.SIZE_OF[number])
  assert len(set(np.argmin(distance, axis=1)[:count])) == count
  np.testing.assert_allclose(np.min(distance, axis=1)[:count], 0, atol=1e-5)
  assert not np.any(np.delete(rows, number, axis=0))
  assert not np.any(rows[number][count:])
  assert any(np.any(value) for value in result.means['update'].values())


def test_a_draw_depends_on_the_round_and_the_client_alone():
  many = harness.tensors(harness.arrays(12))
  draws = [tuple(fedca.draw(many, (5, k), 4).numpy()) for k in range(6)]
  assert all(len(set(d)) == 4 and max(d) < 12 for d in draws)
  assert len(set(draws)) > 3
  assert draws[0] == tuple(fedca.draw(many, (5, 0), 4).numpy())
  assert draws[0] == tuple(fedca.draw(many, (5, 0), 6).numpy())[:4]
  assert sorted(fedca.draw(many, (5, 0), 99).numpy()) == list(range(12))


def test_the_dictionary_and_the_base_model_move_a_client():
  objective = dictionaries.objective()
  start = harness.flat(
    dictionaries.visit(4, full=False, minimised=dictionaries.objective(0.0)).means[
      'update'
    ]
  )
  for options in (
    {'minimised': objective, 'full': False},
    {'minimised': dictionaries.objective(0)},
  ):
    other = harness.flat(dictionaries.visit(4, **options).means['update'])
    assert harness.relative(other, start) > 1e-2
  # One example has nothing to be told from but what others have shared.
  alone = dictionaries.visit(4, size=1, minimised=dictionaries.objective(0.0))
  assert np.abs(harness.flat(alone.means['update'])).max() > 1e-4


def test_empty_and_nonfinite_clients_send_zeros():
  params = dictionaries.objective().init(dictionaries.SEED)
  broken = collections.OrderedDict((n, np.nan * v) for n, v in params.items())
  for options, counted in (
    ({'size': 0}, 'empty_clients'),
    ({'params': broken}, 'nonfinite_clients'),
  ):
    result = dictionaries.visit(4, **options)
    assert float(result.weight) == 0
    assert int(result.totals['counts'][counted]) == 1
    assert int(result.totals['counts']['examples']) == 0
    assert not np.any(harness.flat(tf.nest.flatten(result.means)))


def test_rows_that_are_not_finite_are_no_part_of_a_mean():
  """A step so long that the model is finite, and what it makes of an image is not."""
  config = dictionaries.config(training=fedavg.Training())
  shared = dictionaries.shared(
    dictionaries.context(dictionaries.objective(), config, full=True)
  )
  shared['rate'] = tf.constant(1e22)
  result = dictionaries.sends(
    fedca.client_function(dictionaries.objective(), *config),
    shared,
    dictionaries.batch(4),
  )
  assert float(result.weight) == 0
  assert int(result.totals['counts']['nonfinite_clients']) == 1
  assert not np.any(harness.flat(tf.nest.flatten(result.means)))


def test_the_server_keeps_what_each_client_sent_last():
  objective, config = dictionaries.objective(), dictionaries.config()
  before = dictionaries.context(objective, config, full=True)
  generator = np.random.default_rng(4)
  rows = generator.normal(
    size=(dictionaries.POPULATION, dictionaries.SLOTS, harness.DIMENSION)
  )
  filled = np.zeros((dictionaries.POPULATION, dictionaries.SLOTS))
  filled[1], filled[4, :2] = 1, 1
  rows *= filled[:, :, np.newaxis]
  # With the noise of sums that are quantised.
  noise = 1e-3 * generator.normal(size=filled.shape)
  aggregated = collections.OrderedDict(
    [
      (dictionary_contrast.ROWS, tf.constant(rows, tf.float32)),
      (dictionary_contrast.FILLED, tf.constant(filled + noise, tf.float32)),
    ]
  )
  after = fedca.update_dictionary(before, aggregated)
  assert list(after) == list(before)
  for k in range(dictionaries.POPULATION):
    if k not in (1, 4):
      np.testing.assert_array_equal(
        after[dictionary_contrast.ROWS][k], before[dictionary_contrast.ROWS][k]
      )
    np.testing.assert_array_equal(
      after[dictionary_contrast.FILLED][k],
      filled[k] if k in (1, 4) else [True] * dictionaries.SLOTS,
    )
  unit = rows[1] / np.linalg.norm(rows[1], axis=1, keepdims=True)
  np.testing.assert_allclose(after[dictionary_contrast.ROWS][1], unit, rtol=1e-5)
  assert not np.any(after[dictionary_contrast.ROWS][4, 2])
