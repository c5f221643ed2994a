"""Flags that say how clients' values are combined: in the clear, secure, private.

    python -m binaries.dcco --aggregation=secure --runtime=in_process ...
    python -m binaries.dcco --aggregation=private --privacy_epsilon=8 \
        --privacy_update_clip=1 --privacy_statistics_clip=1 ...

docs/privacy.md says what each promises and what it does not.
"""

from collections.abc import Sequence
from typing import Any

from absl import flags

from binaries.flags import common
from binaries.flags import hosts
from tff_ssl.aggregators import adaptive_clipping
from tff_ssl.aggregators import aggregations
from tff_ssl.aggregators import expected_counts
from tff_ssl.computing import checks
from tff_ssl.runs.privacy import accounting

PLAIN, SECURE, PRIVATE, DISTRIBUTED = 'plain', 'secure', 'private', 'distributed'

AGGREGATION = flags.DEFINE_enum(
  'aggregation',
  PLAIN,
  (PLAIN, SECURE, PRIVATE, DISTRIBUTED),
  'How the values that clients send are combined: plain: sums in the clear; secure: '
  'sums of masked integers, a simulation with --runtime=in_process; private: each '
  'client is clipped, and Gaussian noise is added to the sums (central differential '
  'privacy); distributed: clients add the noise, under secure sums.',
)
SECURE_BOUND = flags.DEFINE_float(
  'secure_bound',
  4096.0,
  "For secure sums: each entry of n_k times a client's values is clipped to this, and "
  'rounded to 2^-31 of it.',
)
SECURE_EXAMPLES = flags.DEFINE_integer(
  'secure_examples',
  4096,
  'For secure and distributed sums: most examples that a client may have.',
  lower_bound=1,
)
SECURE_ROWS = flags.DEFINE_bool(
  'secure_rows_of_one_client',
  False,
  'For secure sums: allows algorithms that send rows of a single client, which a sum '
  'reveals unchanged (FedCA, FedMatch).',
)
NOISE = flags.DEFINE_float(
  'privacy_noise_multiplier',
  None,
  'Noise of a round over the clip norm, for all its releases together; by default the '
  'least that --privacy_epsilon needs.',
)
EPSILON = flags.DEFINE_float(
  'privacy_epsilon',
  None,
  'The budget: a run ends before a round would exceed it. Without '
  '--privacy_noise_multiplier the noise is chosen so that --rounds just fit.',
)
DELTA = flags.DEFINE_float(
  'privacy_delta', 1e-5, 'delta of the guarantee; below 1 / number of clients.'
)
UPDATE_CLIP = flags.DEFINE_float(
  'privacy_update_clip',
  None,
  "l2 norm to which n_k times a client's update is clipped.",
)
STATISTICS_CLIP = flags.DEFINE_float(
  'privacy_statistics_clip',
  None,
  'The same for n_k times its statistics: encoding statistics of DCCO, population '
  'statistics of batch norm. By default, if encodings are bounded (--encoding_norm, '
  '--loss=spectral), the bound for the largest client.',
)
METRICS_CLIP = flags.DEFINE_float(
  'privacy_metrics_clip',
  None,
  'The same for n_k times its metrics, which then cost privacy; by default they do '
  'not leave the client, and metrics.csv has none.',
)
QUANTILE = flags.DEFINE_float(
  'privacy_clip_quantile',
  None,
  'Share of clients that should not be clipped; the clip norms start at the given '
  'ones and adapt to it from round to round. By default they stay fixed.',
)
COHORTS = flags.DEFINE_enum(
  'privacy_cohorts',
  accounting.FIXED,
  (accounting.FIXED, accounting.POISSON, accounting.PASSES),
  'How the cohorts of a private run are drawn and accounted for: fixed: '
  '--clients_per_round without replacement; poisson: each client independently at '
  'random, as many on average; sums are then divided by the average of a round, and no '
  'counts are reported; passes: the population is shuffled for each pass, and each '
  'round takes the next --clients_per_round; a client counts once per pass, even if '
  'cohorts are known.',
)
# The name in `clip_norms` for statistics that are bounded without clipping.
BY_CONSTRUCTION = 'statistics_by_construction'
_OF_SECURE = (SECURE_BOUND.name, SECURE_ROWS.name)
_OF_BOTH = (SECURE_EXAMPLES.name,)
_OF_CENTRAL = (QUANTILE.name,)
_OF_PRIVATE = (
  NOISE.name,
  EPSILON.name,
  DELTA.name,
  UPDATE_CLIP.name,
  STATISTICS_CLIP.name,
  METRICS_CLIP.name,
  COHORTS.name,
)
# Flags of algorithms to which no noise is added.
OF_SUMS = (AGGREGATION.name, *_OF_SECURE, *_OF_BOTH)
# Flags that any federated algorithm takes.
NAMES = (*OF_SUMS, *_OF_PRIVATE, *_OF_CENTRAL)


def is_secure() -> bool:
  """Returns whether sums are secure."""
  return AGGREGATION.value == SECURE


