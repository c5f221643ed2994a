"""Projectors have a bias in their last layer only where it does something."""

import collections

import numpy as np
import pytest
import tensorflow as tf

from binaries.building import data
from binaries.building import encoders
from binaries.building import objectives
from binaries.config import programs
from tests.binaries import in_process
from tests.binaries import launch
from tff_ssl.objectives import contextual
from tff_ssl.objectives import dual_encoder

# An objective and a task -> a row of a program: of all objectives with a projector,
# of one modality and, if they take two, of two.
_ROWS = {}
for _program in programs.NAMES:
  for _method, _row in programs.load(_program).rows.items():
    for _objective, _config in _row.items():
      for _task in ('digits', 'digits_halves'):
        if hasattr(_config.objective, 'projector') and (
          _task == 'digits' or _objective in objectives.TWO_TOWERS
        ):
          _ROWS.setdefault(
            (_objective, _task), (_program, f'{_method} {_objective}', _task)
          )
_LOSSES = [
  *_ROWS.values(),
  (*_ROWS['cco', 'digits'], '--objective=encoding_norm=1'),
]
# Batch norm in the predictor ignores a shift, and no gradient comes from the target.
# The bias would move the target, but nothing trains it.
_UNTRAINED = ('simsiam', 'byol')
_SMALL = '--encoder=conv2:width=0.125'
_SEED = tf.constant([1, 2])


def _built(program, row, task, *flags):
  method, objective = row.split()
  # Two modalities are the two views.
  views = (launch.FLIP,) if task == 'digits' else ()
  line = (f'--task={task}', f'--method={method}', f'--objective={objective}')
  config = in_process.read(
    program, ' '.join((*line, *views, '--objective=projector=8/8', _SMALL, *flags))
  )
  loaded = data.load_task(config)
  examples = collections.OrderedDict(
    example_id=tf.range(6, dtype=tf.int64), label=tf.range(6) % 3
  )
  for field in loaded.shapes:
    examples[field] = tf.constant(loaded.train[field][:6])
  return objectives.build(config, encoders.build(config, loaded), loaded), examples


def _last_bias(net):
  """Returns the name of the last layer's bias, None if it has none."""
  last = list(net.specs)[-1]
  return last if last.endswith('/bias') else None


def _heads(objective):
  """Returns the projectors by prefix, with the name of the last bias or None."""
  return {
    prefix: _last_bias(net)
    for prefix, net in objective.networks.items()
    if 'projector' in prefix
  }


def _shift_is_ignored(objective, examples, params):
  """Returns whether a shift of each network's encodings leaves the loss as it is."""
  encodings = objective.encode(params, examples, _SEED)
  shifts = np.random.default_rng(0).normal(size=(2, 8))
  if len(_heads(objective)) == 1:
    shifts[1] = shifts[0]
  moved = collections.OrderedDict(
    (name, encodings[name] + shift)
    for name, shift in zip(('f', 'g'), shifts, strict=True)
  )
  before, after = (
    float(objective.with_seed(_SEED).loss_of_encodings(each, examples)[0])
    for each in (encodings, moved)
  )
  return after == pytest.approx(before, rel=1e-12)


@pytest.mark.parametrize('row', _LOSSES, ids=' '.join)
def test_a_last_bias_is_there_if_it_has_a_gradient(row):
  objective, examples = _built(*row)
  if isinstance(objective, contextual.ContextObjective) or row[1].endswith(_UNTRAINED):
    assert None not in _heads(objective).values()
    return
  params = objective.init(_SEED, tf.float64)
  if isinstance(objective, dual_encoder.PairObjective):
    ignored = _shift_is_ignored(objective, examples, params)
    for prefix, bias in _heads(objective).items():
      assert (bias is None) == ignored, prefix
  with tf.GradientTape() as tape:
    tape.watch(params)
    loss, *_ = objective.loss_with_state(
      params, objective.init_state(params), examples, _SEED
    )
  gradient = tape.gradient(loss, params)
  for prefix, bias in _heads(objective).items():
    if bias is not None:
      names = (f'{prefix}/{bias}', f'{prefix}/{bias.replace("bias", "kernel")}')
      of_bias, of_kernel = (np.linalg.norm(gradient[name]) for name in names)
      assert of_bias > 1e-12 * of_kernel > 0, f'{names[0]} does nothing.'
