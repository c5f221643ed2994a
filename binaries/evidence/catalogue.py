"""All claims, by budget, and what is run for them."""

import collections
from collections.abc import Collection, Sequence
import dataclasses

from binaries.evidence import causes
from binaries.evidence import claim as claim_lib
from binaries.evidence import dcco
from binaries.evidence import dec_ssl
from binaries.evidence import fedema
from binaries.evidence import fedsup
from binaries.evidence import ssfl

# Its images come with scikit-learn.
_BUNDLED = 'digits'
_PAPERS = (dcco, ssfl, fedema, dec_ssl, fedsup)


def claims(budget: str) -> tuple[claim_lib.Claim, ...]:
  """Returns the claims of all papers that a budget has runs for.

  Args:
    budget: One of `claim.BUDGETS`.

  Raises:
    ValueError: If two claims or two runs have one name.
  """
  found = tuple(claim for paper in _PAPERS for claim in paper.claims(budget))
  check(found)
  known = causes.BY_BUDGET[budget]
  return tuple(
    dataclasses.replace(claim, cause=known.get(claim.id, '')) for claim in found
  )


def choose(
  found: Sequence[claim_lib.Claim], ids: Collection[str]
) -> list[claim_lib.Claim]:
  """Returns the claims of these ids, all where there is none.

  Args:
    found: All claims.
    ids: Some of their ids.

  Raises:
    ValueError: If an id is not one of a claim.
  """
  known = [claim.id for claim in found]
  for name in ids:
    if name not in known:
      raise ValueError(f'claims has {name!r}; allowed are {", ".join(known)}.')
  return [claim for claim in found if not ids or claim.id in ids]


def runs(chosen: Sequence[claim_lib.Claim]) -> list[claim_lib.Run]:
  """Returns the runs of several claims, each once, in the order of the claims.

  Args:
    chosen: The claims.
  """
  return list(dict.fromkeys(run for claim in chosen for run in claim.runs))


def tasks(found: Sequence[claim_lib.Claim]) -> list[str]:
  """Returns the tasks whose data the runs of claims read, in lexicographic order.

  Args:
    found: The claims.
  """
  columns = [figure.column for claim in found for figure in claim.figures.values()]
  names = {
    *(run.task for run in runs(found)),
    *filter(None, map(claim_lib.transfer_task, columns)),
  }
  return sorted(names - {_BUNDLED})


def check(found: Sequence[claim_lib.Claim]) -> None:
  """Refuses ids that two claims have, and runs under two names.

  Args:
    found: The claims of one budget.

  Raises:
    ValueError: If there are such.
  """
  ids = collections.Counter(claim.id for claim in found)
  names = collections.Counter(run.name for run in runs(found))
  keys = collections.Counter(run.key for run in runs(found))
  for what, counted in (('claims', ids), ('runs', names), ('runs', keys)):
    for name, count in counted.items():
      if count > 1:
        raise ValueError(f'{count} {what} are {name!r}; each must be its own.')
