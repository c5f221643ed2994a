"""A model card: what an encoder is, in Markdown, for whoever receives it.

After Mitchell et al., Model Cards for Model Reporting (FAT* 2019), as far as a run
knows it: data, method, command, results, privacy, limits, and digests of the files. The
card of a private run leaves out what only its folder may have
(`runs.privacy.disclosure`).
"""

from collections.abc import Collection, Iterable, Mapping
import hashlib
import os
import pathlib
import shlex
from typing import Any

from tff_ssl.computing import inert
from tff_ssl.computing import kinds
from tff_ssl.reporting import run_numbers
from tff_ssl.reporting import run_reader
from tff_ssl.runs import run_config
from tff_ssl.runs.privacy import disclosure
from tff_ssl.storage import files

NAME = disclosure.TEXT
ENCODER, _CARD, _EVALUATION = disclosure.ENCODER, disclosure.CARD, 'evaluation.json'
# Shown of `evaluation.json`; recall by class and fairness are in the file itself.
_SCORES = ('accuracy', 'balanced_accuracy')
_UNTRAINED = 'random_encoder/'
_BASELINES = 'python -m binaries.evaluate --evaluation=baselines=true --run='
_SIMULATED = (
  'The clients were simulated on one site: how the method trains on real devices was '
  'not tested.'
)
_ONE_RUN = 'The results are of one run with one seed; other seeds give other numbers.'
_OTHER_DATA = (
  'The encoder was only tested on examples like those it was trained on, and for no '
  'particular use; test it on your own data before you rely on it.'
)
_SIZE = (
  'Images are resized to squares of the input size: details smaller than a few of '
  'their pixels are lost.'
)
_NO_PRIVACY = (
  'No privacy is guaranteed: no noise was added to what clients sent, and the '
  'parameters may reveal something about single examples.'
)
_LEFT_OUT = 'Not on this card: it is kept in {} of the run.'
# What a card says of the settings in words of its own.
_SAID = (run_reader.TASK, run_reader.METHOD, run_reader.ROUNDS)


def write(
  folder: str | os.PathLike[str], public: Collection[str] = ()
) -> pathlib.Path | None:
  """Writes the card of a run's encoder next to it.

  Args:
    folder: The run folder.
    public: See `build`.

  Returns:
    The file; None if the run has no encoder yet.

  Raises:
    ValueError: A file of the run is damaged.
  """
  folder = pathlib.Path(folder)
  if not (folder / ENCODER).is_file():
    return None
  text = build(folder, {ENCODER: folder / ENCODER}, public=public)
  files.write(folder / NAME, text)
  return folder / NAME


