"""A model card: what an encoder or a classifier is, in Markdown, for who receives it.

After Mitchell et al., Model Cards for Model Reporting (FAT* 2019), as far as a run
knows it: data, method, command, results, privacy, limits, and digests of the files. The
card of a private run leaves out what only its folder may have
(`runs.privacy.disclosure`).
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
import math
import os
import pathlib
import shlex
from typing import Any

from tff_ssl.computing import inert
from tff_ssl.computing import kinds
from tff_ssl.evaluation import intervals
from tff_ssl.evaluation import method_names
from tff_ssl.reporting import pages
from tff_ssl.reporting import plain_text
from tff_ssl.reporting import run_numbers
from tff_ssl.reporting import run_reader
from tff_ssl.reporting import tables
from tff_ssl.reporting import verdict
from tff_ssl.runs import class_names
from tff_ssl.runs import run_config
from tff_ssl.runs.privacy import disclosure
from tff_ssl.storage import files

NAME = disclosure.TEXT
ENCODER, CARD, _EVALUATION = disclosure.ENCODER, disclosure.CARD, 'evaluation.json'
# Shown of `evaluation.json`; recall by class and fairness are in the file itself.
_BITS, _SIGNALS = 'bits', 'signals'
_BASELINES = 'python -m binaries.evaluate --evaluation=baselines=true --run='
# What a card says of the run in words of its own, and of its settings.
_NAMES = ('encoder', 'algorithm', 'rounds', 'input', 'output', 'parameters')
_SAID = (run_reader.TASK, run_reader.METHOD, run_reader.ROUNDS)


def build(
  folder: str | os.PathLike[str],
  hashed: Mapping[str, pathlib.Path],
  notes: Iterable[str] = (),
  unprotected: str | None = None,
  is_public: bool = False,
  public: Collection[str] = (),
  advised: str = '',
  classifier: Mapping[str, Any] = {},
) -> str:
  """Returns the card of a run's encoder.

  Args:
    folder: The run folder.
    hashed: Files whose digests are listed, by the names to show.
    notes: Lines about what was made from the encoder.
    unprotected: Why the run's promise of privacy does not hold for the files of this
      card; None: it does.
    is_public: Whether the card has only what may be given away, as that of a private
      run always has.
    public: Names of the settings that may be given away.
    advised: What to do next, in a line that a card that may be given away leaves out;
      '': nothing.
    classifier: Of an exported classifier, in words, its `classes`, what it `takes` and
      how it was `made`; and `tested` and `threshold` of `recalls`.

  Raises:
    ValueError: The run has no encoder, or a file of the run is damaged.
  """
  folder = pathlib.Path(folder)
  known = _read(folder / CARD)
  config = run_config.read(folder)
  results = folder / _EVALUATION
  numbers = _read(results) if results.is_file() else {}
  classes = class_names.read(folder)
  is_public = is_public or is_private(known)
  # What a private run has released of its quality, or all that the run knows.
  told = _released(known) if is_public else numbers
  sentences = verdict.sentences(_floats(told), classes)
  if advised and not is_public:
    sentences.append(advised)
  return pages.render(
    'card.md',
    known={name: known.get(name) for name in _NAMES},
    parent=known.get('parent'),
    notes=[*notes],
    classifier=classifier,
    data=known.get('data', known.get('task')),
    task=config.get('task'),
    settings=_settings(config, public if is_public else None),
    versions=config.get('versions'),
    command=inert.line(run_config.command(config)) or 'not recorded',
    round=numbers.get('round'),
    results=_results(numbers),
    sentences=sentences,
    confusions=[
      (name, tables.markdown(tables.Table(cells)))
      for name, cells in verdict.confusions(_floats(numbers), classes).items()
    ],
    baselines=inert.line(f'{_BASELINES}{shlex.quote(str(folder))}'),
    promised=_promised(known.get('privacy')),
    unprotected=unprotected,
    is_public=is_public,
    # Of files that are made of it.
    source=None if ENCODER in hashed else files.sha256(folder / ENCODER),
    files=[*hashed],
    hashes='\n'.join(
      f'{files.sha256(path)}  {inert.line(name)}' for name, path in hashed.items()
    ),
  )


def is_private(card: Mapping[str, Any]) -> bool:
  """Returns whether an encoder's card, `encoder.json`, promises differential privacy.

  Args:
    card: Its entries.
  """
  privacy = card.get('privacy')
  return isinstance(privacy, Mapping) and privacy.get('epsilon') is not None


def _read(path: pathlib.Path) -> dict[str, Any]:
  if not path.is_file():
    raise ValueError(f'{path} is missing; the model card is written from it')
  return files.read_json(path)


def _settings(
  config: Mapping[str, Any], shown: Collection[str] | None
) -> Iterator[tuple[str, str]]:
  """Yields the settings, or those that may be shown, as text by name."""
  neutral = config.get('neutral')
  hidden = [*map(str, neutral)] if isinstance(neutral, list) else []
  for name, value in run_config.settings(config['config']).items():
    said = value is None or name in _SAID or run_config.is_among(name, hidden)
    # A seed reveals who was in which cohort, whoever names it.
    is_shown = shown is None or (name in shown and name != run_reader.SEED)
    if is_shown and not said:
      yield name, kinds.value_text(value)


def _released(card: Mapping[str, Any]) -> dict[str, Any]:
  """Returns the signals on a card, where null is what is not a number, or is hidden."""
  found = card.get(_SIGNALS)
  pairs = found.items() if isinstance(found, Mapping) else ()
  return {
    name: math.nan if value is None else value
    for name, value in pairs
    if value is not None or not name.endswith(verdict.RATIO)
  }


def _floats(numbers: Mapping[str, Any]) -> dict[str, float]:
  """Returns what is a number: a file may hold anything."""
  return {name: value for name, value in numbers.items() if isinstance(value, float)}


def _results(numbers: Mapping[str, Any]) -> list[tuple[object, ...]]:
  """Returns the rows of a table of test scores, its head first; none without any."""
  names = [
    name
    for name in numbers
    # Names with more parts belong to baselines, clients or other tasks.
    if name.count('/') <= 2
    and not name.startswith(run_numbers.VALIDATION)
    and method_names.way(name)
  ]

  def of(*models: str) -> list[object]:
    found = ([_percent(numbers, each + name) for each in models] for name in names)
    return [next(filter(None, own), '') for own in found]

  columns: dict[str, list[Any]] = {
    'Number': names,
    'Trained': of(''),
    '95 % interval': [_interval(numbers, name) for name in names],
    'Its inputs': of(*run_numbers.INPUTS),
    'Started from': of(*run_numbers.INITIAL),
    'Untrained': of(verdict.UNTRAINED),
  }
  for head in ('95 % interval', 'Started from'):
    if not any(columns[head]):
      del columns[head]
  return [tuple(columns), *zip(*columns.values(), strict=True)] if names else []


def _interval(numbers: Mapping[str, Any], name: str) -> str:
  """Returns the interval of a score; '' if it has none."""
  ends = [numbers.get(f'{name}/{end}') for end in (intervals.LOW, intervals.HIGH)]
  if not all(isinstance(end, float) for end in ends):
    return ''
  return ' to '.join(f'{end:.1%}' for end in ends)


def _percent(numbers: Mapping[str, Any], name: str) -> object:
  """Returns a number in per cent, and how it was measured; '' if it is none."""
  value = numbers.get(name, '')
  if not isinstance(value, float):
    return value
  place = name.rpartition('/')[0]
  half = ' in bfloat16' if f'{place}/{_BITS}' in numbers else ''
  settings = [
    f'{each}={numbers[f"{place}/{each}"]:g}'
    for each in method_names.MEASURED_WITH
    if isinstance(numbers.get(f'{place}/{each}'), float)
  ]
  text = plain_text.number(name, value, math.nan)
  return f'{text}{half}{" with " if settings else ""}{", ".join(settings)}'


def _promised(privacy: object) -> list[tuple[str, object]]:
  """Returns what is promised by name, each in one line; nothing without a promise."""
  promised: list[tuple[str, object]] = []
  for name, value in privacy.items() if isinstance(privacy, Mapping) else ():
    if isinstance(value, Mapping):
      value = ', '.join(f'{k} {v}' for k, v in value.items())
    elif isinstance(value, list):
      value = '; '.join(map(str, value))
    promised.append((name, 'none' if value is None else value))
  return promised
