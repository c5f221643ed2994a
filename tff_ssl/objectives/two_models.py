"""A personal and the global model: their parameters and metrics in one structure.

The two models' parameters are under 'global/' and 'personal/', with the names that the
objective gives them. The global model's metrics keep their names.
"""

import collections

import tensorflow as tf

from tff_ssl.encoders import parameter_names
from tff_ssl.objectives import base

GLOBAL, PERSONAL = 'global', 'personal'
OF_PERSONAL = f'{PERSONAL}_'
# Scalars that are reported as they are.
_AS_THEY_ARE = ('global_loss', 'personal_loss', 'consensus')


def join(params: base.Params, personal: base.Params) -> base.Params:
  """Returns the parameters of both models as one structure.

  Args:
    params: Theta, the global model's.
    personal: theta_k, the client's own, with the same names.
  """
  both = parameter_names.with_prefix(params, GLOBAL)
  both.update(parameter_names.with_prefix(personal, PERSONAL))
  return both


def split(params: base.Params) -> tuple[base.Params, base.Params]:
  """Returns the global and the personal model's parameters: the inverse of `join`."""
  return parameter_names.select(params, GLOBAL), parameter_names.select(
    params, PERSONAL
  )


def metrics_of_both(metrics: base.Metrics, personal: base.Metrics) -> base.Metrics:
  """Returns the metrics of both models, the personal one's as 'personal_...'."""
  both = collections.OrderedDict(metrics)
  both.update((OF_PERSONAL + name, value) for name, value in personal.items())
  return both


def summarize(objective: base.Objective, metrics: base.Metrics) -> base.Metrics:
  """Turns averaged metrics of both models into what a round reports.

  Args:
    objective: The objective of each model.
    metrics: From `metrics_of_both`; losses and the consensus stay as they are.
  """
  parts: dict[str, base.Metrics] = {
    '': collections.OrderedDict(),
    OF_PERSONAL: collections.OrderedDict(),
  }
  summary: dict[str, tf.Tensor] = {}
  for name, value in metrics.items():
    if name in _AS_THEY_ARE:
      summary[name] = value
    else:
      prefix = OF_PERSONAL if name.startswith(OF_PERSONAL) else ''
      parts[prefix][name.removeprefix(prefix)] = value
  for prefix, part in parts.items():
    for name, value in objective.summarize(part).items():
      summary[prefix + name] = value
  return collections.OrderedDict(summary)
