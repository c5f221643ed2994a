"""Training from scratch on few labels alone: initial weights, and draws of labels."""

import collections
from collections.abc import Callable, Sequence
import functools
from typing import Any

import tensorflow as tf

from binaries.config import run_config
from binaries.experiment import results
from tff_ssl.encoders import network
from tff_ssl.encoders import parameter_names
from tff_ssl.evaluation import fine_tuning
from tff_ssl.evaluation import label_draws
from tff_ssl.federated import server
from tff_ssl.objectives import base
from tff_ssl.objectives import dual_encoder

# Trains, as `fine_tuning.FineTuning` returns it.
Train = Callable[..., fine_tuning.Finetuned]


def initial_params(
  config: run_config.RunConfig, encoder: network.Network
) -> network.Params:
  """Returns the parameters from which every algorithm starts with a run's seed.

  All objectives draw the same parameters for an encoder, whatever comes after it.

  Args:
    config: The run.
    encoder: The network.
  """
  networks = {dual_encoder.ENCODER: encoder}
  seed = server.seed_of_weights(config.random_seed)
  weights = base.init_networks(seed, tf.float32, networks)
  return parameter_names.select(weights, dual_encoder.ENCODER)


def evaluate(
  evaluate_draw: Callable[..., results.Numbers],
  train: Train,
  initial: tuple[network.Params, network.Params],
  frozen: Sequence[str],
  fractions: Sequence[float],
) -> results.Numbers:
  """Trains from initial parameters with only the labels of each fraction.

  Args:
    evaluate_draw: (parameters, methods, [fraction], `finetune_fn`, `tested`, draw) ->
      the numbers of one draw of labels.
    train: Trains all of an encoder's parameters.
    initial: All parameters of the encoder, and those that are trained.
    frozen: The methods that also evaluate the encoders trained this way.
    fractions: Shares of the labels.

  Returns:
    `finetune/...` of the classifiers that are trained end to end, and the numbers of
    the other methods. Of few labels, these are means over fewer draws than probes have,
    because the encoder is trained for each.
  """
  numbers: results.Numbers = collections.OrderedDict()
  whole, trainable = initial
  for fraction in fractions:
    share = f'{100 * fraction:g}%'
    of_draws: list[results.Numbers] = []
    for draw in range(label_draws.FROM_SCRATCH):
      trained: list[fine_tuning.Finetuned] = []
      keep = keeping(functools.partial(train, trainable), trained)
      of_draw = evaluate_draw(whole, ['finetune'], [fraction], keep, None, draw)
      (tuned,) = trained
      of_draw.update(
        evaluate_draw(tuned.params, frozen, [fraction], None, tuned.features, draw)
      )
      of_draws.append(of_draw)
      if not label_draws.are_few(of_draw[f'labels/{share}'], fraction):
        break
    numbers.update(label_draws.mean(of_draws))
    if len(of_draws) > 1:
      numbers[f'{label_draws.NUMBER}/{share}'] = float(len(of_draws))
  return numbers


def keeping(train: Train, trained: list[fine_tuning.Finetuned]) -> Train:
  """Returns `train`, made to append each of its results to a list.

  Args:
    train: Trains an encoder.
    trained: The list.
  """

  def keep(*args: Any, **kwargs: Any) -> fine_tuning.Finetuned:
    trained.append(train(*args, **kwargs))
    return trained[-1]

  return keep
