"""Canary clients, which tell whether a private aggregation clips and adds its noise.

Galen Andrew, Peter Kairouz, Sewoong Oh, Alina Oprea, H. Brendan McMahan, Vinith
Suriyakumar. One-shot Empirical Privacy Estimation for Federated Learning. 2023
(arXiv 2302.03098).

A canary sends a random direction, a thousand times longer than the clip norm. Whoever
knows the direction looks for it in what was released. In many dimensions canaries are
nearly orthogonal, so that one release is as many tests as it has canaries. Directions
that nobody sent show the scores of absent canaries. How well the two kinds of scores
can be told apart bounds epsilon from below. A bound above the claim says that a clip or
the noise is broken.

Deviations: the paper scores the final model of a training and fits Gaussians to the
scores. Here single releases are scored, the fit is `estimate`, and the bound needs no
fit.
"""

import collections
import dataclasses
import math
from typing import NamedTuple

import numpy as np
from scipy import stats
import tensorflow as tf

from tff_ssl.aggregators import combine
from tff_ssl.federated import client_functions
from tff_ssl.federated import followed_norms
from tff_ssl.federated import packs
from tff_ssl.federated import phases
from tff_ssl.federated import processes
from tff_ssl.federated import server
from tff_ssl.runs.privacy import loss_distributions

# The length of a canary's update, in clip norms.
_TOO_LONG = 1000.0
_DIRECTION = 'direction'
_EXCHANGE = 'train'
# Quantiles of the scores that are tried as thresholds.
_GRID = np.linspace(0, 1, 101)


@dataclasses.dataclass(frozen=True)
class Canaries:
  """Numbers of canaries, of rounds, of dimensions, of directions that nobody sends.

  Each round is released several times, as after kills, with the same canaries and new
  noise; the scores are added up.
  """

  clients: int = 200
  rounds: int = 5
  dimension: int = 4096
  absent: int = 1000
  num_packs: int = 2
  releases: int = 1


class Finding(NamedTuple):
  """Epsilon of one round: by its noise, at least (95 % confidence), by a fit."""

  claimed: float
  lower_bound: float
  estimate: float

  @property
  def is_broken(self):
    return self.lower_bound > self.claimed


def audit(aggregation, noise_multiplier, clip_norm, delta, canaries):
  """Audits what an aggregation of these claims does with updates."""
  inside, outside = _scores(aggregation, clip_norm, canaries)
  spread = math.sqrt((np.var(inside) + np.var(outside)) / 2)
  shift = max(0.0, float(np.mean(inside) - np.mean(outside)))
  claimed = math.sqrt(canaries.releases) / noise_multiplier
  return Finding(
    loss_distributions.gaussian_epsilon(claimed, delta),
    lower_bound(inside, outside, delta),
    loss_distributions.gaussian_epsilon(shift / spread, delta),
  )


def _scores(aggregation, clip_norm, canaries):
  """Returns how much of each direction, sent or not, was released, in clip norms."""
  dimension = canaries.dimension
  spec = collections.OrderedDict(
    [
      (_DIRECTION, tf.TensorSpec([dimension], tf.float32)),
      ('example_id', tf.TensorSpec([], tf.int64)),
    ]
  )
  spec = packs.PackSpec(spec) if canaries.num_packs else spec
  process = processes.build(_algorithm(dimension), spec, aggregation)
  generator = np.random.default_rng(0)
  expected = aggregation.expected
  divisor = canaries.clients if expected is None else expected.divisor
  state = process.initialize()
  inside, outside = [], []
  for _ in range(canaries.rounds):
    present = _directions(generator, canaries.clients, dimension)
    absent = _directions(generator, canaries.absent, dimension)
    data = _data(_TOO_LONG * _norm(state, clip_norm) * present, canaries.num_packs)
    released = np.zeros(dimension)
    for _ in range(canaries.releases):
      norm = _norm(state, clip_norm)
      state = process.next(state, data).state
      weights = process.get_model_weights(state).trainable
      # Turns the mean over clients of one example each back into a sum.
      released += divisor / norm * np.asarray(weights[_DIRECTION], float)
    inside.append(present @ released)
    outside.append(absent @ released)
  return np.concatenate(inside), np.concatenate(outside)


def _norm(state, given):
  """Returns the clip norm of the next round's updates: given, or as it has adapted."""
  norms = state.extra.get(followed_norms.NORMS)
  return float(norms[_EXCHANGE][server.UPDATE]) if norms else given


def _algorithm(dimension):
  """Returns an algorithm whose clients send their directions; the model is the mean."""

  def initial():
    zeros = collections.OrderedDict([(_DIRECTION, tf.zeros([dimension]))])
    return server.initial_state(server.as_weights(zeros), 0)

  def each(shared, examples):
    del shared
    sent = tf.reduce_sum(examples[_DIRECTION], axis=0)
    own = collections.OrderedDict([(_DIRECTION, sent)])
    return collections.OrderedDict([(server.UPDATE, own)])

  def receive(state, aggregated):
    return server.with_params(state, aggregated[server.UPDATE]), {}

  exchange = phases.Exchange(
    _EXCHANGE,
    lambda state: collections.OrderedDict(round=state.round),
    client_functions.ClientFunction(each),
    {server.UPDATE: combine.UPDATE},
    receive,
  )
  return phases.Algorithm(initial, [exchange])


def _directions(generator, count, dimension):
  drawn = generator.normal(size=(count, dimension)).astype(np.float32)
  return drawn / np.linalg.norm(drawn, axis=1, keepdims=True)


def _data(directions, num_packs):
  """Returns the data of clients with one example each."""
  fields = [
    collections.OrderedDict(
      [(_DIRECTION, part), ('example_id', np.arange(len(part), dtype=np.int64))]
    )
    for part in np.array_split(directions, num_packs or len(directions))
  ]
  if not num_packs:
    return [tf.data.Dataset.from_tensor_slices(each) for each in fields]
  contents = (packs.content(each, [1] * len(each[_DIRECTION])) for each in fields)
  return [*map(tf.data.Dataset.from_tensors, contents)]


def lower_bound(inside, outside, delta):
  """Bounds epsilon from below with 95 % confidence, by scores of canaries.

  A threshold is chosen on half of the scores. On the other half, guessing 'present'
  above the threshold is right with probability TPR and wrong with probability FPR, and
  (epsilon, delta)-privacy implies TPR <= e^epsilon FPR + delta. Both probabilities are
  bounded by Clopper and Pearson (as in Nasr et al., "Adversary Instantiation", S&P
  2021).
  """
  candidates = np.quantile(inside[::2], _GRID), np.quantile(outside[::2], _GRID)
  threshold = max(
    np.concatenate(candidates),
    key=lambda t: _bound(inside[::2] > t, outside[::2] > t, delta, 0.5),
  )
  return _bound(inside[1::2] > threshold, outside[1::2] > threshold, delta, 0.95)


def _bound(right, wrong, delta, confidence):
  """Returns the bound for one threshold; TPR and FPR share 1 - confidence equally."""
  tail = (1 - confidence) / 2
  hits, false = int(right.sum()), int(wrong.sum())
  at_least = stats.beta.ppf(tail, hits, len(right) - hits + 1) if hits else 0.0
  at_most = 1.0
  if false < len(wrong):
    at_most = stats.beta.ppf(1 - tail, false + 1, len(wrong) - false)
  if at_least <= delta:
    return 0.0
  return max(0.0, math.log((at_least - delta) / at_most))
