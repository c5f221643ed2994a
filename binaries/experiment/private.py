"""Privacy of a run: what it refuses, cohorts, rounds with a ledger, the encoder's card.

`runs.privacy.disclosure` says of every file and number what of it may be given away.
"""

import collections
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
import contextlib
from typing import Any

from binaries.building import aggregation
from binaries.building import data
from binaries.building import resolved
from binaries.config import run_config
from binaries.experiment import membership
from tasks import registry
from tasks import task_types
from tff_ssl.aggregators import noise_split
from tff_ssl.federated import phase_graph
from tff_ssl.federated import releases
from tff_ssl.runs import run_config as stored_config
from tff_ssl.runs import run_folder
from tff_ssl.runs import stateful_rounds
from tff_ssl.runs.privacy import accounting
from tff_ssl.runs.privacy import disclosure
from tff_ssl.runs.privacy import noise_search
from tff_ssl.runs.privacy import privacy_ledger
from tff_ssl.runs.privacy import private_rounds
from tff_ssl.settings import aggregations
from tff_ssl.simulation import cohort_sampling

# docs/privacy.md says the same, with reasons.
_TO_SERVER = (
  'what the server sees: it is trusted with the clipped values of each client'
)
_SECRET = (
  'who was in which cohort is secret; --seed reveals it and must not be guessed, and '
  'sizes of cohorts may reveal it'
)
_GUESSED = (
  'who was in which cohort: the seed of this run is so small that it can be guessed'
)
_ALL = 'how many clients and examples there are'
_COUNTS = 'the numbers n_k of examples, and how many clients and examples a round had'
_NOT_PROTECTED = (
  _COUNTS,
  _TO_SERVER,
  disclosure.private(),
)
_ASSUMED = (
  _SECRET,
  'clients, classes and the split are known, not computed from what is protected',
  'the folder was not copied and continued twice: each ledger counts only its own',
  'noise is in floating point, from a non-cryptographic generator with secret seeds',
)
_MOST = (
  'the number of examples of the largest client, which the clip norm of statistics '
  'reveals'
)
_KEPT_BY_CLIENTS = (
  'the mean of what some clients keep (batch norm), which only a simulation can see'
)
_START = (
  'the weights that the run started from (--init_from), and what those started from, '
  'hold nothing of its clients'
)
# A difference of two epsilons of the same releases that is not of rounding.
_RECOUNTED = 1e-6
_NEIGHBOURS = {
  accounting.FIXED: 'one client, with all of its examples, replaced by another with as '
  'many examples',
  accounting.POISSON: 'one client more or less, with all of its examples',
  accounting.PASSES: 'the contribution of one client, with all of its examples, '
  'replaced by zeros; its number of examples and its cohorts stay the same',
}
_SAMPLING = {
  accounting.FIXED: 'without replacement',
  accounting.POISSON: 'on average, each independently at random',
  accounting.PASSES: 'in passes, each at most once per pass',
}


def build_cohorts(
  config: run_config.RunConfig, client_ids: Sequence[str]
) -> Callable[[int], list[str]]:
  """Builds the function that draws the cohort of each round.

  Args:
    config: The run.
    client_ids: All clients.
  """
  size, seed = data.cohort_size(config, len(client_ids)), config.random_seed
  if aggregation.is_poisson(config):
    return cohort_sampling.PoissonCohorts(client_ids, size, seed)
  if getattr(config.aggregation, 'cohorts', '') == accounting.PASSES:
    return cohort_sampling.PassCohorts(client_ids, size, seed)
  return cohort_sampling.Cohorts(client_ids, size, seed)


def with_ledger(
  config: run_config.RunConfig,
  process: Any,
  graph: phase_graph.Graph | None,
  population: int,
  of_releases: Collection[str] = (),
) -> Any:
  """Returns what the round loop runs: in a private run, rounds with a ledger.

  Args:
    config: The run.
    process: What the loop runs in any other run.
    graph: What the process was built from; None if it is centralized.
    population: Number of all clients.
    of_releases: See `private_rounds.PrivateRounds`.

  Raises:
    ValueError: If the aggregation does not fit what a round releases, or the budget is
      too small.
  """
  if not config.is_private or graph is None:
    return process
  own: Any = config.aggregation
  if _takes_states(process):
    raise ValueError(
      f'aggregation is {own.kind} for a method with {disclosure.OF_STATES.name}, '
      f'{disclosure.OF_STATES.why}; it must be {aggregations.Plain.kind} or '
      f'{aggregations.Secure.kind}.'
    )
  _check_clips(own, clipped(graph))
  cohort = data.cohort_size(config, population)
  keeps_states = graph.algorithm.is_stateful
  aggregation.check_cohorts(config, keeps_states, cohort == population)
  if aggregation.is_poisson(config) and graph.algorithm.client_numbers:
    raise ValueError(
      f'cohorts of --aggregation is {accounting.POISSON} for a method whose clients '
      f'have numbers; it must be {accounting.FIXED} or {accounting.PASSES}, because '
      'with one client more or less the others would have other numbers.'
    )
  multipliers = releases.multipliers(graph.algorithm, graph.aggregation)
  terms = accounting.Terms(
    population,
    cohort,
    multipliers,
    own.delta,
    config.is_amplified,
    own.cohorts,
    graph.aggregation.is_gaussian,
  )
  _announce(config, terms)
  hidden = not graph.aggregation.releases_metrics and any(
    releases.is_metrics(kind)
    for exchange in graph.algorithm.exchanges
    for kind in exchange.sent.values()
  )
  return private_rounds.PrivateRounds(process, terms, own.epsilon, hidden, of_releases)


