"""The rules of the house that a reader can break without any other test failing."""

import ast
import pathlib

import pytest

from tests import floors

_ROOT = pathlib.Path(__file__).resolve().parent.parent
_TOPS = ('tff_ssl', 'tasks', 'binaries', 'tests')
_SOURCES = sorted(
  path.relative_to(_ROOT) for top in _TOPS for path in (_ROOT / top).rglob('*.py')
)
_MAX_LINES = 400
_MAX_FUNCTION_LINES = 60
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
# Longer for a reason: path -> (lines, why). Shorten the list, not the reasons.
_LONGER_FILES: dict[str, tuple[int, str]] = {}


def _imports(source: pathlib.Path) -> set[str]:
  """Lists the dotted names that a file imports, modules and names alike."""
  names = set()
  for node in ast.walk(ast.parse((_ROOT / source).read_text(encoding='utf-8'))):
    if isinstance(node, ast.Import):
      names.update(alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
      assert node.level == 0, f'{source}: relative import'
      names.update(f'{node.module}.{alias.name}' for alias in node.names)
  return names


def _package_of(name: str) -> str:
  """Finds the package of this repository in which an imported name lies."""
  parts = name.split('.')
  while not (_ROOT.joinpath(*parts) / '__init__.py').is_file():
    parts.pop()
  return '.'.join(parts)


def _imports_tff(source: pathlib.Path) -> bool:
  return any(name.split('.')[0] == 'tensorflow_federated' for name in _imports(source))


@pytest.mark.parametrize('source', _SOURCES, ids=str)
def test_imports_point_down(source):
  package = '.'.join(source.parent.parts)
  floor = floors.floor_of(package)
  for name in _imports(source):
    if name.split('.')[0] not in _TOPS:
      continue
    other = _package_of(name)
    allowed = (
      other == package
      or floors.floor_of(other) < floor
      or package.split('.')[0] == other.split('.')[0] == 'tests'
    )
    assert allowed, f'{source} imports {name}, which is not on a floor below'


def test_only_the_federated_packages_of_the_library_import_tff():
  importers = {
    '.'.join(source.parent.parts)
    for source in _SOURCES
    if source.parts[0] == 'tff_ssl' and _imports_tff(source)
  }

  assert importers == floors.FEDERATED


def test_only_binaries_have_flags():
  offenders = [
    source.as_posix()
    for source in _SOURCES
    if source.parts[0] in ('tff_ssl', 'tasks')
    and any(name.startswith(('absl.flags', 'absl.app')) for name in _imports(source))
  ]

  assert offenders == []


def test_packages_import_nothing_when_they_are_imported():
  offenders = [
    source.as_posix()
    for source in _SOURCES
    if source.name == '__init__.py' and source.parts[0] == 'tff_ssl'
    if _imports(source)
  ]

  assert offenders == []


def test_files_are_short():
  limits = {path: lines for path, (lines, _) in _LONGER_FILES.items()}
  long = {}
  for source in _SOURCES:
    lines = len((_ROOT / source).read_text(encoding='utf-8').splitlines())
    if lines > limits.get(source.as_posix(), _MAX_LINES):
      long[source.as_posix()] = lines

  assert long == {}


def _own_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
  """Counts the lines of a function, without its docstring and inner functions.

  What builds a TFF computation is a scope for functions, and each of those is counted
  on its own.
  """
  body = function.body[1:] if ast.get_docstring(function) else function.body
  lines = set()
  inner = []
  for statement in body:
    lines.update(range(statement.lineno, (statement.end_lineno or 0) + 1))
    inner += [node for node in ast.walk(statement) if isinstance(node, _FUNCTIONS)]
  for node in inner:
    lines.difference_update(range(node.lineno, (node.end_lineno or 0) + 1))
  return len(lines)


def test_functions_are_short():
  long = {}
  for source in _SOURCES:
    tree = ast.parse((_ROOT / source).read_text(encoding='utf-8'))
    for node in ast.walk(tree):
      if isinstance(node, _FUNCTIONS):
        lines = _own_lines(node)
        if lines > _MAX_FUNCTION_LINES:
          long[f'{source}:{node.name}'] = lines

  assert long == {}


@pytest.mark.parametrize('floor', range(len(floors.FLOORS)))
def test_every_package_has_a_floor(floor):
  for package in floors.FLOORS[floor]:
    assert floors.floor_of(package) == floor
    if package != 'tff_ssl':
      assert floors.floor_of(f'{package}.deeper') == floor


def test_a_new_package_must_be_placed():
  with pytest.raises(ValueError, match=r'tff_ssl\.attic is on no floor'):
    floors.floor_of('tff_ssl.attic')


def test_nothing_points_outside_the_repository():
  # What lies beside a checkout is not there for the person who clones it.
  outside = '../' + 'shared'
  tracked = [
    path
    for pattern in ('*.md', '*.txt', '*.in', '*.toml', 'Makefile', '.ci/*', 'setup.py')
    for path in _ROOT.glob(pattern)
  ]
  for path in [*tracked, *(_ROOT / source for source in _SOURCES)]:
    assert outside not in path.read_text(encoding='utf-8'), path
