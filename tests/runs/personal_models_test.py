"""Tests of clients' own models: kept in the store, or adapted from the global one."""

import types

import numpy as np
import tensorflow as tf

from tests import tiny
from tests.algorithms import harness
from tests.algorithms.ssfl import ssfl
from tff_ssl.encoders import parameter_names
from tff_ssl.federated import client_states
from tff_ssl.federated import phases
from tff_ssl.runs import personal_models


def test_kept_models_are_each_client_s_own():
  """After a round of one of two clients; the other has the global model."""
  weights, own = (ssfl.objective().init(tf.constant([1, n])) for n in range(2))
  states = {
    'alice': client_states.ClientState(0, client_states.NEVER, None),
    'bob': client_states.ClientState(1, 0, own),
  }
  rounds = types.SimpleNamespace(
    states_of=lambda ids: {k: states[k] for k in ids},
    algorithm=types.SimpleNamespace(personal_model=phases.kept_model),
  )
  personal = personal_models.of_states(rounds)
  assert personal(weights, 'alice') is weights
  assert personal(weights, 'bob') is own
  encoders = personal_models.PersonalEncoders(harness.encoder(), personal)
  images = tiny.arrays()['image']
  found = {k: encoders.encode(weights, k)(images) for k in ('alice', 'bob')}
  for client_id, params in (('alice', weights), ('bob', own)):
    selected = parameter_names.select(params, 'encoder')
    expected = harness.encoder().infer(selected, tf.constant(images / 255, tf.float32))
    np.testing.assert_allclose(found[client_id], expected, rtol=1e-4, atol=1e-6)
  assert np.abs(found['alice'] - found['bob']).max() > 1e-4


def test_adapted_models_have_seen_their_client_s_examples():
  def adapt(params, examples):
    assert all(map(tf.is_tensor, (*params.values(), *examples.values())))
    return {
      'w': params['w'] + tf.cast(tf.reduce_sum(examples['example_id']), 'float32')
    }

  personal = personal_models.adapted(tiny.clients(), adapt)
  weights = {'w': np.float32(0.5)}
  # Alice has the examples 10 to 13, Bob 14 to 18.
  assert float(personal(weights, 'alice')['w']) == 46.5
  assert float(personal(weights, 'bob')['w']) == 80.5


def test_a_shared_model_is_everyone_s():
  weights = {'w': np.float32(0.5)}
  assert personal_models.shared(weights, 'bob') is weights
