"""Caveats of a comparison: whether its groups can be compared, and fairly."""

from collections.abc import Iterator, Sequence
import math

from tff_ssl.reporting import groups as groups_lib
from tff_ssl.reporting import runs as runs_lib


def find(groups: Sequence[groups_lib.Group]) -> list[str]:
  """Returns a sentence for each caveat.

  Args:
    groups: From `groups.group`.

  Returns:
    Sentences on budgets and data that differ, on flags that names leave out, on runs
    that have not finished, and on runs of a group with the same seed.
  """
  sentences = [*_unequal_budgets(groups), *_other_data(groups)]
  if groups[0].unnamed:
    sentences.append(
      f'The groups also differ in {", ".join(groups[0].unnamed)}, which their names '
      'leave out.'
    )
  for group in groups:
    for run in group.runs:
      if not groups_lib.is_finished(run):
        what = 'is left out' if run in group.left_out else 'is compared as it is'
        sentences.append(f'{run.folder} is {groups_lib.state_of(run)}; it {what}.')
    sentences += _same_seeds(group)
  return sentences


def _unequal_budgets(groups: Sequence[groups_lib.Group]) -> Iterator[str]:
  """Compares the visits of clients: rounds times clients a round times local epochs."""
  names: dict[tuple[int, int, int], dict[str, None]] = {}
  for group in groups:
    for run in group.counted:
      clients = run.flags.get('clients_per_round')
      epochs = run.flags.get('local_epochs', 1)
      if isinstance(clients, int) and isinstance(epochs, int):
        key = run.last_round, clients, epochs
        names.setdefault(key, {})[group.name] = None
  if len({math.prod(key) for key in names}) > 1:
    with_epochs = any(epochs > 1 for _, _, epochs in names)
    budgets = '; '.join(
      f'{" x ".join(f"{n:,}" for n in key[: 3 if with_epochs else 2])} '
      f'for {_which(list(found))}'
      for key, found in names.items()
    )
    what = 'rounds x clients_per_round' + (' x local_epochs' if with_epochs else '')
    yield f'This is not a fair comparison, as budgets ({what}) differ: {budgets}.'


def _which(names: Sequence[str]) -> str:
  return names[0] if len(names) == 1 else f'{len(names)} groups'


def _other_data(groups: Sequence[groups_lib.Group]) -> Iterator[str]:
  if groups_lib.EXAMPLES in groups[0].differing:
    yield 'The groups have other data, so their accuracies do not compare.'


def _same_seeds(group: groups_lib.Group) -> Iterator[str]:
  first: dict[str, runs_lib.Run] = {}
  for run in group.counted:
    other = first.setdefault(groups_lib.seed_of(run), run)
    if other is not run:
      yield (
        f'{other.folder} and {run.folder} have the same flags and seed '
        f'{groups_lib.seed_of(run)}, so the deviation is too small.'
      )
