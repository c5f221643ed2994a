"""Sums over clients of what they send, for packs and for replayed rounds."""

import collections
from typing import NamedTuple

import tensorflow as tf

from tff_ssl.federated import client_functions
from tff_ssl.federated import clients


class Sums(NamedTuple):
  """Sums over clients: of weight times means, of weights, of totals."""

  means: client_functions.Sent
  weight: tf.Tensor
  totals: client_functions.Sent


def of_client(result: client_functions.ClientResult) -> Sums:
  """Returns the sums over one client."""
  return Sums(
    tf.nest.map_structure(lambda x: x * tf.cast(result.weight, x.dtype), result.means),
    result.weight,
    result.totals,
  )


def of_none(spec: client_functions.ExchangeSpec, sent: client_functions.Sent) -> Sums:
  """Returns the sums over no client.

  Args:
    spec: How what a client sends is combined.
    sent: What a client sends, as `tf.TensorSpec`s.
  """
  means: client_functions.Sent = collections.OrderedDict()
  totals: client_functions.Sent = collections.OrderedDict()
  for name, specs in sent.items():
    (totals if spec.totals(name) else means)[name] = clients.zeros(specs)
  totals.update(spec.lengths(means))
  if spec.counted:
    totals['counts'] = clients.no_counts()
  return Sums(means, tf.zeros([]), totals)
