"""The lock, the wheel, and the making of the environment."""

import ast
from collections.abc import Iterable
import importlib.metadata
import os
import pathlib
import re
import shutil
import subprocess
import sys
import zipfile

from packaging import requirements as requirements_lib
from packaging import specifiers
from packaging import utils
import pytest

_ROOT = pathlib.Path(__file__).resolve().parent.parent
_TOPS = ('tff_ssl', 'tasks', 'binaries', 'docs', 'tests')
# pandas imports them where it writes LaTeX and Markdown.
_BY_PANDAS = frozenset(('jinja2', 'tabulate'))
# Tools, and what is held back or added for others: requirements.in says why.
_NOT_IMPORTED = _BY_PANDAS | frozenset(
  (
    'importlib-resources',
    'mypy',
    'pytest-xdist',
    'ruff',
    'tensorflow-metadata',
    'wheel',
  )
)


def _stated(name: str) -> list[requirements_lib.Requirement]:
  lines = (_ROOT / name).read_text(encoding='utf-8').splitlines()
  stripped = (line.partition('#')[0].strip() for line in lines)
  return [requirements_lib.Requirement(line) for line in stripped if line]


def _locked() -> dict[str, str]:
  text = (_ROOT / 'requirements.txt').read_text(encoding='utf-8')
  return dict(re.findall(r'^([A-Za-z0-9._-]+)==(\S+) ', text, re.MULTILINE))


@pytest.mark.parametrize('name', ['requirements.in', 'overrides.txt'])
def test_lock_meets_what_it_is_resolved_from(name):
  locked = _locked()
  for requirement in _stated(name):
    version = locked.get(utils.canonicalize_name(requirement.name))

    assert version is not None, f'{requirement}: run `make lock`'
    assert version in requirement.specifier, f'{requirement}: run `make lock`'


def _distributions(sources: Iterable[pathlib.Path]) -> set[str]:
  """Names what has to be installed for the imports of some files."""
  imported = set()
  for source in sources:
    for node in ast.walk(ast.parse(source.read_text(encoding='utf-8'))):
      if isinstance(node, ast.Import):
        imported.update(alias.name.split('.')[0] for alias in node.names)
      elif isinstance(node, ast.ImportFrom):
        imported.add((node.module or '').split('.')[0])
  third_party = imported - set(sys.stdlib_module_names) - {*_TOPS, 'carriers'}
  distributions = importlib.metadata.packages_distributions()
  return {utils.canonicalize_name(distributions[name][0]) for name in third_party}


def test_lock_is_resolved_from_what_is_imported_and_nothing_else():
  sources = {path for top in _TOPS for path in (_ROOT / top).rglob('*.py')}
  # The site, Keras 3, PyTorch and the other libraries of the race have locks and
  # environments of their own.
  sources -= {*(_ROOT / 'docs' / 'site').glob('*.py')}
  elsewhere = _ROOT / 'docs' / 'elsewhere'
  sources -= {elsewhere / 'check.py', elsewhere / 'lite0.py'}
  sources -= {*elsewhere.glob('torch_*.py')}
  peers = _ROOT / 'docs' / 'race' / 'peers'
  sources -= {*peers.glob('*.py')} - {peers / 'own.py'}
  stated = {utils.canonicalize_name(each.name) for each in _stated('requirements.in')}

  assert stated == _distributions([*sources, _ROOT / 'setup.py']) | _NOT_IMPORTED


def test_every_line_of_the_lock_has_a_hash():
  text = (_ROOT / 'requirements.txt').read_text(encoding='utf-8')
  entries = re.findall(r'^(\S+==\S+) \\\n +--hash=sha256:[0-9a-f]{64}', text, re.M)

  assert len(entries) == len(_locked()) > 50
  assert not re.search(r'https?:|index|find-links', text)


@pytest.fixture(scope='module')
def wheel(tmp_path_factory):
  """The wheel, built from a copy so that nothing is left in the checkout."""
  tree = tmp_path_factory.mktemp('tree')
  for folder in _TOPS:
    shutil.copytree(_ROOT / folder, tree / folder)
  for name in ('setup.py', 'README.md', 'LICENSE', 'pyproject.toml'):
    shutil.copy(_ROOT / name, tree)
  subprocess.run(
    [sys.executable, 'setup.py', '--quiet', 'bdist_wheel'],
    cwd=tree,
    check=True,
    capture_output=True,
  )
  (path,) = (tree / 'dist').glob('*.whl')
  with zipfile.ZipFile(path) as archive:
    yield archive


def test_wheel_holds_the_library_alone(wheel):
  names = [name for name in wheel.namelist() if '.dist-info/' not in name]
  expected = {
    path.relative_to(_ROOT).as_posix()
    for kind in ('*.py', 'templates/*')
    for path in (_ROOT / 'tff_ssl').rglob(kind)
  }

  assert set(names) == expected | {'tff_ssl/py.typed'}


