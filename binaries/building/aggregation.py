"""How clients' values are combined: in the clear, secure, private.

docs/privacy.md says what each promises and what it does not.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from binaries.building import data
from binaries.building import training
from binaries.config import run_config
from binaries.config import runtimes
from tff_ssl.aggregators import adaptive_clipping
from tff_ssl.aggregators import aggregations
from tff_ssl.aggregators import clip_norms as clip_norms_lib
from tff_ssl.aggregators import expected_counts
from tff_ssl.aggregators import noise_split
from tff_ssl.evaluation import signals
from tff_ssl.runs import loop
from tff_ssl.runs.privacy import accounting
from tff_ssl.runs.privacy import noise_search
from tff_ssl.settings import aggregations as kinds
from tff_ssl.settings import parts

# The name in `clip_norms` for statistics that are bounded without clipping.
BY_CONSTRUCTION = 'statistics_by_construction'
# Norms that nobody gives: the quantile that they follow, as Andrew et al. recommend,
# and the first of them.
_MEDIAN, _FIRST_NORM = 0.5, 1.0


def is_poisson(config: run_config.RunConfig) -> bool:
  """Returns whether each client joins a cohort independently at random."""
  return getattr(config.aggregation, 'cohorts', '') == accounting.POISSON


def check(
  config: run_config.RunConfig,
  rows_of_one_client: bool = False,
  keeps_states: bool = False,
) -> None:
  """Checks the aggregation, without data.

  Args:
    config: The run.
    rows_of_one_client: Whether the algorithm sends rows that belong to one client.
    keeps_states: Whether its clients keep a state.

  Raises:
    ValueError: If a field does not fit another.
  """
  own = config.aggregation
  if own.kind in parts.AGGREGATIONS and (config.runtime.packs or config.runtime.parts):
    raise ValueError(
      f'packs or parts of --runtime is given with {_given(config)}, which acts on each '
      'client; leave it out.'
    )
  if isinstance(own, kinds.Secure | kinds.Distributed):
    _check_masked(config)
  if isinstance(own, kinds.Secure):
    _check_rows(own, rows_of_one_client)
    aggregations.secure(own.bound, own.examples)
  if isinstance(own, kinds.Private | kinds.Distributed):
    if rows_of_one_client:
      training.refuse_noise(
        config,
        'its server stores the rows of each client, and could not tell them from noise',
      )
    # How many clients there are is known with the data.
    check_cohorts(config, keeps_states, takes_all=True)
    _check_private(config, own)


def check_cohorts(
  config: run_config.RunConfig, keeps_states: bool, takes_all: bool
) -> None:
  """Checks that epsilon is known for the cohorts of clients that keep a state.

  Args:
    config: The run.
    keeps_states: Whether clients keep a state.
    takes_all: Whether all clients are in each round.

  Raises:
    ValueError: If it is not.
  """
  # The theorems are about rounds that depend on earlier cohorts by what was released.
  is_drawn = is_poisson(config) or not takes_all
  if keeps_states and config.is_amplified and is_drawn:
    own: Any = config.aggregation
    raise ValueError(
      f'cohorts of --aggregation is {own.cohorts} for a method whose clients keep a '
      f'state; it must be {accounting.PASSES}, or {accounting.FIXED} with all clients '
      'in each round, because what a client sends depends on the cohorts before, which '
      'may then not be counted as secret.'
    )


def _given(config: run_config.RunConfig) -> str:
  return f'--aggregation={config.aggregation.kind}'


def _check_masked(config: run_config.RunConfig) -> None:
  """Checks what all secure sums need."""
  given, runtime = _given(config), config.runtime
  if isinstance(runtime, runtimes.Sites):
    # Not clients but sites mask, and `sites.check` says how.
    return
  if not isinstance(runtime, runtimes.InProcess):
    raise ValueError(
      f'--runtime={runtime.kind} is given with {given}; it must be in_process, because '
      'only there are secure sums simulated.'
    )
  if runtime.parts is not None:
    raise ValueError(
      f'--runtime=parts={runtime.parts} is given with {given}; leave it out, because '
      'each part of a round has a sum of its own.'
    )
  if config.is_secure and runtime.packs:
    raise ValueError(
      f'--runtime=packs={runtime.packs} is given with {given}; it must be 0, because '
      'each client masks its own values.'
    )
  if config.participation is None and config.clients_per_round < 2:
    raise ValueError(
      f'--clients_per_round={config.clients_per_round} is given with {given}; it must '
      'be at least 2, because a sum over one client is its value.'
    )


def _check_rows(own: kinds.Secure, rows_of_one_client: bool) -> None:
  if rows_of_one_client and not own.rows_of_one_client:
    raise ValueError(
      '--aggregation=secure is given to an algorithm in which each client sends its '
      "own rows, and zeros for those of the others: the sum shows each client's rows "
      'unchanged. If that is intended, give --aggregation=rows_of_one_client=true.'
    )
  if own.rows_of_one_client and not rows_of_one_client:
    raise ValueError(
      'rows_of_one_client of --aggregation is given to an algorithm whose clients send '
      'no rows of their own; it is for FedCA, FedMatch, FedU2 and Orchestra only.'
    )


def _check_private(
  config: run_config.RunConfig, own: kinds.Private | kinds.Distributed
) -> None:
  given = _given(config)
  if isinstance(own, kinds.Distributed) and own.cohorts == accounting.POISSON:
    raise ValueError(
      f'cohorts of --aggregation is {own.cohorts} with {given}; it must be '
      f'{accounting.FIXED} or {accounting.PASSES}, because each of a known number of '
      'clients adds its part of the noise.'
    )
  noise = 1.0 if own.noise_multiplier is None else own.noise_multiplier
  _with_noise(own, noise, 2, _clips(own, 2))


def build(
  config: run_config.RunConfig,
  sizes: Sequence[int],
  share_bound: float | None = None,
) -> aggregations.Aggregation | None:
  """Builds the aggregation; None: a plain one.

  Args:
    config: The run.
    sizes: Number of examples of each client.
    share_bound: See `clip_norms`.

  Raises:
    ValueError: If the clients do not fit it.
  """
  own = config.aggregation
  if isinstance(own, kinds.Secure | kinds.Distributed):
    _check_clients(config, own, sizes)
  if isinstance(own, kinds.Secure):
    return aggregations.secure(own.bound, own.examples)
  if isinstance(own, kinds.Private | kinds.Distributed):
    cohort = data.cohort_size(config, len(sizes))
    expected = None
    if is_poisson(config):
      expected = _expected(config, cohort, sizes)
    noise = noise_of_round(config, len(sizes), cohort)
    clips = _clips(own, cohort, max(sizes), share_bound)
    return _with_noise(own, noise, cohort, clips, expected)
  part = parts.AGGREGATIONS.get(own.kind)
  return None if part is None else aggregations.checked(part.build(own))


def _expected(
  config: run_config.RunConfig, cohort: int, sizes: Sequence[int]
) -> expected_counts.Expected:
  """Returns the expected numbers of a cohort that each client joins on its own."""
  share = cohort / len(sizes)
  weights = None
  if getattr(config.clients, 'weighting', 'examples') == 'uniform':
    weights = share * np.count_nonzero(sizes)
  return expected_counts.Expected(cohort, share * sum(sizes), weights)


def _check_clients(
  config: run_config.RunConfig,
  own: kinds.Secure | kinds.Distributed,
  sizes: Sequence[int],
) -> None:
  if max(sizes) > own.examples:
    raise ValueError(
      f'examples of --aggregation is {own.examples}; it must be at least {max(sizes)}, '
      'the number of examples of the largest client.'
    )
  if len(sizes) < 2:
    raise ValueError(
      f'There is 1 client, and {_given(config)} is given; there must be at least 2, '
      'because a sum over one client is its value.'
    )
  if data.cohort_size(config, len(sizes)) < 2:
    raise ValueError(
      f'participation is {config.participation}; it must be larger, because it gives '
      f'one of {len(sizes)} clients, and a sum over one client is its value.'
    )


def noise_of_round(config: run_config.RunConfig, population: int, cohort: int) -> float:
  """Returns the noise multiplier of a round: given, or as the budget needs it.

  Args:
    config: A private run.
    population: Number of all clients.
    cohort: Number of clients in a round.
  """
  own: Any = config.aggregation
  if own.noise_multiplier is not None:
    return float(own.noise_multiplier)
  return noise_search.of_run(
    config.run_dir,
    population,
    cohort,
    config.rounds + rounds_of_signals(config),
    own.epsilon,
    own.delta,
    config.is_amplified,
    own.cohorts,
    not isinstance(own, kinds.Distributed),
  )


def signals_after(config: run_config.RunConfig) -> list[int]:
  """Returns after which rounds a private run measures its encoder; 0: before training.

  Args:
    config: The run.
  """
  every, rounds = config.evaluation.signals_every, config.rounds
  if not config.signal_rounds or every is None:
    return []
  due = (round for round in range(1, rounds + 1) if loop.is_due(round, every, rounds))
  return [0, *due]


def rounds_of_signals(config: run_config.RunConfig) -> int:
  """Returns how many rounds signals add to those that a private run accounts for.

  Args:
    config: The run.
  """
  return config.signal_rounds * len(signals_after(config))


def of_signals(
  config: run_config.RunConfig, sizes: Sequence[int], noise: float
) -> tuple[aggregations.Aggregation, float]:
  """Returns how signals of a private run are combined, and the noise of a round.

  Args:
    config: The run.
    sizes: Number of examples that each client encodes.
    noise: Noise multiplier of a round of the run.

  Returns:
    The aggregation, with all of that noise for the signals; and the standard deviation
    of the noise in each entry of a round's sums.
  """
  own: Any = config.aggregation
  cohort, clip = (
    data.cohort_size(config, len(sizes)),
    max(sizes) * signals.share_bound(),
  )
  expected = None
  if is_poisson(config):
    # Means of examples are weighted by their number, whatever the run's clients are.
    examples = cohort / len(sizes) * sum(sizes)
    expected = expected_counts.Expected(cohort, examples)
  # There are no updates.
  clips = {noise_split.UPDATE: 1.0, noise_split.STATISTICS: clip}
  return _with_noise(own, noise, cohort, clips, expected), noise * clip


def _clips(
  own: Any, cohort: int, largest: int = 1, share_bound: float | None = None
) -> dict[str, clip_norms_lib.Clip]:
  """Returns the clip norms of a private run by what they clip.

  Args:
    own: The aggregation.
    cohort: Number of clients in a round.
    largest: Number of examples of the largest client.
    share_bound: See `clip_norms`.
  """
  quantile = own.clip_quantile

  def adapting(initial: float) -> clip_norms_lib.Clip:
    share = _MEDIAN if quantile is None else quantile
    return adaptive_clipping.AdaptiveClip(share, cohort, initial=initial)

  given = {
    noise_split.UPDATE: own.update_clip,
    noise_split.STATISTICS: own.statistics_clip,
    noise_split.METRICS: own.metrics_clip,
  }
  clips: dict[str, clip_norms_lib.Clip] = {}
  for name, clip in given.items():
    if clip is not None:
      clips[name] = clip if quantile is None else adapting(clip)
    elif name == noise_split.STATISTICS and share_bound is not None:
      clips[name] = largest * share_bound
    elif name != noise_split.METRICS:
      clips[name] = adapting(_FIRST_NORM)
  return clips


def clip_norms(
  config: run_config.RunConfig,
  sizes: Sequence[int],
  share_bound: float | None,
  clipped: Collection[str],
) -> dict[str, object]:
  """Returns the clip norms of a private run, as JSON values.

  Args:
    config: The run.
    sizes: Number of examples of each client.
    share_bound: The largest norm of one example's share of the statistics that clients
      send, if known; n_k times a client's statistics are at most n_k times as long.
    clipped: What a round releases, by what is clipped.
  """
  own: Any = config.aggregation
  if not config.is_private:
    return {}
  cohort = data.cohort_size(config, len(sizes))
  clips = _clips(own, cohort, max(sizes), share_bound)
  norms: dict[str, object] = {}
  for name in (each for each in clips if each in clipped):
    clip = clips[name]
    if isinstance(clip, adaptive_clipping.AdaptiveClip):
      norms[name] = (
        f'{clip.initial:g} in the first round, then the norm that clips all but '
        f'{clip.quantile:g} of the clients'
      )
    else:
      norms[name] = clip
  given = own.statistics_clip is not None or share_bound is None
  if noise_split.STATISTICS in norms and not given:
    norms[BY_CONSTRUCTION] = (
      'within their clip norm, so that nothing is clipped: the share of an example is '
      f'bounded, and the largest client has {max(sizes)} examples'
    )
  return norms


def _with_noise(
  own: kinds.Private | kinds.Distributed,
  noise: float,
  cohort: int,
  clips: Mapping[str, clip_norms_lib.Clip],
  expected: expected_counts.Expected | None = None,
) -> aggregations.Aggregation:
  norms = (
    clips[noise_split.UPDATE],
    clips[noise_split.STATISTICS],
    clips.get(noise_split.METRICS),
  )

  def noised(multiplier: float | Mapping[str, float]) -> aggregations.Aggregation:
    if isinstance(own, kinds.Distributed):
      return aggregations.distributed(multiplier, *norms, cohort, own.examples)
    return aggregations.private(multiplier, *norms, expected)

  return aggregations.of_rounds(noised, noise, own.split == 'sizes')
