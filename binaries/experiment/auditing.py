"""Audits the aggregation of a private run with canaries, for `binaries.audit`."""

import collections
import math
import pathlib

from binaries.building import aggregation
from binaries.building import execution
from binaries.config import aggregations
from binaries.config import run_config
from tff_ssl.federated import server
from tff_ssl.runs.privacy import accounting
from tff_ssl.runs.privacy import canary_audit
from tff_ssl.runs.privacy import privacy_ledger


def audit(
  folder: pathlib.Path,
  config: run_config.RunConfig,
  clients: int,
  rounds: int,
  seed: int,
) -> None:
  """Audits a run, and prints what was found.

  Args:
    folder: The run folder.
    config: The run, as it is executed here.
    clients: Canary clients in each round.
    rounds: Rounds, each with new canaries.
    seed: Seed of the canaries' directions; noise has no seed.

  Raises:
    ValueError: If the ledger is missing or damaged, or the aggregation is broken.
  """
  aggregation.check(config, rows_of_one_client=False)
  terms, times = _terms(folder), _times(folder)
  silent = 0
  if isinstance(config.aggregation, aggregations.Distributed):
    # Each client adds its part of the noise, so a round must have all of them.
    total, clients = clients * rounds, min(clients, terms.cohort)
    rounds = math.ceil(total / clients)
    silent = terms.cohort - clients
  packs = config.runtime.packs
  canaries = canary_audit.Canaries(
    clients,
    rounds,
    num_packs=2 if packs is None else packs,
    seed=seed,
    silent=silent,
    releases=times,
  )
  finding = _audit(config, terms, canaries)
  what = 'one release' if times == 1 else f'{times} releases of one round'
  print(
    f'{what} of updates, epsilon at delta {finding.delta:g}: claimed '
    f'{finding.claimed:.3g}, at least {finding.lower_bound:.3g} (95 % confidence), '
    f'estimated {finding.estimate:.3g}'
  )
  if finding.is_broken:
    raise ValueError(
      f'The aggregation of {folder} is broken: canaries show an epsilon of at least '
      f'{finding.lower_bound:.3g}, but its ledger claims {finding.claimed:.3g}.'
    )
  print('Canaries found nothing wrong with the clip and the noise.')


def _audit(
  config: run_config.RunConfig,
  terms: accounting.Terms,
  canaries: canary_audit.Canaries,
) -> canary_audit.AuditFinding:
  """Audits what the configuration builds against the terms of the run's ledger."""
  # A round of canaries has one release; a run divides its noise among more.
  shares = [
    share for name, share in terms.shares.items() if name.endswith(f'/{server.UPDATE}')
  ]
  if not shares:
    raise ValueError(
      f'{privacy_ledger.NAME} of the run has {", ".join(terms.shares)}; it must have '
      'an update, which is what is audited.'
    )
  built = aggregation.build(config, [1] * terms.population, None, max(shares))
  if built is None:
    raise ValueError('The configuration of the run builds no private aggregation.')
  with execution.open_context(config):
    return canary_audit.audit(
      built,
      terms.of_round / math.sqrt(max(shares)),
      getattr(config.aggregation, 'update_clip', None),
      terms.delta,
      canaries,
    )


def _times(folder: pathlib.Path) -> int:
  """Returns how often the round was released that was released most, at least once.

  A torn line counts as one more release of it.
  """
  times = collections.Counter(privacy_ledger.rounds(folder))
  torn = times.pop(None, 0)
  return max(times.values(), default=0) + torn or 1


def _terms(folder: pathlib.Path) -> accounting.Terms:
  """Returns the terms with which the ledger of the run accounts for privacy.

  Raises:
    ValueError: If the ledger is missing or damaged.
  """
  path = folder / privacy_ledger.NAME
  if not path.is_file():
    raise ValueError(f'{path} is missing; a private run has a ledger there.')
  stored = privacy_ledger.read(folder)
  try:
    return accounting.Terms.from_json(stored)
  except ValueError as error:
    raise ValueError(f'{path} is damaged: {error}') from error
