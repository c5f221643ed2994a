"""Writes the BUILD files from the imports: `make build-files`.

One BUILD a package, one target a module, named as the module; `deps` are the modules
of this repository that it imports. Visibility goes by floor: the package group
`from_<package>_up` in the top BUILD holds a floor, all floors above it, and the tests.
"""

import argparse
import ast
import pathlib
import sys

from tests import floors

ROOT = pathlib.Path(__file__).resolve().parent.parent
_TOPS = ('tff_ssl', 'tasks', 'binaries', 'tests')
_INDENT = ' ' * 4


def packages(root: pathlib.Path) -> list[str]:
  """Lists the dotted names of the packages under `root`, sorted."""
  folders = {path.parent for top in _TOPS for path in (root / top).rglob('*.py')}
  return sorted('.'.join(folder.relative_to(root).parts) for folder in folders)


def _modules(root: pathlib.Path, package: str) -> list[pathlib.Path]:
  return sorted(root.joinpath(*package.split('.')).glob('*.py'))


def _label(root: pathlib.Path, name: str) -> str | None:
  """Makes the label of the module or package `name`; None where it is neither."""
  path = root.joinpath(*name.split('.'))
  if path.with_suffix('.py').is_file():
    return f'//{"/".join(path.relative_to(root).parts[:-1])}:{path.name}'
  if (path / '__init__.py').is_file():
    return f'//{"/".join(path.relative_to(root).parts)}:__init__'
  return None


def deps(root: pathlib.Path, source: pathlib.Path) -> list[str]:
  """Lists the labels of what a module imports from this repository.

  Args:
    root: The repository.
    source: The module's file, under `root`.

  Returns:
    Labels, sorted: first the modules of the same package, as `:name`.

  Raises:
    ValueError: If an imported module of this repository does not exist.
  """
  names: set[tuple[str, ...]] = set()
  for node in ast.walk(ast.parse(source.read_text(encoding='utf-8'))):
    if isinstance(node, ast.Import):
      names.update((alias.name,) for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module:
      # `from package import name`: the name is a module, or else in the package.
      names.update((f'{node.module}.{a.name}', node.module) for a in node.names)
  found = set()
  for candidates in names:
    if candidates[0].split('.')[0] not in _TOPS:
      continue
    labels = [label for name in candidates if (label := _label(root, name))]
    if not labels:
      raise ValueError(f'{source} imports {candidates[0]}, which does not exist.')
    found.add(labels[0])
  package = f'//{"/".join(source.relative_to(root).parts[:-1])}:'
  own = sorted(label for label in found if label.startswith(package))
  others = sorted(found.difference(own))
  return [f':{label.removeprefix(package)}' for label in own] + others


def _list(name: str, values: list[str]) -> str:
  if len(values) < 2:
    inside = ''.join(f'"{value}"' for value in values)
    return f'{_INDENT}{name} = [{inside}],\n'
  lines = ''.join(f'{_INDENT * 2}"{value}",\n' for value in values)
  return f'{_INDENT}{name} = [\n{lines}{_INDENT}],\n'


def _target(root: pathlib.Path, source: pathlib.Path) -> str:
  top = source.relative_to(root).parts[0]
  name, sources, extra = source.stem, [source.name], ''
  if name.endswith('_test'):
    rule = 'py_test'
    # The tests are pytest's: run as plain files they would pass without a check.
    sources.append('//tests:bazel_main.py')
    extra = f'{_INDENT}args = ["$(location {source.name})"],\n'
    extra += f'{_INDENT}main = "//tests:bazel_main.py",\n'
  elif top == 'binaries' and _is_program(source):
    rule = 'py_binary'
  else:
    rule = 'py_library'
  parts = [f'{rule}(\n{_INDENT}name = "{name}",\n', _list('srcs', sources), extra]
  if labels := deps(root, source):
    parts.append(_list('deps', labels))
  return ''.join((*parts, ')\n'))


def _is_program(source: pathlib.Path) -> bool:
  """Tells whether a file has an `if __name__ == '__main__'`."""
  tree = ast.parse(source.read_text(encoding='utf-8'))
  return any(
    isinstance(node, ast.If) and '__main__' in ast.unparse(node.test)
    for node in tree.body
  )


def group_of(floor: int) -> str:
  """Names the package group that holds a floor and what is above it."""
  names = floors.FLOORS[floor]
  name = names[0] if len(names) == 1 else 'tensors'
  return f'from_{name.rpartition(".")[2]}_up'


def package_build(root: pathlib.Path, package: str) -> str:
  """Makes the text of a package's BUILD file.

  Args:
    root: The repository.
    package: Dotted name.

  Returns:
    The text.
  """
  floor = floors.floor_of(package)
  above = group_of(min(floor + 1, len(floors.FLOORS) - 1))
  head = f'package(default_visibility = ["//:{above}"])\n'
  if package == 'tests':
    head += '\nexports_files(["bazel_main.py"])\n'
  targets = [_target(root, source) for source in _modules(root, package)]
  return '\n'.join((head, *targets))


def top_build() -> str:
  """Makes the text of the top BUILD file: the floors, and setup.py."""
  head = (
    '# The floors, bottom first: each group holds one and all above it. A package is\n'
    '# visible from the floor above its own, and to itself.\n'
    'package(default_visibility = ["//visibility:private"])\n'
  )
  parts = [head]
  for floor in range(1, len(floors.FLOORS)):
    specs = [f'//{name.replace(".", "/")}/...' for name in floors.FLOORS[floor]]
    text = f'package_group(\n{_INDENT}name = "{group_of(floor)}",\n'
    if floor + 1 < len(floors.FLOORS):
      text += _list('includes', [f':{group_of(floor + 1)}'])
    parts.append(text + _list('packages', specs) + ')\n')
  parts.append(
    f'py_binary(\n{_INDENT}name = "setup",\n{_INDENT}srcs = ["setup.py"],\n'
    f'{_INDENT}data = ["README.md"],\n)\n'
  )
  return '\n'.join(parts)


def build_files(root: pathlib.Path) -> dict[pathlib.Path, str]:
  """Makes the text of every BUILD file, by its path."""
  files = {root / 'BUILD': top_build()}
  for package in packages(root):
    path = root.joinpath(*package.split('.'), 'BUILD')
    files[path] = package_build(root, package)
  return files


def main() -> int:
  """Writes the files that differ; without --write names them and fails."""
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument('--write', action='store_true', help='write what differs')
  write = parser.parse_args().write
  stale = 0
  for path, text in build_files(ROOT).items():
    if path.is_file() and path.read_text(encoding='utf-8') == text:
      continue
    stale += 1
    print(f'{"wrote" if write else "stale"} {path.relative_to(ROOT)}')
    if write:
      aside = path.with_suffix('.part')
      aside.write_text(text, encoding='utf-8')
      aside.replace(path)
  return 0 if write else int(stale > 0)


if __name__ == '__main__':
  sys.exit(main())