def _announce(config: run_config.RunConfig, terms: accounting.Terms) -> None:
  """Says what a run's rounds release and cost.

  Raises:
    ValueError: If the budget is too small for one round, or for the signals.
  """
  own: Any = config.aggregation
  of_signals = aggregation.rounds_of_signals(config)
  budget, rounds = own.epsilon, config.rounds + of_signals
  accountant = accounting.Accountant(terms)
  fitting = rounds if budget is None else accountant.rounds_within(budget, rounds)
  if not fitting:
    raise ValueError(
      f'epsilon of --aggregation is {budget:g}; with this noise it must be at least '
      f'{accountant.epsilon_after(1):.4g}, what one round costs.'
    )
  if of_signals and fitting < rounds:
    raise ValueError(
      f'epsilon of --aggregation is {budget:g}; with this noise it is enough for '
      f'{fitting} of {rounds} rounds, and {of_signals} of these are for signals: there '
      'must be fewer --rounds, or more noise.'
    )
  unspent = ''
  most = f', {of_signals} of them for signals' if of_signals else ''
  if terms.sampling == accounting.PASSES:
    most += f', of which a client is in at most {terms.counted_once(fitting)}'
  if budget is not None and own.noise_multiplier is None:
    unspent = noise_search.why_unspent(terms, rounds, budget)
  parts = [f'{name} ({share:.1%})' for name, share in terms.shares.items()]
  spent, shown_by = accountant.counted_after(fitting)
  print(
    f'private: {", ".join(parts)} of {terms.cohort} of {terms.population} clients per '
    f'round, noise of {terms.of_round:.4g} clip norms in total; epsilon '
    f'{spent:.4g} at delta {terms.delta:g} after {fitting} of {rounds} rounds{most}, '
    f'if none is repeated, by {shown_by}{unspent and "; "}{unspent}',
    flush=True,
  )


def print_recount(rounds: Any, folder: run_folder.RunFolder) -> None:
  """Says if rows of metrics.csv have a larger epsilon, by an earlier accountant.

  Args:
    rounds: What the round loop runs.
    folder: The run folder, which may have rows.
  """
  rows, ledger = folder.metrics.rows(), folder.path / privacy_ledger.NAME
  is_private = isinstance(rounds, private_rounds.PrivateRounds)
  if not (is_private and rows and ledger.is_file()):
    return
  before = float(rows[-1].get('privacy/epsilon', 0.0))
  counts = rounds.terms.history(privacy_ledger.rounds(folder.path)).counts
  epsilon, shown_by = accounting.Accountant(rounds.terms).counted(counts)
  if before > epsilon + _RECOUNTED:
    print(
      f'private: metrics.csv has epsilon {before:.4g} in its last row, by an earlier '
      f'version; the same releases cost {epsilon:.4g} by {shown_by}, from now on',
    )


def _takes_states(process: Any) -> bool:
  """Returns whether the encoder takes values that clients keep."""
  is_stateful = isinstance(process, stateful_rounds.StatefulRounds)
  return is_stateful and process.evaluates_states


def check_task(config: run_config.RunConfig, task: task_types.Task) -> None:
  """Checks that a private run's inputs, and its start, hold nothing of all examples.

  Args:
    config: The run.
    task: What it would run on.

  Raises:
    ValueError: If something was measured on all examples, or the run would start from a
      run on some of the same examples.
  """
  if not config.is_private:
    return
  chosen = f'--aggregation={config.aggregation.kind}'
  for each in task.measured:
    raise ValueError(
      f'The inputs of the task {task.name!r} have {each.what}, measured on all '
      f'training examples without noise; with {chosen} there must be {each.instead}.'
    )
  if config.init_from and (what := _known_to_start(config, task)):
    raise ValueError(
      f'--init_from={config.init_from} is given with {chosen}, and is a run on '
      f'{what}; {disclosure.SAME_EXAMPLES.why}, so it must be a run on others.'
    )


