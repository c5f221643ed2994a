"""Groups of runs that differ only in their seed, and their names."""

from collections.abc import Collection, Mapping, Sequence
import dataclasses

import pandas as pd

from tff_ssl.computing import kinds
from tff_ssl.computing import near_names
from tff_ssl.reporting import run_reader
from tff_ssl.runs import own_modules

# Distinguishes data sets of the same name, such as two folders of images.
EXAMPLES = 'examples'
# Distinguishes versions of modules of one's own.
_IMPORTS = own_modules.STORED
_DIGITS_OF_EXAMPLES = 8
HEAD = (run_reader.METHOD, run_reader.OBJECTIVE)
# These come first wherever settings are listed.
_FIRST = (*HEAD, run_reader.TASK)
_ALL = 'all runs'
# Letters of a name, in a legend or in the first column of a table on a page.
_LONGEST, _LONGEST_HEAD = 40, 30


@dataclasses.dataclass(frozen=True)
class Group:
  """Runs with the same settings and different seeds.

  Attributes:
    name: The method, the objective if the groups have several, and the other settings
      in which they differ; if that is long, a number that `legend` explains.
    legend: What the number in the name stands for; empty: the name says all.
    differing: All settings in which any two groups differ, as text by name, in the same
      order for every group; 'examples' stands for the data. A setting that these runs
      do not have is left out.
    said: Settings that names or legends say, beside method and objective, likewise.
    unnamed: The settings with different values that neither names nor legends say.
    counted: The runs whose numbers are the group's: those that have finished, or all if
      none has.
    left_out: The other runs.
  """

  name: str
  legend: str
  differing: Mapping[str, str]
  said: Mapping[str, str]
  unnamed: Sequence[str]
  counted: tuple[run_reader.Run, ...]
  left_out: tuple[run_reader.Run, ...] = ()

  @property
  def runs(self) -> tuple[run_reader.Run, ...]:
    """All runs, those that count first."""
    return self.counted + self.left_out

  @property
  def note(self) -> str:
    """A note on runs that have not finished; otherwise empty."""
    if not all(run.is_finished for run in self.counted):
      return 'unfinished'
    return f'{len(self.left_out)} unfinished left out' if self.left_out else ''


def group(
  runs: Sequence[run_reader.Run],
  ignored: Collection[str] = (),
  label: Sequence[str] = (),
) -> list[Group]:
  """Groups runs that differ only in their seed, and in settings that are neutral.

  Args:
    runs: The runs; a folder given twice counts once.
    ignored: More settings that may differ within a group.
    label: Settings whose values name the groups; empty: all in which they differ.

  Returns:
    The groups, in the order of their first run.

  Raises:
    ValueError: There are no runs, a config.json has no settings, or no run has a
      setting of `label`.
  """
  if not runs:
    raise ValueError('There are no runs to compare; there must be at least one.')
  for name in label:
    if not any(name in run.settings for run in runs):
      known = {each for run in runs for each in run.settings}
      near = near_names.question(name, sorted(known))
      raise ValueError(f'label names {name!r}; no run has this setting.{near}')
  unique = list({run.folder.resolve(): run for run in runs}.values())
  settings = _settings(unique, ignored)
  differing = [name for name in settings if settings[name].nunique(dropna=False) > 1]
  members = [list(range(len(unique)))]
  if differing:
    by_settings = settings.groupby(differing, sort=False, dropna=False)
    members = [list(rows.index) for _, rows in by_settings]
  own = settings.iloc[[rows[0] for rows in members]].reset_index(drop=True)
  names, legends, said, unnamed = _names(own, differing, label)
  groups = []
  for k, rows in enumerate(members):
    all_runs = [unique[row] for row in rows]
    counted = [run for run in all_runs if run.is_finished] or all_runs
    groups.append(
      Group(
        names[k],
        legends[k],
        own.loc[k, differing].dropna().to_dict(),
        own.loc[k, said].dropna().to_dict(),
        unnamed,
        tuple(counted),
        tuple(run for run in all_runs if run not in counted),
      )
    )
  return groups


def classes(groups: Sequence[Group]) -> tuple[str, ...]:
  """Returns the names of the classes if all runs have the same; otherwise none."""
  named = {run.classes for group in groups for run in group.counted}
  return named.pop() if len(named) == 1 else ()


def _settings(runs: Sequence[run_reader.Run], ignored: Collection[str]) -> pd.DataFrame:
  """Returns the settings that tell methods apart, as text: a row for each run.

  A setting counts if a run that has it does not call it neutral: one folder cannot
  hide how others differ.
  """
  counting = {
    name
    for run in runs
    for name in run.settings
    if name not in (run_reader.SEED, *ignored) and not run.is_neutral(name)
  }
  names = [*_FIRST, *sorted(counting - {*_FIRST}), EXAMPLES]
  rows = [
    {
      **{n: kinds.value_text(value) for n, value in run.settings.items()},
      EXAMPLES: str(run.config.get('task', ''))[:_DIGITS_OF_EXAMPLES],
      **own_modules.versions(run.folder, run.config),
    }
    for run in runs
  ]
  kept = [name for name in names if name in counting or name == EXAMPLES]
  kept += [_IMPORTS] if any(_IMPORTS in row for row in rows) else []
  return pd.DataFrame(rows, dtype=object).reindex(columns=kept)


