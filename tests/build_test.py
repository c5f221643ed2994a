"""The BUILD files hold every file once and state the floors of tests/floors.py.

They are Starlark that is also Python, so they are executed here, with functions that
record what Bazel would be told and a `glob` that stops, as Bazel's, at other packages.
"""

from collections.abc import Iterable
import dataclasses
import pathlib
from typing import Any

import pytest

from tests import floors

_ROOT = pathlib.Path(__file__).resolve().parent.parent
_TOPS = ('tff_ssl', 'tasks', 'binaries', 'carriers', 'docs', 'tests')
# Its files are run by path, and not imported.
_NO_PACKAGE = _ROOT / 'docs' / 'notebooks'
_RULES = ('package', 'py_library', 'py_binary', 'py_test')


@dataclasses.dataclass(frozen=True)
class _Rule:
  """One call in a BUILD file."""

  kind: str
  arguments: dict[str, Any]


def _glob(
  folder: pathlib.Path, include: Iterable[str], exclude: Iterable[str] = ()
) -> list[str]:
  """Lists files of a package, by path from it, as Bazel's `glob` does."""
  inner = {path.parent for path in folder.rglob('BUILD')} - {folder}
  return sorted(
    path.relative_to(folder).as_posix()
    for path in {path for pattern in include for path in folder.glob(pattern)}
    if not inner.intersection(path.parents)
    and path.relative_to(folder).as_posix() not in exclude
  )


def _read(build: pathlib.Path) -> list[_Rule]:
  """Reads the rules of a BUILD file."""
  rules: list[_Rule] = []

  def recorder(kind: str) -> Any:
    return lambda **arguments: rules.append(_Rule(kind, arguments))

  names: dict[str, Any] = {kind: recorder(kind) for kind in _RULES}
  names['glob'] = lambda include, exclude=(): _glob(build.parent, include, exclude)
  exec(build.read_text(encoding='utf-8'), {'__builtins__': {'len': len}, **names})
  return rules


def _name(package: pathlib.Path) -> str:
  return '.'.join(package.relative_to(_ROOT).parts)


def _packages() -> dict[str, list[_Rule]]:
  """Reads the BUILD files below the top one, by dotted name of their package."""
  found = [path for top in _TOPS for path in (_ROOT / top).rglob('BUILD')]
  return {_name(path.parent): _read(path) for path in sorted(found)}


def _labels(packages: Iterable[str], suffix: str = '') -> set[str]:
  return {f'//{package.replace(".", "/")}{suffix}' for package in packages}


def _floor_at(package: str, step: int) -> tuple[str, ...]:
  """Lists the packages of the floor below (-1) or above (+1) a package."""
  index = floors.floor_of(package) + step
  return floors.FLOORS[index] if 0 <= index < len(floors.FLOORS) else ()


def _of_kind(rules: list[_Rule], kind: str) -> list[dict[str, Any]]:
  return [rule.arguments for rule in rules if rule.kind == kind]


def test_the_packages_are_those_of_the_floors():
  assert sorted(_packages()) == sorted(
    name for names in floors.FLOORS for name in names
  )


def test_every_file_is_in_one_library():
  held = []
  for package, rules in _packages().items():
    (library,) = _of_kind(rules, 'py_library')
    folder = _ROOT.joinpath(*package.split('.'))
    held += [(folder / source).relative_to(_ROOT) for source in library['srcs']]

    assert library['name'] == folder.name, package

  files = [path for top in _TOPS for path in (_ROOT / top).rglob('*.py')]
  assert sorted(held) == sorted(path.relative_to(_ROOT) for path in files)


def test_every_folder_of_modules_is_a_python_package():
  folders = {path.parent for top in _TOPS for path in (_ROOT / top).rglob('*.py')}

  without = {folder for folder in folders if not (folder / '__init__.py').is_file()}
  assert without == {_NO_PACKAGE}


def test_deps_are_the_floor_below():
  wrong = {}
  for package, rules in _packages().items():
    (library,) = _of_kind(rules, 'py_library')
    stated = library.get('deps', [])
    if sorted(stated) != sorted(_labels(_floor_at(package, -1))):
      wrong[package] = stated

  assert wrong == {}


def test_visible_from_the_floor_above_and_from_nowhere_else():
  wrong = {}
  for package, rules in _packages().items():
    # Where nothing is stated, a package is visible to itself alone: the top floor.
    stated = [
      label
      for arguments in _of_kind(rules, 'package')
      for label in arguments['default_visibility']
    ]
    own = [rule for rule in rules if 'visibility' in rule.arguments]
    if set(stated) != _labels(_floor_at(package, +1), ':__pkg__') or own:
      wrong[package] = stated

  assert wrong == {}


def test_a_target_runs_each_program():
  rules = _packages()['binaries']
  programs = {
    path.stem
    for path in (_ROOT / 'binaries').glob('*.py')
    if "\nif __name__ == '__main__'" in path.read_text(encoding='utf-8')
  }

  targets = {target['name']: target for target in _of_kind(rules, 'py_binary')}

  assert programs
  assert programs <= set(targets)
  for name, target in targets.items():
    assert (target['srcs'], target['deps']) == ([f'{name}.py'], [':binaries'])


def test_a_target_runs_each_test_with_pytest():
  targets = _of_kind(_packages()['tests'], 'py_test')
  run = set()
  for target in targets:
    # Without this main Bazel would run the file itself, which calls no test.
    assert target['main'] == 'bazel_main.py'
    assert target['srcs'] == ['bazel_main.py']
    assert target['deps'] == [':tests']
    (path,) = target['args']
    assert (_ROOT / path).exists()
    run.update(
      (_ROOT / path).rglob('*_test.py') if path[-3:] != '.py' else [_ROOT / path]
    )

  assert run == set((_ROOT / 'tests').rglob('*_test.py'))
  assert len({target['name'] for target in targets}) == len(targets)


def test_the_top_build_runs_setup():
  (rule,) = _read(_ROOT / 'BUILD')

  assert rule.kind == 'py_binary'
  assert rule.arguments['name'] == 'setup'
  for path in rule.arguments['srcs'] + rule.arguments['data']:
    assert (_ROOT / path).is_file()


def test_a_new_file_is_held_without_a_change_and_a_new_package_is_left_out(tmp_path):
  (tmp_path / 'BUILD').write_text('py_library(name = "a", srcs = glob(["**/*.py"]))\n')
  for path in ('old.py', 'room/new.py', 'other/apart.py'):
    (tmp_path / path).parent.mkdir(exist_ok=True)
    (tmp_path / path).write_text('')
  (tmp_path / 'other' / 'BUILD').write_text('')

  (rule,) = _read(tmp_path / 'BUILD')

  assert rule.arguments['srcs'] == ['old.py', 'room/new.py']


def test_a_name_that_bazel_does_not_know_is_refused(tmp_path):
  (tmp_path / 'BUILD').write_text('py_libary(name = "a")\n')

  with pytest.raises(NameError, match='py_libary'):
    _read(tmp_path / 'BUILD')
