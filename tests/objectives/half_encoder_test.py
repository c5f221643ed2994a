"""Objectives of an encoder in bfloat16: heads and losses compute in float32."""

import dataclasses

import pytest
import tensorflow as tf

from tests.objectives import networks
from tff_ssl.augment import multiview
from tff_ssl.encoders import network
from tff_ssl.encoders import projector
from tff_ssl.encoders import vit
from tff_ssl.objectives import byol
from tff_ssl.objectives import dino
from tff_ssl.objectives import fixmatch
from tff_ssl.objectives import mae
from tff_ssl.objectives import moco
from tff_ssl.objectives import simclr
from tff_ssl.objectives import simsiam
from tff_ssl.objectives import statistics
from tff_ssl.objectives import supervised
from tff_ssl.objectives import swav
from tff_ssl.objectives import uniformity
from tff_ssl.settings import objectives

_SEED = tf.constant([1, 2])
# The mean of each channel: it computes nothing in bfloat16 but reads its input so.
_ENCODER = networks.encoder().with_precision(network.BFLOAT16)
_MODEL = dataclasses.replace(networks.siamese('byol'), encoder=_ENCODER)
_OBJECTIVES = {
  'byol': lambda: byol.ByolObjective(_MODEL, networks.predictor()),
  'cco': lambda: statistics.StatisticsObjective(_MODEL),
  'dino': lambda: dino.DinoObjective(_MODEL, num_prototypes=3),
  'fixmatch': lambda: fixmatch.FixMatchObjective(
    _ENCODER, projector.build_linear(3, 2)
  ),
  'moco': lambda: moco.MocoObjective(_MODEL, objectives.MocoV2(queue_size=4)),
  'simclr': lambda: simclr.SimclrObjective(_MODEL),
  'simsiam': lambda: simsiam.SimSiamObjective(_MODEL, networks.predictor()),
  'supervised': lambda: supervised.SupervisedObjective(
    _ENCODER, projector.build_linear(3, 2), multiview.by_name('none')
  ),
  'swav': lambda: swav.SwavObjective(_MODEL, num_prototypes=3),
  'uniformity': lambda: uniformity.UniformityObjective(_MODEL),
}
# What moves numbers and computes none.
_MOVING = {
  *('Cast', 'Identity', 'Pad', 'Slice', 'StridedSlice', 'Reshape', 'ConcatV2'),
  *('StridedSliceGrad', 'ZerosLike', 'Placeholder', 'IdentityN', 'Shape'),
}


@pytest.mark.parametrize('name', _OBJECTIVES)
def test_only_the_encoder_computes_in_bfloat16(name):
  objective = _OBJECTIVES[name]()

  @tf.function(autograph=False)
  def step(params, state, examples):
    with tf.GradientTape() as tape:
      tape.watch(params)
      loss, metrics, carry = objective.loss_with_state(params, state, examples, _SEED)
    gradient = tape.gradient(loss, params)
    return loss, metrics, gradient, objective.after_step(params, state, carry)

  params = objective.init(_SEED)
  batch = networks.tensors(networks.examples(4))
  traced = step.get_concrete_function(params, objective.init_state(params), batch)
  half = [
    op
    for op in traced.graph.get_operations()
    if tf.bfloat16 in [value.dtype for value in (*op.inputs, *op.outputs)]
  ]
  assert half
  assert {op.type for op in half} <= _MOVING
  floats = [x.dtype for x in traced.outputs if x.dtype.is_floating]
  assert set(floats) == {tf.float32}


def test_the_decoder_of_a_vision_transformer_in_bfloat16_is_in_float32():
  encoder = vit.from_config(vit.ViTConfig(8, 1, 2, 1), networks.SHAPE)
  objective = mae.build_mae(encoder.with_precision(network.BFLOAT16))
  assert objective.encoder.precision == network.BFLOAT16
  assert objective.decoder.precision == network.FLOAT32
  examples = networks.tensors(networks.examples(4))
  encodings = objective.encode(objective.init(_SEED), examples, _SEED)
  assert {value.dtype for value in encodings.values() if value.dtype.is_floating} == {
    tf.float32
  }