def _known_to_start(config: run_config.RunConfig, task: task_types.Task) -> str:
  """Says which training examples the run of `init_from` had too, '' if it had none.

  However they were read or split: by their content, or by the name of published data.
  """
  folder = membership.run_folder(str(config.init_from))
  if folder is None:
    return ''
  stored = stored_config.read(folder)
  name = str(stored_config.settings(stored['config']).get('task'))
  count = membership.trained_on(folder, task)
  if count:
    return f'{count:,} of the {len(task.train):,} training examples'
  # Halves of pictures are published data under another name.
  own, there = (each.removesuffix('_halves') for each in (config.task, name))
  if stored.get('task') == task.fingerprint() or (own == there and not task.grows):
    return 'the same examples'
  if count is None and task.digests and name in registry.OF_FILES:
    return f'examples that are not known, because it has no {membership.NAME}'
  return ''


def clipped(graph: phase_graph.Graph | None) -> set[str]:
  """Returns what a round of a private run releases, by what is clipped.

  Args:
    graph: What the process was built from; None: there are no rounds of clients.
  """
  if graph is None:
    return set()
  return {
    str(kind.clipped_as)
    for exchange in graph.algorithm.exchanges
    for kind in exchange.sent.values()
    if releases.is_released(kind, graph.aggregation)
  }


def _check_clips(own: Any, clipped: Collection[str]) -> None:
  """Raises ValueError if a norm is given of what a round does not release."""
  for what in (noise_split.STATISTICS, noise_split.METRICS):
    if getattr(own, f'{what}_clip') is not None and what not in clipped:
      raise ValueError(
        f'{what}_clip of --aggregation is given to a method whose clients send no '
        f'{what}; leave it out.'
      )


def privacy_card(
  config: run_config.RunConfig, algorithm: Any, clip_norms: Mapping[str, object]
) -> Mapping[str, object]:
  """Returns what an encoder's card says about privacy; nothing for a plain run.

  Args:
    config: The run.
    algorithm: What the round loop ran.
    clip_norms: Clip norms of the aggregation, by name.
  """
  if config.is_secure:
    promise = (
      'the server learns only sums over clients, not one client; what follows from the '
      'sums is not protected, and the encoder is not differentially private'
    )
    if _takes_states(algorithm):
      promise += f'; it has {_KEPT_BY_CLIENTS}'
    return {
      'privacy': collections.OrderedDict(
        aggregation='secure sums, simulated in one process',
        epsilon=None,
        promise=promise,
      )
    }
  if not isinstance(algorithm, private_rounds.PrivateRounds):
    return {}
  terms = algorithm.terms
  is_distributed = isinstance(config.aggregation, aggregations.Distributed)
  hidden, added = [], []
  if is_distributed:
    hidden.append(_TO_SERVER)
  if terms.sampling == accounting.POISSON:
    hidden.append(_COUNTS)
    added += [_ALL] + [_MOST] * _shows_largest(config, clip_norms)
  # All clients in each round are no secret.
  is_amplified = terms.amplified and terms.cohort < terms.population
  if not is_amplified:
    hidden.append(_SECRET)
  elif resolved.is_guessed(config.random_seed):
    added.append(_GUESSED)
  if not config.init_from:
    hidden.append(_START)
  participations = {}
  if terms.sampling == accounting.PASSES:
    # In how many releases a client can be: not in all.
    participations = {'participations': algorithm.history.counts.releases}
  return {
    'privacy': collections.OrderedDict(
      aggregation='distributed differential privacy, Skellam noise of the clients '
      'under secure sums, simulated in one process'
      if is_distributed
      else 'central differential privacy, Gaussian noise',
      epsilon=algorithm.epsilon,
      delta=terms.delta,
      unit='client',
      neighbours=_NEIGHBOURS[terms.sampling],
      releases=algorithm.releases,
      **participations,
      noise_of_round=terms.of_round,
      noise=dict(terms.multipliers),
      shares_of_budget=dict(terms.shares),
      clip_norms=dict(clip_norms),
      sampling=f'{terms.cohort} of {terms.population} clients per round, '
      f'{_SAMPLING[terms.sampling]}; '
      f'amplification {"counted" if is_amplified else "not counted"}',
      accountant=algorithm.accountant,
      protected=disclosure.protected(),
      not_protected=[*(each for each in _NOT_PROTECTED if each not in hidden), *added],
      assumed=[each for each in (*_ASSUMED, _START) if each not in hidden],
    )
  }


def _shows_largest(
  config: run_config.RunConfig, clip_norms: Mapping[str, object]
) -> bool:
  """Returns whether noise is as large as the client with most examples needs."""
  has_signals = aggregation.rounds_of_signals(config) > 0
  return has_signals or aggregation.BY_CONSTRUCTION in clip_norms


@contextlib.contextmanager
def save_on_budget_end(save: Callable[[Any, int], None], path: str) -> Iterator[None]:
  """Saves the encoder of the last round if the budget ends a run.

  Args:
    save: Saves it, given (state, round).
    path: Path of the run folder.

  Raises:
    ValueError: In place of the run's error: the budget is spent.
  """
  try:
    yield
  except private_rounds.BudgetSpentError as error:
    save(error.state, error.round)
    raise ValueError(
      f'{error} The run ends; the encoder after round {error.round} is saved in {path}.'
    ) from error
