"""What became of every file of a data set, and what a person should know of it.

One `Intake` gives the lines on the screen and the `intake.json` of a run.
"""

from collections.abc import Iterable, Mapping
import dataclasses
from typing import Any

from tff_ssl.computing import inert

FILE = 'intake.json'
_SHOWN = 3
# Columns of a header that are shown; a table may have thousands.
COLUMNS_SHOWN = 20
# Findings of one kind that are shown; files break in more ways than fit on a screen.
_LINES_OF_A_KIND = 5


@dataclasses.dataclass(frozen=True)
class Finding:
  """Something that is true of some files, columns, ids or labels.

  Attributes:
    kind: What it is, in a word or two; several findings may be of one kind.
    names: What it is true of, as text that can be printed.
    sentence: What a person is told.
    costs: Whether data or truth is lost: a picture that is not used, a leak between
      splits, two names for one thing. Otherwise it is only worth knowing.
  """

  kind: str
  names: tuple[str, ...]
  sentence: str
  costs: bool = False


@dataclasses.dataclass(frozen=True)
class Intake:
  """What became of the files of a data set.

  Attributes:
    files: Number of files by what became of them; each file counts once. What is not a
      folder is a file here: links, pipes.
    findings: What must be said.
  """

  files: Mapping[str, int]
  findings: tuple[Finding, ...] = ()

  def lines(self) -> tuple[str, ...]:
    """The lines of the screen: the files, what costs something, and the rest."""
    counts = ', '.join(f'{count:,} {what}' for what, count in self.files.items())
    lines = [f'{many(sum(self.files.values()), "file")}: {counts}']
    shown: dict[str, int] = {}
    for finding in sorted(self.findings, key=lambda finding: not finding.costs):
      shown[finding.kind] = shown.get(finding.kind, 0) + 1
      if shown[finding.kind] <= _LINES_OF_A_KIND:
        lines.append(finding.sentence)
    hidden = {kind: n - _LINES_OF_A_KIND for kind, n in shown.items()}
    lines += [
      f'and {many(count, "more line")} of the kind {kind!r} ({FILE} of a run has all)'
      for kind, count in hidden.items()
      if count > 0
    ]
    return tuple(lines)

  def as_json(self) -> dict[str, Any]:
    """The same as JSON values, with all names."""
    return {
      'total': sum(self.files.values()),
      'files': dict(self.files),
      'findings': [
        {
          **dataclasses.asdict(finding),
          'count': len(finding.names),
          'names': list(finding.names),
        }
        for finding in self.findings
      ],
    }

  def check(self) -> None:
    """Refuses data that lose something.

    Raises:
      ValueError: A finding costs data or truth.
    """
    costly = [finding for finding in self.findings if finding.costs]
    if costly:
      kinds = dict.fromkeys(finding.kind for finding in costly)
      raise ValueError(
        f'strict is given, and data or truth is lost in {many(len(costly), "way")} '
        f'({", ".join(kinds)}); the first: '
        f'{costly[0].sentence.removeprefix("warning: ")}.'
      )


def some(names: Iterable[str], most: int = _SHOWN) -> str:
  """The first few of many names, as text that can be printed, and how many follow.

  Args:
    names: Names of files, as in `Source.names`, or of anything else.
    most: How many are shown.
  """
  listed = list(names)
  more = f' and {len(listed) - most:,} more' if len(listed) > most else ''
  return ', '.join(map(inert.line, listed[:most])) + more


def many(count: int, what: str) -> str:
  """A number of things: '1 file', '2 files'."""
  return f'{count:,} {what}{"s" * (count != 1)}'


def finding(
  kind: str, names: Iterable[str], before: str, after: str = '', costs: bool = False
) -> Finding:
  """Makes a finding whose sentence ends with the first names.

  Args:
    kind: As in `Finding`.
    names: As in `some`.
    before: The sentence before the names.
    after: What follows the names.
    costs: As in `Finding`.
  """
  listed = tuple(names)
  shown = tuple(map(inert.line, listed))
  return Finding(kind, shown, f'{before}: {some(listed)}{after}', costs)
