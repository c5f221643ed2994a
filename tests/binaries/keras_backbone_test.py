"""Runs that start from a model of keras.applications, or a run's encoder.keras."""

import json
import re

import numpy as np
import pytest
import tensorflow as tf

from binaries import dcco
from binaries import fedavg_ssl
from tests.binaries import in_process
from tests.binaries import launch
from tff_ssl.encoders import keras_applications
from tff_ssl.encoders import registry
from tff_ssl.export import encoder_file

_ENCODER = 'keras_mobilenet_v2:width=0.35,batch_norm=folded'


@pytest.mark.parametrize(
  ('encoder', 'file', 'said'),
  [
    ('resnet8', 'a.h5', 'weights of keras.applications need one of keras_resnet50, ke'),
    (_ENCODER, 'a.h5', 'a.h5 is not a file of Keras, or damaged'),
    (_ENCODER, 'c.txt', "c.txt', which is a file; it must be the folder of a run"),
  ],
)
def test_a_file_of_another_kind_is_refused_before_the_run(
  tmp_path, encoder, file, said
):
  for name in ('a.h5', 'a.keras', 'c.txt'):
    (tmp_path / name).write_text('no model')
  flags = f'--encoder={encoder} --init_from={tmp_path}/{file} --run_dir={tmp_path}/run'
  with pytest.raises(ValueError, match=re.escape(said)):
    in_process.call(fedavg_ssl, *flags.split())
  assert not (tmp_path / 'run' / 'checkpoints').exists()


@pytest.mark.long
def test_a_run_starts_from_a_model_of_keras(tmp_path):
  model = tf.keras.applications.MobileNetV2(
    alpha=0.35, include_top=False, weights=None, input_shape=(32, 32, 3)
  )
  model.save(tmp_path / 'model.keras')
  flags = f'--encoder={_ENCODER} --init_from={tmp_path}/model.keras'
  still = '--objective=projector=32/32 --server=learning_rate=1e-12 --rounds=1'
  in_process.finished(
    dcco, *launch.TINY, *flags.split(), *still.split(), f'--run_dir={tmp_path}/run'
  )
  parent = json.loads((tmp_path / 'run' / 'parent.json').read_text())
  assert parent['name'].endswith('/model.keras')
  # What is saved has the weights, and reads the pixels as they did.
  encoder = registry.build_encoder(
    'keras_mobilenet_v2', (8, 8, 1), 0.35, normalization='none'
  )
  params = keras_applications.read(tmp_path / 'model.keras', encoder)
  x = np.random.default_rng(0).random((2, 8, 8, 1)).astype(np.float32)
  saved = encoder_file.read(tmp_path / 'run' / 'encoder.keras')
  np.testing.assert_allclose(saved(x), encoder.apply(params, x), atol=1e-4)