def is_private() -> bool:
  """Returns whether noise is added, by the server or by the clients."""
  return AGGREGATION.value in (PRIVATE, DISTRIBUTED)


def is_distributed() -> bool:
  """Returns whether clients add the noise."""
  return AGGREGATION.value == DISTRIBUTED


def is_poisson() -> bool:
  """Returns whether each client joins a cohort independently at random."""
  return is_private() and COHORTS.value == accounting.POISSON


def is_amplified() -> bool:
  """Returns whether epsilon relies on secret cohorts (amplification)."""
  # A server against which the noise protects knows the cohorts.
  return not is_distributed() and COHORTS.value != accounting.PASSES


def settle() -> None:
  """Gives flags that are not given the values that follow from the aggregation."""
  if is_secure() or QUANTILE.value is not None:
    # Both act on each client by itself, not on packs.
    common.fill({common.PACKS.name: 0})
  if is_private():
    # Repeating rounds after a kill costs privacy again.
    common.fill({common.CHECKPOINT_EVERY.name: 1})


def check(rows_of_one_client: bool = False) -> None:
  """Checks the flags of the aggregation, without data.

  Args:
    rows_of_one_client: Whether the algorithm sends rows that belong to one client.

  Raises:
    ValueError: If one is out of range, or does not fit another.
  """
  for names, takers in (
    (_OF_SECURE, (SECURE,)),
    (_OF_BOTH, (SECURE, DISTRIBUTED)),
    (_OF_PRIVATE, (PRIVATE, DISTRIBUTED)),
    (_OF_CENTRAL, (PRIVATE,)),
  ):
    for name in names:
      common.refuse_stray(name, AGGREGATION.name, takers)
  if is_secure() or is_distributed():
    _check_masked()
  if is_secure():
    _check_rows(rows_of_one_client)
    aggregations.secure(SECURE_BOUND.value, SECURE_EXAMPLES.value)
  if is_private():
    _check_private()


def _check_masked() -> None:
  """Checks what all secure sums need."""
  given = f'--{AGGREGATION.name}={AGGREGATION.value}'
  if common.RUNTIME.value != common.IN_PROCESS:
    raise ValueError(
      f'--runtime={common.RUNTIME.value} is given with {given}; it must '
      "be in_process, because TFF's worker has no secure sums."
    )
  _refuse_together(hosts.PARTS, 'each part of a round has a sum of its own')
  if is_secure() and common.PACKS.value:
    raise ValueError(
      f'--packs={common.PACKS.value} is given with {given}; it must be 0, '
      'because each client masks its own values.'
    )
  if common.PARTICIPATION.value is None and common.CLIENTS_PER_ROUND.value < 2:
    raise ValueError(
      f'--clients_per_round={common.CLIENTS_PER_ROUND.value} is given with {given}; it '
      'must be at least 2, because a sum over one client is its value.'
    )


def _check_rows(rows_of_one_client: bool) -> None:
  if rows_of_one_client and not SECURE_ROWS.value:
    raise ValueError(
      '--aggregation=secure is given to an algorithm in which each client sends its '
      "own rows, and zeros for those of the others: the sum shows each client's rows "
      f'unchanged. If that is intended, give --{SECURE_ROWS.name}.'
    )
  if SECURE_ROWS.value and not rows_of_one_client:
    raise ValueError(
      f'--{SECURE_ROWS.name} is given to an algorithm whose clients send no rows of '
      'their own; it is for FedCA and FedMatch only.'
    )


def _check_private() -> None:
  given = f'--{AGGREGATION.name}={AGGREGATION.value}'
  if common.RUNTIME.value == common.HOSTS:
    raise ValueError(
      f'--runtime=hosts is given with {given}; it must be worker or '
      'in_process, because a host that is given up may have drawn noise that is not '
      'counted.'
    )
  _refuse_together(hosts.PARTS, 'noise is counted for a round as a whole')
  if NOISE.value is None and EPSILON.value is None:
    raise ValueError(
      f'{given} is given without --privacy_epsilon or --privacy_noise_multiplier; one '
      'of them must say how much noise there is.'
    )
  if EPSILON.value is not None:
    checks.positive(**{EPSILON.name: EPSILON.value})
  checks.between(0, 1, **{DELTA.name: DELTA.value})
  if UPDATE_CLIP.value is None:
    raise ValueError(
      f'{given} is given without --{UPDATE_CLIP.name}; it must be the norm to which '
      "n_k times a client's update is clipped."
    )
  if is_distributed() and is_poisson():
    raise ValueError(
      f'{COHORTS.name} is {accounting.POISSON} with {given}; it must be '
      f'{accounting.FIXED} or {accounting.PASSES}, because each of a known number of '
      'clients adds its part of the noise.'
    )
  if QUANTILE.value is not None and common.PACKS.value:
    raise ValueError(
      f'--packs={common.PACKS.value} is given with --{QUANTILE.name}; it must be 0, '
      'because each client is compared with the clip norm.'
    )
  noise = 1.0 if NOISE.value is None else NOISE.value
  _private(noise, 2, statistics_clip=STATISTICS_CLIP.value)