def build(
  folder: str | os.PathLike[str],
  hashed: Mapping[str, pathlib.Path],
  notes: Iterable[str] = (),
  unprotected: str | None = None,
  is_public: bool = False,
  public: Collection[str] = (),
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

  Raises:
    ValueError: The run has no encoder, or a file of the run is damaged.
  """
  folder = pathlib.Path(folder)
  known = _read(folder / _CARD)
  config = run_config.read(folder)
  results = folder / _EVALUATION
  numbers = _read(results) if results.is_file() else {}
  is_public = is_public or is_private(known)
  named = {
    name: inert.markdown(known.get(name))
    for name in ('encoder', 'algorithm', 'input', 'output', 'parameters')
  }
  command = inert.line(run_config.command(config)) or 'not recorded'
  parts = [
    f'# {named["encoder"]}, trained by {named["algorithm"]}',
    f'Takes {named["input"]}; returns {named["output"]}.',
    f'{named["parameters"]} parameters.',
    *_notes(notes),
    '## Data',
    _list(_data(known, config, is_public)),
    '## Method',
    _list(_method(known, config, public if is_public else None)),
    '## Command',
    _LEFT_OUT.format(run_config.NAME) if is_public else _block(command),
    '## Results',
    _LEFT_OUT.format(_EVALUATION) if is_public else _results(folder, numbers),
    '## Privacy',
    _privacy(known.get('privacy'))
    if unprotected is None
    else inert.markdown(unprotected),
    '## Limits',
    _list(_limits(known)),
    '## Hashes',
    _hashes(hashed),
  ]
  return '\n\n'.join(parts) + '\n'


def is_private(card: Mapping[str, Any]) -> bool:
  """Returns whether an encoder's card, `encoder.json`, promises differential privacy.

  Args:
    card: Its entries.
  """
  privacy = card.get('privacy')
  return isinstance(privacy, Mapping) and privacy.get('epsilon') is not None


def sha256(path: pathlib.Path) -> str:
  """Returns the digest of a file, in hexadecimal."""
  with path.open('rb') as file:
    return hashlib.file_digest(file, 'sha256').hexdigest()


def _read(path: pathlib.Path) -> dict[str, Any]:
  if not path.is_file():
    raise ValueError(f'{path} is missing; the model card is written from it')
  return files.read_json(path)


def _data(
  known: Mapping[str, Any], config: Mapping[str, Any], is_public: bool
) -> list[str]:
  lines = [f'Task: {inert.markdown(known.get("data", known.get("task")))}']
  if not is_public:
    lines.append(f'Fingerprint of the examples: {inert.markdown(config.get("task"))}')
  return lines


def _method(
  known: Mapping[str, Any], config: Mapping[str, Any], shown: Collection[str] | None
) -> list[str]:
  """Returns the lines about the method: all settings, or those that may be shown."""
  algorithm, rounds = (inert.markdown(known.get(n)) for n in ('algorithm', 'rounds'))
  lines = [f'{algorithm}, {rounds} rounds']
  neutral = config.get('neutral')
  hidden = [*map(str, neutral)] if isinstance(neutral, list) else []
  for name, value in run_config.settings(config['config']).items():
    said = value is None or name in _SAID or run_config.is_among(name, hidden)
    # A seed reveals who was in which cohort, whoever names it.
    is_shown = shown is None or (name in shown and name != run_reader.SEED)
    if is_shown and not said:
      text = inert.markdown(kinds.value_text(value))
      lines.append(f'{inert.markdown(name)}: {text}')
  versions = config.get('versions')
  if isinstance(versions, Mapping):
    lines.append(
      'Versions: '
      + ', '.join(
        f'{inert.markdown(k)} {inert.markdown(v)}' for k, v in versions.items()
      )
    )
  return lines


def _results(folder: pathlib.Path, numbers: Mapping[str, Any]) -> str:
  """Returns a table of accuracies on the test examples, trained and untrained."""
  rows, untrained = [], False
  for name, value in numbers.items():
    # Names with more parts belong to baselines, clients or other tasks.
    is_own = name.count('/') <= 2 and not name.startswith(run_numbers.VALIDATION)
    if is_own and name.rpartition('/')[2] in _SCORES:
      before = numbers.get(_UNTRAINED + name)
      untrained = untrained or before is not None
      shown = f'{_percent(value)} | {"" if before is None else _percent(before)}'
      rows.append(f'| {inert.markdown(name)} | {shown} |')
  if not rows:
    return 'It has not been evaluated.'
  after = f'After round {inert.markdown(numbers.get("round"))}, on the test examples.'
  table = ['| Number | Trained | Untrained |', '| --- | --- | --- |', *rows]
  text = '\n'.join([after, '', *table])
  if not untrained:
    command = inert.line(f'{_BASELINES}{shlex.quote(str(folder))}')
    text += f'\n\nThe untrained encoder is evaluated by\n\n{_block(command)}'
  return text


def _percent(value: object) -> str:
  return f'{value:.1%}' if isinstance(value, float) else inert.markdown(value)


def _privacy(promised: object) -> str:
  return _list(_flat(promised)) if isinstance(promised, Mapping) else _NO_PRIVACY


def _limits(known: Mapping[str, Any]) -> list[str]:
  limits = [_ONE_RUN, _OTHER_DATA, _SIMULATED]
  return [*limits, _SIZE] if 'pixels' in str(known.get('input')) else limits


def _hashes(hashed: Mapping[str, pathlib.Path]) -> str:
  digests = (f'{sha256(path)}  {inert.line(name)}' for name, path in hashed.items())
  return _block('\n'.join(digests))


def _flat(values: Mapping[str, Any]) -> list[str]:
  lines = []
  for name, value in values.items():
    if isinstance(value, Mapping):
      value = ', '.join(f'{k} {v}' for k, v in value.items())
    elif isinstance(value, list | tuple):
      value = '; '.join(map(str, value))
    lines.append(
      f'{inert.markdown(name)}: {inert.markdown("none" if value is None else value)}'
    )
  return lines


def _notes(notes: Iterable[str]) -> list[str]:
  listed = list(notes)
  return ['## Files', _list(listed)] if listed else []


def _list(lines: Iterable[str]) -> str:
  return '\n'.join(f'- {line}' for line in lines)


def _block(text: str) -> str:
  # Indented: the text could close a fence.
  return '\n'.join(f'    {line}' for line in text.splitlines())
