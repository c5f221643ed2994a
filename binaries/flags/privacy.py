"""Flags of how what leaves the clients is combined: in the clear, secure, private.

    python -m binaries.dcco --aggregation=secure --runtime=in_process ...
    python -m binaries.dcco --aggregation=private --privacy_epsilon=8 \
        --privacy_update_clip=1 --privacy_statistics_clip=1 ...

What each promises, and what not: docs/privacy.md.
"""

from collections.abc import Sequence
import math
from typing import Any

from absl import flags

from binaries.flags import common
from binaries.flags import hosts
from tff_ssl.aggregators import aggregation as aggregation_lib
from tff_ssl.runtime import accounting

PLAIN, SECURE, PRIVATE = 'plain', 'secure', 'private'

AGGREGATION = flags.DEFINE_enum(
  'aggregation',
  PLAIN,
  (PLAIN, SECURE, PRIVATE),
  'How what leaves the clients is combined: plain: sums in the clear; secure: sums of '
  'masked integers, of --runtime=in_process, a simulation; private: each client is '
  'clipped and Gaussian noise added to the sums (central differential privacy).',
)
SECURE_BOUND = flags.DEFINE_float(
  'secure_bound',
  4096.0,
  "Of secure sums: each entry of n_k times a client's values is clipped to it, and "
  'rounded to 2^-31 of it.',
)
SECURE_EXAMPLES = flags.DEFINE_integer(
  'secure_examples',
  4096,
  'Of secure sums: examples that a client may have.',
  lower_bound=1,
)
SECURE_ROWS = flags.DEFINE_bool(
  'secure_rows_of_one_client',
  False,
  'Of secure sums: whether an algorithm may take them that sends rows of one client '
  'alone, which a sum shows as they are (FedCA, FedMatch).',
)
NOISE = flags.DEFINE_float(
  'privacy_noise_multiplier',
  None,
  'Noise of a round over the clip norm, of all that it releases together; by default '
  'the least that --privacy_epsilon needs.',
)
EPSILON = flags.DEFINE_float(
  'privacy_epsilon',
  None,
  'The budget: a run ends before a round would exceed it. Without '
  '--privacy_noise_multiplier the noise is chosen so that --rounds just fit.',
)
DELTA = flags.DEFINE_float(
  'privacy_delta', 1e-5, 'Of (epsilon, delta); below one over the number of clients.'
)
UPDATE_CLIP = flags.DEFINE_float(
  'privacy_update_clip',
  None,
  "l2 norm to which n_k times a client's update is clipped.",
)
STATISTICS_CLIP = flags.DEFINE_float(
  'privacy_statistics_clip',
  None,
  'The same of n_k times its statistics: encoding statistics of DCCO, population '
  'statistics of batch norm.',
)
METRICS_CLIP = flags.DEFINE_float(
  'privacy_metrics_clip',
  None,
  'The same of n_k times its metrics, which then cost privacy; by default they do not '
  'leave the client, and metrics.csv has none.',
)
QUANTILE = flags.DEFINE_float(
  'privacy_clip_quantile',
  None,
  'The share of clients that clip norms should leave as they are; they follow it from '
  'round to round, beginning with those given. By default they stay.',
)
_OF_SECURE = (SECURE_BOUND.name, SECURE_EXAMPLES.name, SECURE_ROWS.name)
_OF_PRIVATE = (
  NOISE.name,
  EPSILON.name,
  DELTA.name,
  UPDATE_CLIP.name,
  STATISTICS_CLIP.name,
  METRICS_CLIP.name,
  QUANTILE.name,
)
# Those of algorithms that no noise is added to.
OF_SUMS = (AGGREGATION.name, *_OF_SECURE)
# Those that any federated algorithm takes.
NAMES = (*OF_SUMS, *_OF_PRIVATE)


def is_secure() -> bool:
  """Returns whether sums are to be secure."""
  return AGGREGATION.value == SECURE


def is_private() -> bool:
  """Returns whether noise is to be added."""
  return AGGREGATION.value == PRIVATE


def settle() -> None:
  """Gives flags the values that follow from the aggregation, where none is given."""
  if is_secure():
    common.fill({common.RUNTIME.name: common.IN_PROCESS})
  if is_secure() or QUANTILE.value is not None:
    # Each client is seen by itself.
    common.fill({common.PACKS.name: 0})
  if is_private():
    # What is repeated after a kill costs privacy again.
    common.fill({common.CHECKPOINT_EVERY.name: 1})


def check(rows_of_one_client: bool = False) -> None:
  """Checks the flags of the aggregation, without data.

  Args:
    rows_of_one_client: Whether the algorithm sends rows that are one client's alone.

  Raises:
    ValueError: If one is out of range, or does not fit another.
  """
  for names, taker in ((_OF_SECURE, SECURE), (_OF_PRIVATE, PRIVATE)):
    for name in names:
      common.refuse_stray(name, AGGREGATION.name, (taker,))
  if is_secure():
    _check_secure(rows_of_one_client)
  if is_private():
    _check_private()