def _required(wheel: zipfile.ZipFile) -> list[requirements_lib.Requirement]:
  (name,) = (n for n in wheel.namelist() if n.endswith('.dist-info/METADATA'))
  metadata = importlib.metadata.PathDistribution(zipfile.Path(wheel, name).parent)
  python = specifiers.SpecifierSet(metadata.metadata['Requires-Python'])
  assert [v for v in ('3.10', '3.11.2', '3.12') if v in python] == ['3.11.2']
  return [requirements_lib.Requirement(line) for line in metadata.requires or []]


def test_wheel_asks_for_what_the_library_imports_and_nothing_else(wheel):
  asked = {utils.canonicalize_name(each.name) for each in _required(wheel)}

  assert asked == _distributions((_ROOT / 'tff_ssl').rglob('*.py')) | _BY_PANDAS


def test_lock_meets_what_the_wheel_asks_for(wheel):
  locked = _locked()
  for requirement in _required(wheel):
    assert locked[utils.canonicalize_name(requirement.name)] in requirement.specifier


# Stands for Python: says yes to -c, makes a .venv that holds itself, and lets pip end
# as the environment variable says.
_FAKE_PYTHON = """#!/bin/sh
echo "$@" >> "$FAKE_LOG"
case "$*" in
  *sys.version_info*) exit "$FAKE_VERSION" ;;
  *ensurepip,*) exit "$FAKE_ENSUREPIP" ;;
  "-m venv"*) rm -rf .venv; mkdir -p .venv/bin; cp "$0" .venv/bin/python ;;
  "-m pip"*) exit "$FAKE_PIP" ;;
esac
"""


@pytest.fixture
def make_venv(tmp_path):
  """Runs `make venv` in an empty clone where Python is the fake."""
  for name in ('Makefile', 'requirements.txt'):
    shutil.copy(_ROOT / name, tmp_path)
  tools = tmp_path / 'tools'
  tools.mkdir()
  for tool in ('sh', 'make', 'cmp', 'cp', 'mv', 'rm', 'mkdir', 'sed', 'uname'):
    found = shutil.which(tool)
    assert found, f'{tool} is not on this machine'
    (tools / tool).symlink_to(found)
  python = tools / 'python3.11'
  python.write_text(_FAKE_PYTHON, encoding='utf-8')
  python.chmod(0o755)

  def run(**fake: int) -> subprocess.CompletedProcess[str]:
    outcomes = {'FAKE_VERSION': 0, 'FAKE_ENSUREPIP': 0, 'FAKE_PIP': 0} | fake
    environment = {name: str(code) for name, code in outcomes.items()}
    environment |= {'PATH': os.fspath(tools), 'FAKE_LOG': os.fspath(tmp_path / 'log')}
    (tmp_path / 'log').write_text('')
    return subprocess.run(
      ['make', '--no-print-directory', 'venv'],
      cwd=tmp_path,
      env=environment,
      capture_output=True,
      text=True,
      check=False,
    )

  return run


def _calls(tmp_path: pathlib.Path) -> str:
  return (tmp_path / 'log').read_text(encoding='utf-8')


def test_environment_is_made_once(make_venv, tmp_path):
  first = make_venv()
  made = _calls(tmp_path)
  second = make_venv()

  assert first.returncode == 0, first.stderr
  assert made.count('-m venv') == 1
  assert '--no-deps --require-hashes --no-build-isolation -r requirements.txt' in made
  tools = (tmp_path / '.venv' / 'build_tools.txt').read_text(encoding='utf-8')
  assert re.findall(r'^(\w+)==', tools, re.MULTILINE) == ['setuptools', 'wheel']
  assert second.returncode == 0
  assert '-m' not in _calls(tmp_path)


def test_another_lock_makes_the_environment_again(make_venv, tmp_path):
  make_venv()
  with (tmp_path / 'requirements.txt').open('a') as lock:
    lock.write('# another\n')

  make_venv()

  assert _calls(tmp_path).count('-m venv --clear') == 1


def test_install_that_failed_is_repeated(make_venv, tmp_path):
  failed = make_venv(FAKE_PIP=1)
  stamped = (tmp_path / '.venv' / 'installed.txt').exists()

  again = make_venv()

  assert failed.returncode != 0
  assert not stamped
  assert again.returncode == 0
  assert _calls(tmp_path).count('-m venv --clear') == 1


@pytest.mark.parametrize(
  'fake, message',
  [
    ({'FAKE_VERSION': 1}, 'needs Python 3.11, and python3.11 is none: install it'),
    ({'FAKE_ENSUREPIP': 1}, 'install the Debian package python3.11-venv.'),
  ],
)
def test_missing_files_are_named_in_one_sentence(make_venv, tmp_path, fake, message):
  result = make_venv(**fake)

  assert result.returncode != 0
  sentence, *rest = result.stderr.splitlines()
  assert message in sentence
  assert all(line.startswith('make: ***') for line in rest)
  assert '-m' not in _calls(tmp_path)
