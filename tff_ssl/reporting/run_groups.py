"""Groups of runs that differ only in their seed."""

import collections
from collections.abc import Callable, Collection, Mapping, Sequence
import dataclasses
import json
from typing import NamedTuple

from tff_ssl.reporting import run_reader

# Flags that do not change what is trained: where files are, how the work is laid out,
# when a run is saved, and when and how its encoder is evaluated.
NEUTRAL = (
  'baselines',
  'checkpoint_every',
  'data_dir',
  'download',
  'evaluate_every',
  'evaluation_methods',
  'export_clients',
  'finetune_learning_rate',
  'finetune_steps',
  'host_timeout',
  'i_trust_this_network',
  'knn_every',
  'knn_k',
  'label_fractions',
  'packs',
  'parts',
  'personal_methods',
  'run_dir',
  'runtime',
  'strict',
  'supervised_steps',
  'trackers',
  'worker_address',
  'worker_addresses',
)
_SEED = 'seed'
# Distinguishes data sets of the same name, such as two folders of images.
EXAMPLES = 'examples'
_DIGITS_OF_EXAMPLES = 8
# Flags that together name a run's method, and the name that stands for all of them.
CHOOSERS = ('method', 'algorithm', 'objective')
METHOD = 'method'
# Named first, and kept if a name would be too long.
_FIRST = (*CHOOSERS, 'task')
_SINGLE = 'all runs'
# Maximum length of a name, in a legend's line or the first column of a table.
_LONGEST_NAME = 60
# Maximum length of a label, which names a column or a line in a paper.
_LONGEST_LABEL = 20


class Label(NamedTuple):
  """Names groups in place of all the flags in which they differ.

  Attributes:
    of_run: A run -> its label, the same for all runs of a group.
    flags: The flags that labels express.
  """

  of_run: Callable[[run_reader.Run], str]
  flags: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Group:
  """Runs with the same flags and different seeds.

  Attributes:
    name: The flags in which it differs from the other groups, such as 'algorithm=dcco';
      if there are many, as few as tell the groups apart.
    differing: All settings in which any two groups differ, as text by name, in the same
      order for every group; 'examples' stands for the data. A flag that these runs do
      not have is left out.
    unnamed: The differing settings that the groups' names leave out.
    counted: The runs whose numbers are the group's: those that have finished, or all if
      none has.
    left_out: The other runs.
  """

  name: str
  differing: Mapping[str, str]
  unnamed: Sequence[str]
  counted: tuple[run_reader.Run, ...]
  left_out: tuple[run_reader.Run, ...] = ()

  @property
  def runs(self) -> tuple[run_reader.Run, ...]:
    """All runs, those that count first."""
    return self.counted + self.left_out

  @property
  def finished(self) -> bool:
    """Whether the runs that count have finished."""
    return all(map(is_finished, self.counted))


def group(
  runs: Sequence[run_reader.Run],
  neutral: Collection[str] = NEUTRAL,
  label: Label | None = None,
) -> list[Group]:
  """Groups runs that differ only in their seed.

  Args:
    runs: The runs; a folder given twice counts once.
    neutral: Flags that may differ within a group.
    label: Names the groups, in at most 20 characters; None: the flags in which they
      differ, or their methods if these are of several programs.

  Returns:
    The groups, in the order of their first run.

  Raises:
    ValueError: There are no runs, or a config.json has no flags.
  """
  if not runs:
    raise ValueError('There are no runs to compare; there must be at least one.')
  unique = {run.folder.resolve(): run for run in runs}.values()
  members: dict[str, list[run_reader.Run]] = collections.OrderedDict()
  settings: dict[str, dict[str, str]] = {}
  for run in unique:
    own = _settings(run, neutral)
    key = json.dumps(own, sort_keys=True)
    settings[key] = own
    members.setdefault(key, []).append(run)
  differing = _differing(list(settings.values()))
  if label is None and len({_choosers_of(run) for run in unique}) > 1:
    label = method_label()
  if label is None:
    naming = _naming(list(settings.values()), differing)
    names = {key: _name(own, naming) for key, own in settings.items()}
    unnamed = [flag for flag in differing if flag not in naming]
  else:
    labels = {
      key: label.of_run(runs_of_group[0]) for key, runs_of_group in members.items()
    }
    names = _labelled(labels, settings)
    # Flags that only some methods have need not be named.
    shared = [flag for flag in differing if all(flag in s for s in settings.values())]
    unnamed = [flag for flag in shared if flag not in label.flags]
  groups = []
  for key, runs_of_group in members.items():
    finished = tuple(run for run in runs_of_group if is_finished(run))
    counted = finished or tuple(runs_of_group)
    groups.append(
      Group(
        names[key],
        {flag: settings[key][flag] for flag in differing if flag in settings[key]},
        unnamed,
        counted,
        tuple(run for run in runs_of_group if run not in counted),
      )
    )
  return groups


def method_label() -> Label:
  """Returns the label by method, which flags of several programs name together."""
  return Label(_method_of, CHOOSERS)