def _names(
  own: pd.DataFrame, differing: Sequence[str], label: Sequence[str]
) -> tuple[list[str], list[str], list[str], list[str]]:
  """Returns names and legends of groups, and the settings that they say, and do not.

  Args:
    own: The settings of each group.
    differing: Those that are not the same everywhere, which fields of one kind alone
      are too.
    label: The settings that name the groups, if they do.
  """
  heads = _heads(own, label)
  told = label or HEAD
  varied = [name for name in differing if own[name].nunique() > 1]
  rest = [name for name in varied if name not in told]
  if label and len(set(heads)) == len(heads):
    return heads, [''] * len(heads), _beside_head(label, ()), rest
  by_name = short(own.columns)
  others = [name for name in rest if name != _IMPORTS]
  if len(set(_texts(own, others, heads, by_name))) == len(heads):
    # Digests are said only where nothing else tells the groups apart.
    rest = others
  if len(set(_texts(own, rest, heads, by_name))) < len(heads):
    # Then what only some groups have must tell them apart.
    rest = [name for name in differing if name not in told]
  names = [name or _ALL for name in _texts(own, rest, heads, by_name)]
  if max(map(len, names)) <= _LONGEST and len(set(names)) == len(names):
    return names, [''] * len(names), _beside_head(label, rest), []
  full = [name for name in varied if name in HEAD or name in label] + rest
  only_some = own[full].nunique() < 2
  numbered = [f'{_cut(head)} [{k}]'.strip() for k, head in enumerate(heads, start=1)]
  legends = [
    f'[{k}] {_flags(row.dropna(), row.index[row.isna() & only_some])}'
    for k, (_, row) in enumerate(own[full].iterrows(), start=1)
  ]
  return numbered, legends, _beside_head(label, rest), []


def _beside_head(label: Sequence[str], rest: Sequence[str]) -> list[str]:
  return [name for name in (*label, *rest) if name not in HEAD]


def _heads(own: pd.DataFrame, label: Sequence[str]) -> list[str]:
  """Returns the beginnings of names: method and objective, or what the label says."""
  parts = [name for name in label or HEAD if name in own]
  # Whoever made an objective looks for its name.
  if not label and _IMPORTS not in own:
    # One objective for all need not be repeated.
    parts = [n for n in parts if n == run_reader.METHOD or own[n].nunique() > 1]
  heads = own[parts].apply(lambda row: ' '.join(dict.fromkeys(row.dropna())), axis=1)
  return list(heads) if parts else [''] * len(own)


def _texts(
  own: pd.DataFrame,
  names: Sequence[str],
  heads: Sequence[str],
  short: Mapping[str, str],
) -> list[str]:
  """Returns each group's values of settings, after the beginning of its name."""
  only_some = {name for name in names if own[name].nunique() < 2}
  result = []
  for head, (_, row) in zip(heads, own.iterrows(), strict=True):
    parts = [head] if head else []
    for name in names:
      if isinstance(row[name], str):
        parts.append(f'{short[name]}={row[name]}')
      elif name in only_some:
        parts.append(f'no {short[name]}')
    result.append(' '.join(parts))
  return result


def _flags(settings: pd.Series, missing: Collection[str]) -> str:
  """Returns settings as flags take them, as in 'clients=sgd:epochs=5 rounds=3'.

  Args:
    settings: Value by name.
    missing: Names of settings that other groups have.
  """
  fields: dict[str, list[str]] = {}
  for name, value in settings.items():
    part, _, field = str(name).partition('.')
    fields.setdefault(part, []).extend([f'{field}={value}'] if field else [])
  texts = (
    f'{part}={":".join(filter(None, (settings.get(part, ""), ",".join(own))))}'
    for part, own in fields.items()
  )
  return ' '.join([*texts, *(f'no {name}' for name in missing)])


def short(names: Collection[str]) -> dict[str, str]:
  """Returns the last parts of each setting's name that no other setting ends with."""
  result = {}
  for name in names:
    parts = name.split('.')
    ends = ('.'.join(parts[k:]) for k in range(len(parts) - 1, -1, -1))
    result[name] = next(
      (
        end
        for end in ends
        if sum(other == end or other.endswith(f'.{end}') for other in names) == 1
      ),
      name,
    )
  return result


def _cut(head: str) -> str:
  return head if len(head) <= _LONGEST_HEAD else f'{head[: _LONGEST_HEAD - 1]}…'
