"""An audit of private aggregation: tests whether canary clients show in released sums.

Galen Andrew, Peter Kairouz, Sewoong Oh, Alina Oprea, H. Brendan McMahan, Vinith
Suriyakumar. One-shot Empirical Privacy Estimation for Federated Learning. 2023
(arXiv 2302.03098).

A canary sends a random direction, a thousand times longer than the clip norm. Whoever
knows the direction looks for it in what was released. In many dimensions canaries are
nearly orthogonal, so that one release is as many tests as it has canaries. Directions
that nobody sent show the scores of absent canaries. How well the two kinds of scores
can be told apart bounds epsilon from below. A bound above the claim says that something
is broken, such as a clip or the noise. A bound below it says nothing about what an
audit does not try.

A round that was released several times, after kills, had the same clients each time. So
its canaries are sent as often, and their scores are added up: whoever has all releases
would do the same.

The audit covers the aggregation as the builder makes it, packs of clients included, and
not a training: one value, one round, no cohort drawn. `AuditFinding.claimed` is the
epsilon of the releases of this one round.

Deviations: the paper scores the final model of a training and fits Gaussians to the
scores. Here single releases are scored, the fit is `estimate`, and the bound needs no
fit.
"""

import collections
import dataclasses
import math
from typing import Any

import numpy as np
from scipy import stats
import tensorflow as tf

from tff_ssl.aggregators import aggregations
from tff_ssl.aggregators import combine
from tff_ssl.computing import checks
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
  """How an audit is made.

  Attributes:
    clients: Canaries of a round.
    rounds: Number of rounds, each with new canaries.
    dimension: Dimension of their directions: many times `clients`.
    absent: Directions of a round that no client sends, for comparison.
    num_packs: TFF values that the clients are packed into; 0: each client is one.
    seed: Seed of the directions.
    silent: Further clients of a round, which send zeros. Where clients add the noise,
      canaries and silent clients together must be as many as all of the noise takes.
    releases: How often each round is released, with the same canaries and new noise.
  """

  clients: int = 200
  rounds: int = 5
  dimension: int = 4096
  absent: int = 1000
  num_packs: int = 2
  seed: int = 0
  silent: int = 0
  releases: int = 1

  def __post_init__(self):
    checks.at_least(
      1,
      clients=self.clients,
      rounds=self.rounds,
      dimension=self.dimension,
      absent=self.absent,
      releases=self.releases,
    )
    checks.at_least(0, num_packs=self.num_packs, silent=self.silent)


@dataclasses.dataclass(frozen=True)
class AuditFinding:
  """What an audit has found about the releases of one round.

  Attributes:
    claimed: Epsilon by the noise multiplier, for one client more or less.
    lower_bound: Epsilon is at least this, with 95 % confidence.
    estimate: Epsilon of two Gaussians fitted to the scores, as in the paper.
    delta: delta of all three.
  """

  claimed: float
  lower_bound: float
  estimate: float
  delta: float

  @property
  def is_broken(self) -> bool:
    """Returns whether the claim cannot be true."""
    return self.lower_bound > self.claimed


def audit(
  aggregation: aggregations.Aggregation,
  noise_multiplier: float,
  clip_norm: float | None,
  delta: float,
  canaries: Canaries | None = None,
) -> AuditFinding:
  """Audits what an aggregation does with updates, in the open TFF context.

  Args:
    aggregation: A private one.
    noise_multiplier: The claimed one, of an update's release.
    clip_norm: Clip norm of updates, in the first round if it adapts; None: 1.
    delta: delta of (epsilon, delta).
    canaries: How the audit is made; None: the defaults.
  """
  canaries = canaries or Canaries()
  inside, outside = scores(aggregation, clip_norm, canaries)
  spread = math.sqrt((np.var(inside) + np.var(outside)) / 2)
  shift = max(0.0, float(np.mean(inside) - np.mean(outside)))
  return AuditFinding(
    loss_distributions.gaussian_epsilon(
      math.sqrt(canaries.releases) / noise_multiplier, delta
    ),
    lower_bound(inside, outside, delta),
    loss_distributions.gaussian_epsilon(shift / spread, delta) if spread else math.inf,
    delta,
  )


