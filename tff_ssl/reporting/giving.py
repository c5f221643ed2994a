"""A folder with what may be given away of a run: the encoder, its card, some numbers.

`runs.privacy.disclosure` has the rules, which are those of a private run. Of any other
run the same is given, and the card says that nothing is guaranteed.
"""

from collections.abc import Collection, Iterable, Sequence
import csv
import pathlib
import shutil
from typing import Any, NamedTuple

from tff_ssl.computing import inert
from tff_ssl.reporting import model_card
from tff_ssl.runs import round_table
from tff_ssl.runs.privacy import disclosure
from tff_ssl.storage import files


class SortedNames(NamedTuple):
  """The files of a run, the columns of metrics.csv or the entries of encoder.json.

  Attributes:
    public: The rule of each that may be given away, by name, in order.
    private: The rule of each other one, likewise.
  """

  public: dict[str, disclosure.Rule]
  private: dict[str, disclosure.Rule]

  @property
  def unnamed(self) -> list[str]:
    """Names that no rule names; they are kept."""
    return [name for name, rule in self.private.items() if not rule.is_named]


def files_of(folder: pathlib.Path) -> SortedNames:
  """Sorts the files of a run folder; those in folders by their relative paths."""
  names = (
    path.relative_to(folder).as_posix()
    for path in sorted(folder.rglob('*'))
    if not path.is_dir()
  )
  return _sorted((name, disclosure.of_file(name)) for name in names)


def columns_of(folder: pathlib.Path) -> SortedNames:
  """Sorts the columns of metrics.csv of a run; none if it has no such file."""
  names: list[str] = []
  if (folder / disclosure.NUMBERS).is_file():
    with (folder / disclosure.NUMBERS).open(newline='') as file:
      names = next(csv.reader(file), [])
  return _sorted((name, disclosure.of_metric(name)) for name in names)


def entries_of(folder: pathlib.Path) -> SortedNames:
  """Sorts the entries of encoder.json of a run."""
  names = files.read_json(folder / disclosure.CARD)
  return _sorted((name, disclosure.of_entry(name)) for name in names)


def is_private(folder: pathlib.Path) -> bool:
  """Returns whether the card of a run's encoder promises differential privacy."""
  return model_card.is_private(files.read_json(folder / disclosure.CARD))


def give(
  folder: pathlib.Path, out: pathlib.Path, public: Collection[str] = ()
) -> tuple[SortedNames, int]:
  """Writes what may be given away of a run into a folder.

  Args:
    folder: The run folder, with an encoder and its card.
    out: A folder that does not exist or is empty.
    public: Names of the settings that the text for people may show.

  Returns:
    The files that were written, and those of the run that were kept; and how many
    rounds of metrics.csv were left out: a run that was continued has an encoder of
    earlier rounds until it ends, and the card does not count the later ones.

  Raises:
    ValueError: If `out` has files, or one of the run is damaged.
  """
  if out.exists() and any(out.iterdir()):
    raise ValueError(
      f'out is {str(out)!r}, which has files; it must be empty or new, because all of '
      'it will be given away.'
    )
  sorted_files = files_of(folder)
  known = files.read_json(folder / disclosure.CARD)
  has_numbers = disclosure.NUMBERS in sorted_files.public
  rows, left_out = _rows(folder, known.get('rounds')) if has_numbers else ([], 0)
  out.mkdir(parents=True, exist_ok=True)
  with files.atomic(out / disclosure.ENCODER) as aside:
    shutil.copyfile(folder / disclosure.ENCODER, aside)
  entries = entries_of(folder).public
  files.write_json(
    out / disclosure.CARD, {name: known[name] for name in known if name in entries}
  )
  written = [disclosure.ENCODER, disclosure.CARD]
  if has_numbers:
    _write_numbers(out / disclosure.NUMBERS, list(columns_of(folder).public), rows)
    written.append(disclosure.NUMBERS)
  hashed = {name: out / name for name in written}
  text = model_card.build(folder, hashed, is_public=True, public=public)
  files.write(out / disclosure.TEXT, text)
  return sorted_files, left_out


def _rows(folder: pathlib.Path, rounds: Any) -> tuple[list[dict[str, str]], int]:
  """Returns a run's rows of metrics.csv up to a round, and how many follow."""
  if not isinstance(rounds, int):
    raise ValueError(
      f'{folder / disclosure.CARD} has the rounds {rounds!r}; they must be a whole '
      f'number, up to which {disclosure.NUMBERS} is given away.'
    )
  _, rows = round_table.read(folder / disclosure.NUMBERS)
  kept = [row for row in rows if int(row[round_table.ROUND]) <= rounds]
  return kept, len(rows) - len(kept)


def _write_numbers(
  path: pathlib.Path, columns: Sequence[str], rows: Iterable[dict[str, str]]
) -> None:
  """Writes some columns of rows of metrics.csv."""
  with files.atomic(path) as new, new.open('w', newline='') as aside:
    writer = csv.writer(aside, lineterminator='\n')
    writer.writerow(columns)
    for row in rows:
      writer.writerow([inert.cell(row.get(name, '')) for name in columns])


def _sorted(rules: Iterable[tuple[str, disclosure.Rule]]) -> SortedNames:
  public: dict[str, disclosure.Rule] = {}
  private: dict[str, disclosure.Rule] = {}
  for name, rule in rules:
    (public if rule.is_public else private)[name] = rule
  return SortedNames(public, private)