def flag_label(runs: Sequence[run_reader.Run], flags: Sequence[str]) -> Label:
  """Returns the label by the values of flags.

  Args:
    runs: All runs that are named.
    flags: The flags; 'method' stands for all flags that name a run's method.

  Raises:
    ValueError: No run has such a flag.
  """
  for flag in flags:
    if flag != METHOD and not any(flag in run.flags for run in runs):
      raise ValueError(f'label names {flag!r}; no run has this flag.')

  def of_run(run: run_reader.Run) -> str:
    parts = (
      _method_of(run) if flag == METHOD else text(run.flags.get(flag)) for flag in flags
    )
    return ' '.join(parts)

  expressed = tuple(flag for flag in flags if flag != METHOD)
  return Label(of_run, (*expressed, *(CHOOSERS if METHOD in flags else ())))


def _choosers_of(run: run_reader.Run) -> tuple[str, ...]:
  return tuple(name for name in CHOOSERS if name in run.flags)


def _method_of(run: run_reader.Run) -> str:
  return ' '.join(text(run.flags[name]) for name in _choosers_of(run)) or _SINGLE


def _labelled(
  labels: Mapping[str, str], settings: Mapping[str, Mapping[str, str]]
) -> dict[str, str]:
  """Returns labels of at most 20 characters, each different.

  Groups with the same label are told apart by their flags or, if that is too long, by a
  number.
  """
  names = {}
  for label in dict.fromkeys(labels.values()):
    keys = [key for key, own in labels.items() if own == label]
    own = [settings[key] for key in keys]
    naming = _naming(own, _differing(own)) if len(keys) > 1 else []
    for key in keys:
      names[key] = f'{label} {_name(settings[key], naming)}' if naming else label
    if len(keys) > 1 and max(len(names[key]) for key in keys) > _LONGEST_LABEL:
      for number, key in enumerate(keys, start=1):
        names[key] = f'{_cut(label, len(str(number)) + 1)} {number}'
  cut = {key: _cut(name) for key, name in names.items()}
  alike: dict[str, int] = collections.Counter(cut.values())
  return {
    key: f'{_cut(names[key], len(str(number)) + 1)} {number}'
    if alike[name] > 1
    else name
    for number, (key, name) in enumerate(cut.items(), start=1)
  }


def _cut(label: str, room: int = 0) -> str:
  """Returns a label's beginning, of at most 20 characters minus some room."""
  longest = _LONGEST_LABEL - room
  return label if len(label) <= longest else f'{label[: longest - 1]}…'


def is_finished(run: run_reader.Run) -> bool:
  """Returns whether a run has all rounds that its flags ask for."""
  return run.last_round >= (rounds_of(run) or 0)


def rounds_of(run: run_reader.Run) -> int | None:
  """Returns the rounds that a run's flags ask for, None if they do not say."""
  rounds = run.flags.get('rounds')
  return rounds if isinstance(rounds, int) else None


def seed_of(run: run_reader.Run) -> str:
  """Returns a run's seed, as text."""
  return text(run.flags.get(_SEED))


def state_of(run: run_reader.Run) -> str:
  """Returns 'finished' or 'unfinished', with the round that it has reached."""
  if is_finished(run):
    return f'finished, {run.last_round:,} rounds'
  return f'unfinished, round {run.last_round:,} of {rounds_of(run):,}'


def _settings(run: run_reader.Run, neutral: Collection[str]) -> dict[str, str]:
  settings = {
    name: text(value)
    for name, value in sorted(run.flags.items())
    if name != _SEED and name not in neutral
  }
  return {**settings, EXAMPLES: str(run.config.get('task', ''))[:_DIGITS_OF_EXAMPLES]}


def _differing(settings: Sequence[Mapping[str, str]]) -> list[str]:
  """Returns the names whose values are not the same everywhere."""
  names = dict.fromkeys((*_FIRST, *(name for own in settings for name in own)))
  return [name for name in names if len({own.get(name) for own in settings}) > 1]


def _naming(settings: Sequence[Mapping[str, str]], differing: list[str]) -> list[str]:
  """Chooses the flags that name groups: all that differ, unless that is too long.

  Flags that not all groups have are used only if the others do not tell the groups
  apart. Names that would be too long keep as few flags as tell the groups apart,
  preferably the first ones.
  """
  shared = [flag for flag in differing if all(flag in own for own in settings)]
  naming = shared if _tells_apart(settings, shared) else differing
  for flag in reversed(naming):
    if max(len(_name(own, naming)) for own in settings) <= _LONGEST_NAME:
      break
    fewer = [name for name in naming if name != flag]
    if _tells_apart(settings, fewer):
      naming = fewer
  return naming


def _tells_apart(settings: Sequence[Mapping[str, str]], flags: Sequence[str]) -> bool:
  return len({_name(own, flags) for own in settings}) == len(settings)


def _name(own: Mapping[str, str], flags: Sequence[str]) -> str:
  parts = (f'{flag}={own[flag]}' if flag in own else f'no {flag}' for flag in flags)
  return ' '.join(parts) or _SINGLE


def text(value: object) -> str:
  """Returns a flag's value as it is written in names."""
  if value is None:
    return 'unset'
  if isinstance(value, list):
    return ','.join(map(str, value))
  return str(value) if isinstance(value, str) else json.dumps(value)
