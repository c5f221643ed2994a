r"""Audits with canary clients how a private run combines what clients send.

  python -m binaries.audit --run=runs/private

Canaries send random directions a thousand times longer than the clip norm of updates
through the aggregation that the run's flags build, including packs of clients. How
clearly their presence shows in what is released gives a lower bound on epsilon. They
are released as often as the round of the run that was repeated most. If the bound
exceeds what the run's ledger claims for that round, a clip or the noise is broken, and
the exit status is 1. The run need not have finished, and nothing is written
to it.
"""

import collections
import dataclasses
import math
import pathlib

from absl import flags

from binaries.flags import adopting
from binaries.flags import common
from binaries.flags import hosts
from binaries.flags import outputs
from binaries.flags import privacy
from binaries.flags import program
from tff_ssl.runs import run_config
from tff_ssl.runs.privacy import accounting
from tff_ssl.runs.privacy import canary_audit
from tff_ssl.runs.privacy import privacy_ledger

_CANARIES = flags.DEFINE_integer(
  'canaries', 200, 'Canary clients in each round.', lower_bound=2
)
_ROUNDS = flags.DEFINE_integer(
  'canary_rounds', 5, 'Rounds, each with new canaries.', lower_bound=1
)
# The flags that --help lists.
TAKEN = ('run', 'canaries', 'canary_rounds', 'seed')
# Flags of the run that decide how its clients' values are combined.
_ADOPTED = (
  *privacy.NAMES,
  'clients_per_round',
  'packs',
  'participation',
  'rounds',
)

# What each flag names.
REQUIRED = {'run': 'the folder of a run'}


def main() -> None:
  """Audits."""
  program.check_required(REQUIRED)
  for name in common.given():
    if name not in TAKEN:
      raise ValueError(
        f'--{name} is given; binaries.audit takes only {", ".join(TAKEN)}; the run '
        'provides the rest.'
      )
  folder = pathlib.Path(outputs.RUN.value)
  stored = run_config.read(folder)['flags']
  found = stored.get(privacy.AGGREGATION.name, privacy.PLAIN)
  if found not in (privacy.PRIVATE, privacy.DISTRIBUTED):
    raise ValueError(
      f'{folder} is a run with --{privacy.AGGREGATION.name}={found}; an audit needs '
      f'a run with {privacy.PRIVATE} or {privacy.DISTRIBUTED}.'
    )
  known = {**common.DEFAULTS, **stored}
  adopting.adopt({name: known[name] for name in _ADOPTED if name in known}, ())
  if privacy.QUANTILE.value is not None:
    raise ValueError(
      f'{folder} is a run with --{privacy.QUANTILE.name}; an audit needs a run '
      'whose clip norms are fixed, because canaries would raise adaptive ones.'
    )
  privacy.check()
  finding = _audit(folder)
  times = _times(folder)
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


def _audit(folder: pathlib.Path) -> canary_audit.AuditFinding:
  """Audits what the flags build against what the ledger of the run claims."""
  terms = _terms(folder)
  multipliers = terms.multipliers
  # A round of canaries has one release; a run divides its noise among more.
  aggregation = privacy.build([1] * terms.population)
  if aggregation is None or aggregation.divided is None:
    raise ValueError('The flags of the run build no private aggregation.')
  canaries = dataclasses.replace(_canaries(terms.cohort), releases=_times(folder))
  with hosts.open_context():
    return canary_audit.audit(
      aggregation.divided(len(multipliers)),
      max(multipliers.values()),
      privacy.UPDATE_CLIP.value,
      terms.delta,
      canaries,
    )


def _canaries(cohort: int) -> canary_audit.Canaries:
  """Returns the canaries: at most as many in a round as a round has clients.

  Args:
    cohort: Number of clients in a round.
  """
  packs = hosts.num_packs()
  clients, rounds, silent = _CANARIES.value, _ROUNDS.value, 0
  if privacy.is_distributed():
    # Each client adds its part of the noise, so a round must have all of them.
    clients = min(clients, cohort)
    rounds = math.ceil(_CANARIES.value * _ROUNDS.value / clients)
    silent = cohort - clients
  return canary_audit.Canaries(
    clients,
    rounds,
    num_packs=2 if packs is None else packs,
    seed=common.SEED.value,
    silent=silent,
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


if __name__ == '__main__':
  common.run(main, TAKEN)
