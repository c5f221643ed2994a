"""The claims, read from the TOML files of this folder (README.md describes them).

Only the standard library is imported, because the site's environment is not ours.
"""

import collections
from collections.abc import Iterable, Iterator, Mapping
import dataclasses
import itertools
import pathlib
import string
import tomllib
from typing import Any, NamedTuple

from docs.campaigns import figures as figures_lib

FOLDER = pathlib.Path(__file__).parent
# A flag that replaces itself if it is given again; others change some of their fields.
_WHOLE = '--partition'
# The least seeds that decide a claim that does not say how many, by budget.
SEEDS = {'digits': 5, 'cifar': 3}
# The number of seeds of a bound with which nothing is compared.
SEEDS_OF_BOUNDS = 3
# The most that a claim may ask for.
MOST_SEEDS = 10


class Figure(NamedTuple):
  """A number of a run, one for each seed.

  Attributes:
    run: The run.
    column: Name in `evaluation.json`, or in the last row of `metrics.csv`.
  """

  run: figures_lib.Run
  column: str


@dataclasses.dataclass(frozen=True)
class Comparison:
  """What must hold for a weighted sum of figures, such as a difference.

  Attributes:
    terms: Weight of each figure, by title.
    paper: The sum of the paper's own figures; None if it has none.
    level: Whether the sum must be next to 0 rather than above it.
  """

  terms: Mapping[str, float]
  paper: float | None
  level: bool


@dataclasses.dataclass(frozen=True)
class Claim:
  """A claim of a paper, in one budget.

  Attributes:
    id: Such as 'dcco-cohort'.
    paper: Short name of the paper.
    title: Its title.
    source: Table, figure or section of the paper.
    sentence: The claim.
    budget: One of `SEEDS`.
    figures: Figures by title.
    comparisons: What must hold; all of them.
    bounds: Titles of an upper and a lower bound, which must be far enough apart.
    protocol: In what its runs differ from the paper's.
    seeds: The seeds that decide it, at least; all that are stored count.
    decisive: A difference of protocol on which the claim is known to depend, first
      named in a few words; '' if none is known. It changes no verdict.
    cause: Why the verdict is what it is, if that is known.
  """

  id: str
  paper: str
  title: str
  source: str
  sentence: str
  budget: str
  figures: Mapping[str, Figure]
  comparisons: tuple[Comparison, ...]
  bounds: tuple[str, str]
  protocol: str
  seeds: range
  decisive: str = ''
  cause: str = ''

  def seeds_of(self, title: str) -> range:
    """Returns the seeds that a figure needs: a bound alone three, if only shown one.

    How far apart the bounds are is seen in fewer seeds than a difference of a point.
    """
    if title in {name for each in self.comparisons for name in each.terms}:
      return self.seeds
    return self.seeds[: SEEDS_OF_BOUNDS if title in self.bounds else 1]

  def values(self, stored: figures_lib.Stored) -> dict[str, dict[int, float]]:
    """Returns the stored values of its figures, by title, by seed."""
    return {
      title: {
        seed: stored[key]
        for seed in range(MOST_SEEDS)
        if (key := (figure.run.key, seed, figure.column)) in stored
      }
      for title, figure in self.figures.items()
    }


def read(budget: str, folder: pathlib.Path = FOLDER) -> list[Claim]:
  """Reads the claims of a budget.

  Args:
    budget: One of `SEEDS`.
    folder: Folder of the TOML files, one for each paper.

  Raises:
    ValueError: If a file is not as README.md says, or if two claims have one id, or two
      runs one name or the same flags.
  """
  claims: list[Claim] = []
  for path in sorted(folder.glob('*.toml')):
    try:
      claims += _claims(tomllib.loads(path.read_text(encoding='utf-8')), budget)
    except KeyError as error:
      raise ValueError(f'{path.name} has no {error}; it must have one.') from error
    except (TypeError, ValueError) as error:
      raise ValueError(f'{path.name}: {error}') from error
  names = [f'Claim {claim.id}' for claim in claims]
  for run in columns(claims):
    names += [f'Run {run.name}', f'Command {run.program} {" ".join(sorted(run.flags))}']
  for name, count in collections.Counter(names).items():
    if count > 1:
      raise ValueError(f'{name} is there {count} times; it must be there once.')
  return claims


def withdrawn(folder: pathlib.Path = FOLDER) -> Iterator[tuple[str, str, str]]:
  """Yields paper, id and reason of each claim that was tested and is not any more.

  Args:
    folder: Folder of the TOML files.
  """
  for path in sorted(folder.glob('*.toml')):
    content = tomllib.loads(path.read_text(encoding='utf-8'))
    for name, reason in content.get('withdrawn', {}).items():
      yield content['paper'], name, ' '.join(reason.split())


def columns(claims: Iterable[Claim]) -> dict[figures_lib.Run, list[str]]:
  """Lists the runs of claims, each once, and the columns that they need from each.

  Args:
    claims: The claims.
  """
  needed: dict[figures_lib.Run, list[str]] = {}
  for figure in (figure for claim in claims for figure in claim.figures.values()):
    own = needed.setdefault(figure.run, [])
    own += [figure.column] if figure.column not in own else []
  return needed