def scores(
  aggregation: aggregations.Aggregation, clip_norm: float | None, canaries: Canaries
) -> tuple[np.ndarray, np.ndarray]:
  """Returns how much of each direction is in what was released, in clip norms.

  Args:
    aggregation: What the canaries go through.
    clip_norm: See `audit`.
    canaries: How many.

  Returns:
    The scores of directions that a client sent, [rounds x clients], and of those that
    nobody sent, [rounds x absent].
  """
  spec: Any = collections.OrderedDict(
    [
      (_DIRECTION, tf.TensorSpec([canaries.dimension], tf.float32)),
      ('example_id', tf.TensorSpec([], tf.int64)),
    ]
  )
  process = processes.build(
    _algorithm(canaries.dimension),
    packs.PackSpec(spec) if canaries.num_packs else spec,
    aggregation,
  )
  generator = np.random.default_rng(canaries.seed)
  expected = aggregation.expected
  everybody = canaries.clients + canaries.silent
  divisor = everybody if expected is None else expected.divisor
  zeros = np.zeros([canaries.silent, canaries.dimension], np.float32)
  state = process.initialize()
  inside, outside = [], []
  for _ in range(canaries.rounds):
    present = _directions(generator, canaries.clients, canaries.dimension)
    absent = _directions(generator, canaries.absent, canaries.dimension)
    sent = np.concatenate([_TOO_LONG * _norm(state, clip_norm) * present, zeros])
    data = _data(sent, canaries.num_packs)
    released = np.zeros(canaries.dimension)
    for _ in range(canaries.releases):
      norm = _norm(state, clip_norm)
      state = process.next(state, data).state
      weights = process.get_model_weights(state).trainable
      # Turns the mean over clients of one example each back into a sum.
      released += divisor / norm * np.asarray(weights[_DIRECTION], float)
    inside.append(present @ released)
    outside.append(absent @ released)
  return np.concatenate(inside), np.concatenate(outside)


def _norm(state: Any, given: float | None) -> float:
  """Returns the clip norm of the next round's updates: given, or as it has adapted."""
  if not (norms := state.extra.get(followed_norms.NORMS)):
    return 1.0 if given is None else given
  return float(norms[_EXCHANGE][server.UPDATE])


def _algorithm(dimension: int) -> phases.Algorithm:
  """Returns an algorithm whose clients send their directions; the model is the mean."""

  def initial():
    zeros = collections.OrderedDict([(_DIRECTION, tf.zeros([dimension]))])
    return server.initial_state(server.as_weights(zeros), 0)

  def each(shared, examples):
    del shared
    sent = collections.OrderedDict(
      [(_DIRECTION, tf.reduce_sum(examples[_DIRECTION], axis=0))]
    )
    return collections.OrderedDict([(server.UPDATE, sent)])

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


def _directions(
  generator: np.random.Generator, count: int, dimension: int
) -> np.ndarray:
  drawn = generator.normal(size=(count, dimension)).astype(np.float32)
  return drawn / np.linalg.norm(drawn, axis=1, keepdims=True)


def _data(directions: np.ndarray, num_packs: int) -> list[tf.data.Dataset]:
  """Returns the data of clients with one example each."""
  fields = [
    collections.OrderedDict(
      [(_DIRECTION, part), ('example_id', np.arange(len(part), dtype=np.int64))]
    )
    for part in np.array_split(directions, num_packs or len(directions))
  ]
  if not num_packs:
    return [tf.data.Dataset.from_tensor_slices(each) for each in fields]
  return [packs.pack_dataset(each, [1] * len(each[_DIRECTION])) for each in fields]


def lower_bound(inside: np.ndarray, outside: np.ndarray, delta: float) -> float:
  """Bounds epsilon from below, by how well scores tell present canaries from absent.

  A threshold is chosen on half of the scores. On the other half, guessing 'present'
  above the threshold is right with probability TPR and wrong with probability FPR, and
  (epsilon, delta)-privacy implies TPR <= e^epsilon FPR + delta. Both probabilities are
  bounded by Clopper and Pearson (as in Nasr et al., "Adversary Instantiation", S&P
  2021).

  Args:
    inside: Scores of canaries that were present, at least two.
    outside: Scores of canaries that were absent, at least two.
    delta: delta of epsilon.

  Returns:
    At least 0; a bound with 95 % confidence.
  """
  candidates = np.concatenate(
    [np.quantile(inside[::2], _GRID), np.quantile(outside[::2], _GRID)]
  )
  threshold = max(
    candidates, key=lambda t: _bound(inside[::2] > t, outside[::2] > t, delta, 0.5)
  )
  return _bound(inside[1::2] > threshold, outside[1::2] > threshold, delta, 0.95)


def _bound(
  right: np.ndarray, wrong: np.ndarray, delta: float, confidence: float
) -> float:
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
