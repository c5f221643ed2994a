"""What a reader of a comparison must know: whether the groups compare, and fairly."""

from collections.abc import Iterator, Sequence

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
  """Compares the clients that runs have visited: rounds times clients a round."""
  names: dict[tuple[int, int], dict[str, None]] = {}
  for group in groups:
    for run in group.counted:
      clients = run.flags.get('clients_per_round')
      if isinstance(clients, int):
        names.setdefault((run.last_round, clients), {})[group.name] = None
  if len({rounds * clients for rounds, clients in names}) > 1:
    budgets = '; '.join(
      f'{rounds:,} x {clients:,} for {_which(list(found))}'
      for (rounds, clients), found in names.items()
    )
    yield (
      'This is not a fair comparison, as budgets (rounds x clients_per_round) differ: '
      f'{budgets}.'
    )


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
