"""Caveats of a comparison: whether its groups can be compared, and compared fairly."""

from collections.abc import Iterator, Sequence
import math
from typing import NamedTuple

from tff_ssl.reporting import comparison
from tff_ssl.reporting import run_groups
from tff_ssl.reporting import run_reader


def find(groups: Sequence[run_groups.Group]) -> list[str]:
  """Returns a sentence for each caveat.

  Args:
    groups: From `run_groups.group`.

  Returns:
    Sentences on budgets and data that differ, on how accuracies were measured, on flags
    that names leave out, on groups with the same numbers, on runs that have not
    finished, and on runs of a group with the same seed.
  """
  sentences = [
    *_unequal_budgets(groups),
    *_other_data(groups),
    *_measured_otherwise(groups),
  ]
  if groups[0].unnamed:
    sentences.append(
      f'The groups also differ in {", ".join(groups[0].unnamed)}, which their names '
      'leave out.'
    )
  sentences += _identical(groups)
  for group in groups:
    for run in group.runs:
      if not run_groups.is_finished(run):
        what = 'is left out' if run in group.left_out else 'is compared as it is'
        sentences.append(f'{run.folder} is {run_groups.state_of(run)}; it {what}.')
    sentences += _same_seeds(group)
  return sentences


# Flags of evaluation that change accuracies under the same name.
_OF_MEASURES = (
  'finetune_learning_rate',
  'finetune_steps',
  'knn_k',
  'supervised_steps',
)
# Budgets within this factor count as equal: cohorts differ by chance.
_EQUAL = 1.05


class _Budget(NamedTuple):
  """How much a run has computed; the product of the three numbers is compared."""

  rounds: int
  each_round: int
  passes: int


def _unequal_budgets(groups: Sequence[run_groups.Group]) -> Iterator[str]:
  """Compares rounds times examples (or clients) per round times passes over them."""
  counted = [(run, group) for group in groups for run in group.counted]
  examples = [_mean(run, 'examples') for run, _ in counted]
  # Measured numbers say more than a flag, which --participation overrides.
  measured = all(examples)
  names: dict[_Budget, dict[str, None]] = {}
  for (run, group), seen in zip(counted, examples, strict=True):
    clients = None if run.flags.get('participation') else _clients(run)
    each_round = round(seen) if measured and seen else clients
    if each_round is not None:
      budget = _Budget(run.last_round, each_round, _passes(run))
      names.setdefault(budget, {})[group.name] = None
  products = [math.prod(budget) for budget in names]
  if products and max(products) > _EQUAL * min(products):
    with_passes = any(budget.passes > 1 for budget in names)
    budgets = '; '.join(
      f'{" x ".join(f"{n:,}" for n in budget[: 3 if with_passes else 2])} '
      f'for {_which(list(groups_of))}'
      for budget, groups_of in names.items()
    )
    what = 'rounds x examples a round' if measured else 'rounds x clients_per_round'
    what += ' x local passes' if with_passes else ''
    yield f'This is not a fair comparison, as budgets ({what}) differ: {budgets}.'


def _mean(run: run_reader.Run, name: str) -> float | None:
  """Returns the mean over rounds of a number that clients report, or None."""
  values = [
    row[column]
    for row in run.metrics
    for column in row
    if column.rpartition('/')[2] == name and math.isfinite(row[column])
  ]
  return sum(values) / len(values) if values else None


def _clients(run: run_reader.Run) -> int | None:
  clients = run.flags.get('clients_per_round')
  return clients if isinstance(clients, int) else None


def _passes(run: run_reader.Run) -> int:
  """Returns how often a client goes over its examples in a round."""
  # A method has one of the two; the other is 1.
  flags = (run.flags.get(name, 1) for name in ('local_epochs', 'local_steps'))
  return math.prod(number for number in flags if isinstance(number, int))


def _which(names: Sequence[str]) -> str:
  return names[0] if len(names) == 1 else f'{len(names)} groups'


def _other_data(groups: Sequence[run_groups.Group]) -> Iterator[str]:
  if run_groups.EXAMPLES in groups[0].differing:
    yield 'The groups have different data, so their accuracies are not comparable.'


def _measured_otherwise(groups: Sequence[run_groups.Group]) -> Iterator[str]:
  """Compares flags that do not define groups, because they change no training."""
  runs = [run for group in groups for run in group.counted]
  for flag in _OF_MEASURES:
    texts = (run_groups.text(run.flags[flag]) for run in runs if flag in run.flags)
    values = sorted(set(texts))
    if len(values) > 1:
      yield (
        f'Runs were evaluated with different {flag} ({", ".join(values)}): the '
        'accuracies that depend on it are not comparable.'
      )


def _identical(groups: Sequence[run_groups.Group]) -> Iterator[str]:
  """Finds groups whose runs of the same seeds have the same numbers to the bit."""
  by_seed = [
    {run_groups.seed_of(run): run for run in group.counted} for group in groups
  ]
  for k, (one, runs) in enumerate(zip(groups, by_seed, strict=True)):
    for other, others in zip(groups[:k], by_seed[:k], strict=True):
      both = runs.keys() & others.keys()
      if both and all(_is_same(runs[seed], others[seed]) for seed in both):
        yield (
          f'{other.name} and {one.name} have the same numbers to the last digit in '
          'every run of the same seed: nothing in which they differ had an effect.'
        )


def _is_same(one: run_reader.Run, other: run_reader.Run) -> bool:
  """Returns whether two runs have the same losses, and the same scores of encoders."""
  losses = [comparison.by_round(run.metrics, comparison.LOSS) for run in (one, other)]
  # The number of labels, and baselines, follow from the seed.
  shared = [
    name
    for name in one.evaluation.keys() & other.evaluation.keys()
    if name != 'round' and not name.startswith(('labels/', *comparison.BASELINES))
  ]
  # With few test examples, accuracies may be equal by chance; many losses are not.
  if not shared or not losses[0] or losses[0] != losses[1]:
    return False
  return all(one.evaluation[name] == other.evaluation[name] for name in shared)


def _same_seeds(group: run_groups.Group) -> Iterator[str]:
  first: dict[str, run_reader.Run] = {}
  for run in group.counted:
    other = first.setdefault(run_groups.seed_of(run), run)
    if other is not run:
      yield (
        f'{other.folder} and {run.folder} have the same flags and seed '
        f'{run_groups.seed_of(run)}, so the deviation is too small.'
      )