def _check_secure(rows_of_one_client: bool) -> None:
  if common.RUNTIME.value != common.IN_PROCESS:
    raise ValueError(
      f'--runtime={common.RUNTIME.value} is given with --aggregation=secure; it must '
      "be in_process, for TFF's worker has no secure sums."
    )
  _refuse_together('secure', hosts.PARTS, 'the parts of a round are sums')
  if common.PACKS.value:
    raise ValueError(
      f'--packs={common.PACKS.value} is given with --aggregation=secure; it must be 0, '
      'for each client masks its own values.'
    )
  if common.PARTICIPATION.value is None and common.CLIENTS_PER_ROUND.value < 2:
    raise ValueError(
      f'--clients_per_round={common.CLIENTS_PER_ROUND.value} is given with '
      '--aggregation=secure; it must be at least 2, for a sum over one client is its '
      'value.'
    )
  if rows_of_one_client and not SECURE_ROWS.value:
    raise ValueError(
      '--aggregation=secure is given to an algorithm whose clients send rows that are '
      "one client's alone, with zeros in the place of the others: their sum shows each "
      "client's as they are. Where that is known and wanted, give "
      f'--{SECURE_ROWS.name}.'
    )
  if SECURE_ROWS.value and not rows_of_one_client:
    raise ValueError(
      f'--{SECURE_ROWS.name} is given to an algorithm whose clients send no rows of '
      'their own; it is for FedCA and FedMatch only.'
    )
  aggregation_lib.secure(SECURE_BOUND.value, SECURE_EXAMPLES.value)


def _check_private() -> None:
  if common.RUNTIME.value == common.HOSTS:
    raise ValueError(
      '--runtime=hosts is given with --aggregation=private; it must be worker or '
      'in_process, for a host that is given up may have drawn noise that nobody counts.'
    )
  _refuse_together('private', hosts.PARTS, 'noise is counted for a round as a whole')
  if NOISE.value is None and EPSILON.value is None:
    raise ValueError(
      '--aggregation=private is given without --privacy_epsilon or '
      '--privacy_noise_multiplier; one of them must say how much noise there is.'
    )
  for flag in (NOISE, EPSILON):
    if flag.value is not None and not (math.isfinite(flag.value) and flag.value > 0):
      raise ValueError(f'{flag.name} is {flag.value}; it must be positive and finite.')
  if UPDATE_CLIP.value is None:
    raise ValueError(
      f'--aggregation=private is given without --{UPDATE_CLIP.name}; it must be the '
      "norm to which n_k times a client's update is clipped."
    )
  if QUANTILE.value is not None and common.PACKS.value:
    raise ValueError(
      f'--packs={common.PACKS.value} is given with --{QUANTILE.name}; it must be 0, '
      'for each client is compared with the clip norm.'
    )
  _private(1.0, 2)


def _refuse_together(
  aggregation: str, flag: flags.FlagHolder[Any], reason: str
) -> None:
  if flag.value is not None:
    raise ValueError(
      f'--{flag.name}={flag.value} is given with --aggregation={aggregation}; leave it '
      f'out, for {reason}.'
    )


def build(sizes: Sequence[int]) -> aggregation_lib.Aggregation | None:
  """Builds the aggregation; None: a plain one.

  Args:
    sizes: Examples of each client.

  Raises:
    ValueError: If the clients do not fit the flags.
  """
  if is_secure():
    if max(sizes) > SECURE_EXAMPLES.value:
      raise ValueError(
        f'{SECURE_EXAMPLES.name} is {SECURE_EXAMPLES.value}; a client has {max(sizes)} '
        'examples, and it must be at least that.'
      )
    return aggregation_lib.secure(SECURE_BOUND.value, SECURE_EXAMPLES.value)
  if is_private():
    cohort = common.cohort_size(len(sizes))
    return _private(noise_of_round(len(sizes), cohort), cohort)
  return None


def noise_of_round(population: int, cohort: int) -> float:
  """Returns the noise multiplier of a round, as given or as the budget needs it.

  Args:
    population: All clients.
    cohort: Clients of a round.
  """
  if NOISE.value is not None:
    return float(NOISE.value)
  rounds = common.ROUNDS.value
  return accounting.solve(population, cohort, rounds, EPSILON.value, DELTA.value)


def clip_norms() -> dict[str, object]:
  """Returns the clip norms of a private run, as JSON values."""
  known = {
    'update': UPDATE_CLIP.value,
    'statistics': STATISTICS_CLIP.value,
    'metrics': METRICS_CLIP.value,
  }
  norms: dict[str, object] = {
    name: value for name, value in known.items() if value is not None
  }
  if QUANTILE.value is not None:
    norms['follow_quantile'] = QUANTILE.value
  return norms


def _private(noise: float, cohort: int) -> aggregation_lib.Aggregation:
  adaptive = None
  if QUANTILE.value is not None:
    if not 0 < QUANTILE.value < 1:
      raise ValueError(
        f'{QUANTILE.name} is {QUANTILE.value}; it must be between 0 and 1.'
      )
    adaptive = aggregation_lib.AdaptiveClip(QUANTILE.value, cohort)
  # An algorithm that sends statistics is refused without a norm for them (`terms`).
  statistics = 1.0 if STATISTICS_CLIP.value is None else STATISTICS_CLIP.value
  return aggregation_lib.private_rounds(
    noise, UPDATE_CLIP.value, statistics, METRICS_CLIP.value, adaptive
  )
