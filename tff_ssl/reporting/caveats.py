"""Caveats of a comparison: whether its groups can be compared, and compared fairly."""

import collections
from collections.abc import Iterator, Mapping, Sequence
import math

from tff_ssl.computing import kinds
from tff_ssl.evaluation import method_names
from tff_ssl.reporting import budgets
from tff_ssl.reporting import run_groups
from tff_ssl.reporting import run_numbers
from tff_ssl.reporting import run_reader
from tff_ssl.runs import own_modules
from tff_ssl.settings import parts

_METHODS = 'evaluation.methods'
# Of a setting that a run does not have.
_NONE = object()


def find(
  groups: Sequence[run_groups.Group], settings: budgets.Settings = budgets.NOTHING
) -> list[str]:
  """Returns a sentence for each caveat.

  Args:
    groups: From `run_groups.group`.
    settings: The settings that are compared.

  Returns:
    Sentences on budgets, data and names of classes that differ, on how accuracies were
    measured, on metrics whose module is not imported, on settings that names leave out,
    on groups with the same numbers, on runs that have not finished, and on runs of a
    group with the same seed.
  """
  sentences = [
    *_unequal_budgets(groups, settings),
    *_other_data(groups),
    *_measured_otherwise(groups, settings.measures),
    *_unknown_metrics(groups),
  ]
  if groups[0].unnamed:
    sentences.append(
      f'The groups also differ in {", ".join(groups[0].unnamed)}, which their names '
      'leave out.'
    )
  sentences += _identical(groups)
  for group in groups:
    for run in group.runs:
      if not run.is_finished:
        what = 'is left out' if run in group.left_out else 'is compared as it is'
        sentences.append(f'{run.folder} is {run.state}; it {what}.')
    sentences += _same_seeds(group)
  return sentences


def _unequal_budgets(
  groups: Sequence[run_groups.Group], settings: budgets.Settings
) -> Iterator[str]:
  """Compares rounds times examples (or clients) per round times passes over them."""
  found, measured = budgets.find(groups, settings)
  names: dict[budgets.Budget, dict[str, None]] = {}
  for group, own in zip(groups, found, strict=True):
    for budget in own:
      names.setdefault(budget, {})[group.name] = None
  products = [math.prod(budget) for budget in names]
  if products and not budgets.are_equal(min(products), max(products)):
    with_passes = any(budget.passes > 1 for budget in names)
    said = '; '.join(
      f'{" x ".join(f"{n:,}" for n in budget[: 3 if with_passes else 2])} '
      f'for {_which(list(groups_of))}'
      for budget, groups_of in names.items()
    )
    what = 'rounds x examples a round' if measured else f'rounds x {settings.clients}'
    what += ' x local passes' if with_passes else ''
    yield f'This is not a fair comparison, as budgets ({what}) differ: {said}.'


def _which(names: Sequence[str]) -> str:
  return names[0] if len(names) == 1 else f'{len(names)} groups'


def _other_data(groups: Sequence[run_groups.Group]) -> Iterator[str]:
  if run_groups.EXAMPLES in groups[0].differing:
    yield 'The groups have different data, so their accuracies are not comparable.'
  elif len({run.classes for group in groups for run in group.counted}) > 1:
    yield 'Not all runs have the same names of classes, which are shown by number.'


def _measured_otherwise(
  groups: Sequence[run_groups.Group], measures: Mapping[str, str]
) -> Iterator[str]:
  """Compares settings that do not define groups, because they change no training.

  A setting beside numbers, of a later evaluation, counts for these before the run's.
  """
  every = (run for group in groups for run in group.counted)
  runs = [run for run in every if any(map(method_names.way, run.evaluation))]
  for name, mark in measures.items():
    end = f'/{mark}'
    # Numbers beside which some run has the setting, such as knn/10%, and their kind.
    marked = {
      key.removesuffix(end)
      for run in runs
      for key in run.evaluation
      if key.endswith(end)
    }
    kinds_marked = {place.rpartition('/')[0] for place in marked}
    by_place = collections.defaultdict(set)
    for run in runs:
      scored = {key.rpartition('/')[0] for key in run.evaluation}
      places = {each for each in scored if each.rpartition('/')[0] in kinds_marked}
      for place in places or marked or {''}:
        value = run.evaluation.get(place + end, run.settings.get(name, _NONE))
        if value is not _NONE:
          # A rate of 0 was chosen, as none is.
          by_place[place].add(kinds.value_text(value or None))
    different = {value for each in by_place.values() if len(each) > 1 for value in each}
    if different:
      yield (
        f'Runs were evaluated with different {name} ({", ".join(sorted(different))}): '
        'the accuracies that depend on it are not comparable.'
      )


def _unknown_metrics(groups: Sequence[run_groups.Group]) -> Iterator[str]:
  """Compares metrics of one's own, of which only their modules know the scores."""
  runs = [run for group in groups for run in group.counted]
  known = {*method_names.EVERY, *parts.METRICS}
  asked = {each for run in runs for each in run.settings.get(_METHODS) or ()}
  if unknown := sorted({*map(str, asked)} - known):
    every = (own_modules.of_run(run.folder, run.config) for run in runs)
    modules = sorted({name for names in every for name in names})
    yield (
      f'Other scores than accuracies of {", ".join(unknown)} are left out; give '
      f'--{own_modules.FLAG}={",".join(modules)} (or the path of the .py file) to see '
      'them.'
    )


def _identical(groups: Sequence[run_groups.Group]) -> Iterator[str]:
  """Finds groups whose runs of the same seeds have the same numbers to the bit."""
  by_seed = [{run.seed: run for run in group.counted} for group in groups]
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
  loss, others = (
    run_numbers.by_round(run.metrics, run_numbers.LOSS) for run in (one, other)
  )
  # The number of labels, and baselines, follow from the seed.
  shared = [
    name
    for name in one.evaluation.keys() & other.evaluation.keys()
    if name != 'round' and not name.startswith(('labels/', *run_numbers.BASELINES))
  ]
  # With few test examples, accuracies may be equal by chance; many losses are not.
  if not shared or loss.empty or not loss.equals(others):
    return False
  return all(one.evaluation[name] == other.evaluation[name] for name in shared)


def _same_seeds(group: run_groups.Group) -> Iterator[str]:
  first: dict[str, run_reader.Run] = {}
  for run in group.counted:
    other = first.setdefault(run.seed, run)
    if other is not run:
      yield (
        f'{other.folder} and {run.folder} have the same settings and seed '
        f'{run.seed}, so the deviation is too small.'
      )
