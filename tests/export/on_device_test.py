"""One step of the file on a device against the simulated client's."""

import collections

import numpy as np
import pytest
import tensorflow as tf

from tests import tiny
from tff_ssl.augment import multiview
from tff_ssl.encoders import cnn
from tff_ssl.encoders import projector
from tff_ssl.export import on_device
from tff_ssl.federated import local_training
from tff_ssl.objectives import byol
from tff_ssl.objectives import dual_encoder
from tff_ssl.objectives import simclr
from tff_ssl.objectives import simsiam
from tff_ssl.objectives import supervised
from tff_ssl.optimization import local

_RATE = 0.1
_SEED = (3, 4)
_OPTIMIZER = local.LocalOptimizer(momentum=0.9, weight_decay=1e-2)


def _encoder(norm='group'):
  return cnn.build_encoder('conv2', tiny.IMAGE_SHAPE, 0.125, norm)


def _objective(name):
  views = multiview.by_name('byol_no_blur')
  if name == 'simsiam':
    return simsiam.build_simsiam(_encoder('batch'), views, (8, 8), 4)
  if name == 'supervised':
    head = projector.build_linear(_encoder().output_dim, tiny.NUM_CLASSES)
    return supervised.SupervisedObjective(_encoder(), head, multiview.by_name('flip'))
  return simclr.SimclrObjective(
    dual_encoder.build_siamese(_encoder(), (8, 8), views), 0.5
  )


@pytest.mark.long_for('simsiam', 'supervised')
@pytest.mark.parametrize('name', ['simclr', 'simsiam', 'supervised'])
def test_a_step_is_that_of_the_simulated_client(name):
  objective, data = _objective(name), tiny.arrays()
  encoder = objective.networks['encoder']
  params = objective.init([0, 1])
  statistics = encoder.init_statistics()
  content = on_device.build(
    objective, params, encoder, 'encoder', statistics, _OPTIMIZER, name == 'supervised'
  )
  if name != 'supervised':
    del data['label']

  interpreter = tf.lite.Interpreter(model_content=content)
  run = {key: interpreter.get_signature_runner(key) for key in ('train', 'infer')}
  save = interpreter.get_signature_runner('save')
  before = {key: np.array(value) for key, value in save().items()}
  told = run['train'](**data, seed=np.int32(_SEED), learning_rate=np.float32(_RATE))
  after = {key: np.array(value) for key, value in save().items()}

  plan = local_training.LocalPlan(optimizer=_OPTIMIZER)
  examples = collections.OrderedDict((k, tf.constant(v)) for k, v in data.items())
  expected = local_training.train(
    objective, plan, params, examples, tf.constant(_SEED), _RATE
  )
  np.testing.assert_allclose(told['loss'], expected.metrics['loss'], atol=1e-5)
  moved = 0.0
  for key, value in expected.params.items():
    own = on_device.name_of(key)
    np.testing.assert_array_equal(before[own], params[key])
    np.testing.assert_allclose(after[own], value, atol=1e-5, err_msg=key)
    moved = max(moved, float(np.max(np.abs(after[own] - before[own]))))
  assert moved > 1e-3
  # Features are those of the parameters after the step, and before it once more.
  trained = {
    key.removeprefix('encoder/'): value
    for key, value in expected.params.items()
    if key.startswith('encoder/')
  }
  image = data['image']
  features = encoder.infer({**trained, **statistics}, image / np.float32(255))
  found = run['infer'](image=image)['features']
  np.testing.assert_allclose(found, features, atol=1e-5)
  interpreter.get_signature_runner('restore')(**before)
  for key, value in save().items():
    np.testing.assert_array_equal(value, before[key])


def test_objective_with_client_state_is_refused():
  objective = byol.build_byol(_encoder(), multiview.by_name('flip'), (8, 8), 8, 0.9)
  with pytest.raises(ValueError, match=r'Byol.* keeps a state on the client'):
    on_device.build(objective, objective.init([0, 1]), _encoder(), 'encoder', {})
