"""The BUILD files say what the imports say.

They are Starlark that is also Python, so they are read with `ast`; the imports are read
here anew, not by the generator that wrote the files.
"""

import ast
import dataclasses
import pathlib
from typing import Any

import pytest

from tests import build_files
from tests import floors

_ROOT = pathlib.Path(__file__).resolve().parent.parent
_TOPS = ('tff_ssl', 'tasks', 'binaries', 'tests')
_FOLDERS = sorted(
  path.parent.relative_to(_ROOT)
  for top in _TOPS
  for path in (_ROOT / top).rglob('*.py')
)
_FOLDERS = list(dict.fromkeys(_FOLDERS))


@dataclasses.dataclass(frozen=True)
class _Rule:
  """One call in a BUILD file."""

  kind: str
  arguments: dict[str, Any]


def _rules(folder: pathlib.Path) -> list[_Rule]:
  tree = ast.parse((_ROOT / folder / 'BUILD').read_text(encoding='utf-8'))
  rules = []
  for statement in tree.body:
    assert isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)
    call = statement.value
    arguments = {k.arg: ast.literal_eval(k.value) for k in call.keywords if k.arg}
    rules.append(_Rule(ast.unparse(call.func), arguments))
  return rules


def _targets(folder: pathlib.Path) -> dict[str, _Rule]:
  return {
    rule.arguments['name']: rule
    for rule in _rules(folder)
    if rule.kind.startswith('py_')
  }


def _imported(source: pathlib.Path) -> set[pathlib.Path]:
  """Finds the files of this repository that a file imports."""
  files = set()
  for node in ast.walk(ast.parse(source.read_text(encoding='utf-8'))):
    names = []
    if isinstance(node, ast.Import):
      names = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom):
      names = [f'{node.module}.{alias.name}' for alias in node.names]
    for name in names:
      parts = name.split('.')
      # The longest prefix that is a file: what remains is a name in that file.
      for end in range(len(parts), 0, -1):
        path = _ROOT.joinpath(*parts[:end])
        if path.with_suffix('.py').is_file():
          files.add(path.with_suffix('.py'))
          break
        if (path / '__init__.py').is_file():
          files.add(path / '__init__.py')
          break
  return files


def _file_of(label: str, folder: pathlib.Path) -> pathlib.Path:
  package, _, name = label.rpartition(':')
  base = _ROOT / package.removeprefix('//') if package else _ROOT / folder
  return base / f'{name}.py'


@pytest.mark.parametrize('folder', _FOLDERS, ids=str)
def test_each_folder_is_a_package_with_one_target_for_each_module(folder):
  assert (_ROOT / folder / '__init__.py').is_file()
  modules = {path.stem for path in (_ROOT / folder).glob('*.py')}

  targets = _targets(folder)

  assert set(targets) == modules
  for name, target in targets.items():
    assert target.arguments['srcs'][0] == f'{name}.py'


@pytest.mark.parametrize('folder', _FOLDERS, ids=str)
def test_deps_are_the_imports(folder):
  for name, target in _targets(folder).items():
    labels = target.arguments.get('deps', [])
    stated = {_file_of(label, folder) for label in labels}

    assert len(stated) == len(labels), name
    assert stated == _imported(_ROOT / folder / f'{name}.py'), f'{folder}/{name}.py'


@pytest.mark.parametrize('folder', _FOLDERS, ids=str)
def test_kind_of_target_follows_the_file(folder):
  for name, target in _targets(folder).items():
    source = (_ROOT / folder / f'{name}.py').read_text(encoding='utf-8')
    if name.endswith('_test'):
      expected = 'py_test'
      # Without it Bazel would run the file itself, which calls no test.
      assert target.arguments['main'] == '//tests:bazel_main.py'
    elif folder.parts[0] == 'binaries' and "if __name__ == '__main__'" in source:
      expected = 'py_binary'
    else:
      expected = 'py_library'
    assert target.kind == expected, name


def _groups() -> dict[str, set[str]]:
  """Reads the package groups of the top BUILD, with what they include."""
  rules = {
    rule.arguments['name']: rule.arguments
    for rule in _rules(pathlib.Path())
    if rule.kind == 'package_group'
  }

  def members(name: str) -> set[str]:
    found = set(rules[name]['packages'])
    for label in rules[name].get('includes', []):
      found |= members(label.removeprefix(':'))
    return found

  return {name: members(name) for name in rules}


def _sees(viewer: pathlib.Path, folder: pathlib.Path) -> bool:
  package = _rules(folder)[0]
  assert package.kind == 'package'
  (label,) = package.arguments['default_visibility']
  specs = _groups()[label.removeprefix('//:')]
  path = f'//{viewer.as_posix()}/'
  return viewer == folder or any(path.startswith(s.removesuffix('...')) for s in specs)


@pytest.mark.parametrize('folder', _FOLDERS, ids=str)
def test_visible_from_the_floors_above_and_from_nowhere_else(folder):
  floor = floors.floor_of('.'.join(folder.parts))
  for viewer in _FOLDERS:
    above = floors.floor_of('.'.join(viewer.parts)) > floor
    both_tests = folder.parts[0] == viewer.parts[0] == 'tests'
    expected = above or both_tests or viewer == folder

    assert _sees(viewer, folder) == expected, f'{folder} from {viewer}'


def test_files_are_what_the_generator_writes():
  for path, text in build_files.build_files(_ROOT).items():
    assert path.read_text(encoding='utf-8') == text, f'{path}: run `make build-files`'


def test_generator_names_an_import_that_does_not_exist(tmp_path):
  package = tmp_path / 'tff_ssl'
  package.mkdir()
  (package / '__init__.py').write_text('')
  source = package / 'a.py'
  source.write_text('from tff_ssl.nowhere import b\n')

  with pytest.raises(ValueError, match=r'imports tff_ssl\.nowhere\.b, which'):
    build_files.deps(tmp_path, source)


def test_generator_finds_imports_in_functions_and_of_names(tmp_path):
  package = tmp_path / 'tff_ssl' / 'losses'
  package.mkdir(parents=True)
  for path in ('tff_ssl/__init__.py', 'tff_ssl/losses/__init__.py'):
    (tmp_path / path).write_text('')
  (package / 'b.py').write_text('')
  source = package / 'a.py'
  source.write_text(
    'from tff_ssl import __version__\n'
    'from tff_ssl.losses.b import thing\n'
    'def f():\n  import tff_ssl.losses\n'
  )

  assert build_files.deps(tmp_path, source) == [
    ':__init__',
    ':b',
    '//tff_ssl:__init__',
  ]