def _refuse_together(flag: flags.FlagHolder[Any], reason: str) -> None:
  if flag.value is not None:
    raise ValueError(
      f'--{flag.name}={flag.value} is given with --{AGGREGATION.name}='
      f'{AGGREGATION.value}; leave it out, because {reason}.'
    )


def build(
  sizes: Sequence[int], share_bound: float | None = None
) -> aggregations.Aggregation | None:
  """Builds the aggregation; None: a plain one.

  Args:
    sizes: Number of examples of each client.
    share_bound: See `clip_norms`.

  Raises:
    ValueError: If the clients do not fit the flags.
  """
  if is_secure() or is_distributed():
    _check_clients(sizes)
  if is_secure():
    return aggregations.secure(SECURE_BOUND.value, SECURE_EXAMPLES.value)
  if is_private():
    cohort = common.cohort_size(len(sizes))
    expected = None
    if is_poisson():
      expected = expected_counts.Expected(cohort, cohort / len(sizes) * sum(sizes))
    noise = noise_of_round(len(sizes), cohort)
    return _private(noise, cohort, expected, _statistics_clip(sizes, share_bound))
  return None


def _check_clients(sizes: Sequence[int]) -> None:
  if max(sizes) > SECURE_EXAMPLES.value:
    raise ValueError(
      f'{SECURE_EXAMPLES.name} is {SECURE_EXAMPLES.value}; it must be at least '
      f'{max(sizes)}, the number of examples of the largest client.'
    )
  if common.cohort_size(len(sizes)) < 2:
    raise ValueError(
      f'participation is {common.PARTICIPATION.value}; it must be larger, because it '
      f'gives one of {len(sizes)} clients, and a sum over one client is its value.'
    )


def noise_of_round(population: int, cohort: int) -> float:
  """Returns the noise multiplier of a round: given, or as the budget needs it.

  Args:
    population: Number of all clients.
    cohort: Number of clients in a round.
  """
  if NOISE.value is not None:
    return float(NOISE.value)
  rounds = common.ROUNDS.value
  return accounting.solve(
    population,
    cohort,
    rounds,
    EPSILON.value,
    DELTA.value,
    is_amplified(),
    COHORTS.value,
    not is_distributed(),
  )


def _statistics_clip(sizes: Sequence[int], share_bound: float | None) -> float | None:
  """Returns the clip norm of statistics: the given norm, or their bound."""
  if STATISTICS_CLIP.value is not None or share_bound is None:
    return STATISTICS_CLIP.value
  if QUANTILE.value is not None:
    raise ValueError(
      f'{QUANTILE.name} is {QUANTILE.value} and --{STATISTICS_CLIP.name} is not given; '
      'it must be the initial norm, because the bound of encodings does not change.'
    )
  return max(sizes) * share_bound


def clip_norms(
  sizes: Sequence[int], share_bound: float | None = None
) -> dict[str, object]:
  """Returns the clip norms of a private run, as JSON values.

  Args:
    sizes: Number of examples of each client.
    share_bound: The largest norm of one example's share of the statistics that clients
      send, if known; n_k times a client's statistics are at most n_k times as long.
  """
  known = {
    'update': UPDATE_CLIP.value,
    'statistics': _statistics_clip(sizes, share_bound),
    'metrics': METRICS_CLIP.value,
  }
  norms: dict[str, object] = {
    name: value for name, value in known.items() if value is not None
  }
  if 'statistics' in norms and STATISTICS_CLIP.value is None:
    norms[BY_CONSTRUCTION] = (
      'within their clip norm, so that nothing is clipped: encodings are bounded, and '
      f'the largest client has {max(sizes)} examples'
    )
  if QUANTILE.value is not None:
    norms['follow_quantile'] = QUANTILE.value
  return norms


def _private(
  noise: float,
  cohort: int,
  expected: expected_counts.Expected | None = None,
  statistics_clip: float | None = None,
) -> aggregations.Aggregation:
  adaptive = None
  if QUANTILE.value is not None:
    if not 0 < QUANTILE.value < 1:
      raise ValueError(
        f'{QUANTILE.name} is {QUANTILE.value}; it must be between 0 and 1.'
      )
    adaptive = adaptive_clipping.AdaptiveClip(QUANTILE.value, cohort)
  # `private.counted` refuses an algorithm that sends statistics without a norm for
  # them.
  statistics = 1.0 if statistics_clip is None else statistics_clip
  if is_distributed():
    return aggregations.distributed_rounds(
      noise,
      UPDATE_CLIP.value,
      statistics,
      METRICS_CLIP.value,
      cohort,
      SECURE_EXAMPLES.value,
    )
  return aggregations.private_rounds(
    noise, UPDATE_CLIP.value, statistics, METRICS_CLIP.value, adaptive, expected
  )