def _claims(content: dict[str, Any], budget: str) -> Iterator[Claim]:
  """Yields the claims of a file that a budget has."""
  texts: dict[str, str] = {'column': '$column'}
  for name, text in content['texts'].items():
    if (filled := _filled(text, texts, budget)) is not None:
      texts[name] = filled
  content = _filled(content, texts, budget)
  for name, own in content['claims'].items():
    yield _claim(name, budget, own, content)


def _filled(value: Any, texts: Mapping[str, str], budget: str) -> Any:
  """Fills in what a file says; None if the budget has no such part.

  Of a table whose keys are budgets it takes the budget's part; in keys and values it
  replaces each $NAME by its text, and joins lines.
  """
  if isinstance(value, dict) and value and value.keys() <= SEEDS.keys():
    return _filled(value.get(budget), texts, budget)
  if isinstance(value, dict):
    filled = {key: _filled(item, texts, budget) for key, item in value.items()}
    own = {key: item for key, item in filled.items() if item is not None}
    return {_filled(key, texts, budget): item for key, item in own.items()}
  if isinstance(value, list):
    return [_filled(item, texts, budget) for item in value]
  if isinstance(value, str):
    return ' '.join(string.Template(value).substitute(texts).split())
  return value


def _claim(
  name: str, budget: str, own: dict[str, Any], content: Mapping[str, Any]
) -> Claim:
  """Makes a claim from its table and those of its file."""
  comparisons = [c for entry in own.pop('compare') for c in _comparisons(entry)]
  upper, lower = own.pop('bounds', content['bounds'])
  column = own.pop('column', content['column'])
  named = {title for comparison in comparisons for title in comparison.terms}
  named |= {upper, lower, *own.pop('show', content.get('show', ()))}
  if unknown := sorted(named - content['figures'].keys()):
    raise ValueError(f'claim {name} has {unknown[0]!r}; it must be in [figures].')
  if not comparisons:
    raise ValueError(f'claim {name} has no comparison; it must have one.')
  seeds = own.pop('seeds', content.get('seeds', SEEDS[budget]))
  if seeds not in range(2, MOST_SEEDS + 1):
    raise ValueError(
      f'seeds of claim {name} is {seeds}; it must be a whole number from 2 to '
      f'{MOST_SEEDS}.'
    )
  figures = {}
  for title, figure in content['figures'].items():
    if title in named:
      run, of_run = (figure, '$column') if isinstance(figure, str) else figure
      made = _run(run, content['runs'][run])
      figures[title] = Figure(made, of_run.replace('$column', column))
  return Claim(
    id=name,
    paper=content['paper'],
    title=content['title'],
    budget=budget,
    figures=figures,
    comparisons=tuple(comparisons),
    bounds=(upper, lower),
    protocol=own.pop('protocol', content['protocol']),
    seeds=range(seeds),
    **own,
  )


def _run(name: str, command: str) -> figures_lib.Run:
  """Makes a run; of two values of a flag, or of a field of it, the last counts."""
  program, *flags = command.split()
  last: dict[str, str] = {}
  for flag in flags:
    key, _, value = flag.partition('=')
    last[key] = value if key == _WHOLE else _joined(last.get(key, ''), value)
  words = tuple(f'{key}={value}' for key, value in last.items())
  return figures_lib.Run(name, program, words)


def _joined(first: str, second: str) -> str:
  """Returns the value of a flag that is given twice, as in adam:epochs=2."""
  kind, fields = '', dict[str, str]()
  for value in (first, second):
    begin, _, rest = value.partition(':')
    new_kind, new_fields = ('', value) if '=' in begin else (begin, rest)
    kind = new_kind or kind
    fields |= dict(item.split('=', 1) for item in new_fields.split(',') if item)
  texts = (f'{name}={value}' for name, value in fields.items())
  return ':'.join(part for part in (kind, ','.join(texts)) if part)


def _comparisons(entry: Mapping[str, Any]) -> Iterator[Comparison]:
  """Yields the comparisons that an entry of `compare` states."""
  pairs: list[tuple[Any, Any]]
  match [sorted(entry.keys() - {'paper'}), entry]:
    case [['order' | 'level' as kind], _] if kind == 'order' or len(entry[kind]) == 2:
      pairs = [*itertools.pairwise(entry[kind])]
    case [['first', 'of'], {'first': first, 'of': others}]:
      pairs = [(first, other) for other in others]
    case _:
      raise ValueError(
        f'A comparison has {", ".join(entry)}; it must have order, first and of, or '
        'level.'
      )
  papers = entry.get('paper', [None] * len(pairs))
  papers = papers if isinstance(papers, list) else [papers]
  if len(papers) != len(pairs):
    raise ValueError(
      f'paper has {len(papers)} differences; it must have one for each of the '
      f'{len(pairs)} pairs.'
    )
  for (larger, smaller), points in zip(pairs, papers, strict=True):
    terms: dict[str, float] = {}
    for item, sign in ((larger, 1.0), (smaller, -1.0)):
      # An item is a figure, or a difference of two.
      titles = [item] if isinstance(item, str) else item
      for title, weight in zip(titles, (sign, -sign), strict=False):
        terms[title] = terms.get(title, 0.0) + weight
    yield Comparison(terms, None if points is None else points / 100, 'level' in entry)
