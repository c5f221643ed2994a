"""Modules of one's own, whose parts a process uses: imported only if they are named.

Importing a module runs it. So the names come from this process's command line (or from
a call in Python), never from a run folder: config.json says which modules a run needs,
and whoever opens the run names them again. An installed package is imported by its
module's name, or by that of its entry point in the group `tff_ssl.parts`; it is not
imported because it is installed, since then every program would depend on what else
is in the environment, and config.json would not say so.
"""

from collections.abc import Iterable, Mapping
import dataclasses
import functools
import hashlib
import importlib
import importlib.metadata
import importlib.util
import pathlib
import re
import sys
import types
from typing import Any

from tff_ssl.computing import inert
from tff_ssl.settings import parts

FLAG = 'import'
# The entry of config.json: digest by name of the module.
STORED = 'imports'
GROUP = 'tff_ssl.parts'
_SUFFIX, _NAME = '.py', re.compile(r'[\w.-]{1,100}', re.ASCII)
_WORD = re.compile(r'\w+', re.ASCII)
_DIGITS = 12
_CALLS = '--verbosity=1 shows the calls'


@dataclasses.dataclass(frozen=True)
class _Module:
  """An imported module.

  Attributes:
    name: Its name in Python.
    given: What it was named as: a module, a file or an entry point.
    digest: Of its file, or of all .py files of a package, as they were imported.
  """

  name: str
  given: str
  digest: str


_named: dict[str, _Module] = {}


def _modules() -> dict[str, _Module]:
  """Returns the modules by name: those named, and what Python code has imported."""
  found = {**_named}
  known = {f'{each.name}.' for each in found.values()}
  for name in sorted(parts.modules(only_own=True) - {'__main__'}):
    if not any(f'{name}.'.startswith(each) for each in known):
      found[name] = _Module(name, name, _digest(sys.modules[name]))
  return found


def load(given: Iterable[str]) -> None:
  """Imports modules, which register their parts (`settings.parts`).

  Args:
    given: Names of modules, of .py files, or of entry points in the group
      `tff_ssl.parts`.

  Raises:
    ValueError: If there is no such module, importing it fails, it registers nothing, or
      a part has the name of another.
  """
  for each in given:
    name = pathlib.Path(each).stem if each.endswith(_SUFFIX) else each
    if not _NAME.fullmatch(name):
      raise ValueError(
        f'--{FLAG} has {inert.line(each)!r}; it must be a module, as in my_part or '
        f'my_part{_SUFFIX}.'
      )
    before = parts.modules()
    module = _imported(each, name)
    own = module.__name__
    after = parts.modules()
    # A package's parts may be in its modules; one imported before has them already.
    if after == before and not any(f'{m}.'.startswith(f'{own}.') for m in after):
      raise ValueError(
        f'--{FLAG}={each} registers no part; it must, by a decorator of '
        f'{parts.__name__}.'
      )
    _named[name] = _Module(own, each, _digest(module))


def _imported(given: str, name: str) -> types.ModuleType:
  """Imports a module; its own errors are told with their lines."""
  try:
    if given.endswith(_SUFFIX):
      return _from_file(pathlib.Path(given).expanduser(), name)
    found = [*importlib.metadata.entry_points(group=GROUP, name=name)]
    return importlib.import_module(found[0].module if found else name)
  except (Exception, SystemExit) as error:
    absent = error.name if isinstance(error, ModuleNotFoundError) else None
    if absent is not None and f'{name}.'.startswith(f'{absent}.'):
      raise ValueError(
        f'--{FLAG} has {given!r}, which is no module; it must be a .py file, or a '
        'module on the path of Python.'
      ) from error
    if isinstance(error, _RefusedError):
      raise
    where = f'{type(error).__name__} in line {_line(error, name)}: {error}'
    raise ValueError(inert.line(f'--{FLAG}={given} fails by {where}')) from error


class _RefusedError(ValueError):
  """A file cannot be imported; the message says why."""


def _from_file(path: pathlib.Path, name: str) -> types.ModuleType:
  """Imports a file as a module of its name; modules beside it can be imported too."""
  if not path.is_file():
    raise _RefusedError(f'--{FLAG} has {str(path)!r}; there must be such a file.')
  path = path.resolve()
  if (other := sys.modules.get(name)) is not None:
    place = getattr(other, '__file__', None)
    if place is None or pathlib.Path(place).resolve() != path:
      raise _RefusedError(
        f'--{FLAG} has {str(path)!r}, but the module {name} is {place or "built in"}; '
        'the file must have another name.'
      )
    return other
  spec = importlib.util.spec_from_file_location(name, path)
  assert spec is not None and spec.loader is not None
  module = importlib.util.module_from_spec(spec)
  sys.modules[name] = module
  # At the end: it must not hide any other module.
  if (folder := str(path.parent)) not in sys.path:
    sys.path.append(folder)
  try:
    spec.loader.exec_module(module)
  except BaseException:
    del sys.modules[name]
    raise
  return module


def _line(error: BaseException, name: str) -> int:
  """Returns the last line of a module that an error's traceback has; 0 without one."""
  trace, line = error.__traceback__, 0
  while trace is not None:
    frame = trace.tb_frame
    # Not in what `dataclasses` generates, whose lines are its own.
    is_file = not frame.f_code.co_filename.startswith('<')
    if is_file and frame.f_globals.get('__name__') == name:
      line = trace.tb_lineno
    trace = trace.tb_next
  return getattr(error, 'lineno', line) or line


def described(error: BaseException) -> str | None:
  """Returns an error in a sentence if a module of one's own may have caused it.

  Args:
    error: The error.

  Returns:
    Its message, with the last line of the module that it passed through. An error of
    TensorFlow, which computes later, has no such line. None: there is no such module.
  """
  modules, kind = _modules(), type(error)
  text = inert.line(str(error).partition('\n')[0]).rstrip('.')
  for name, own in modules.items():
    if line := _line(error, own.name):
      where = f'in line {line} of {name}'
      if isinstance(error, ValueError):
        return f'{text}, {where}.'
      return f'{kind.__name__} {where}: {text}; {_CALLS}.'
  if modules and kind.__module__.startswith('tensorflow.'):
    return f'{kind.__name__}, perhaps of {" or ".join(modules)}: {text}; {_CALLS}.'
  return None


def _digest(module: types.ModuleType) -> str:
  """Returns the digest of a module's file, or of all .py files of a package."""
  place = getattr(module, '__file__', None)
  if place is None:
    raise ValueError(
      f'--{FLAG} has {module.__name__}, a folder without __init__.py; it must be a '
      'module of one file or a package.'
    )
  own = pathlib.Path(place)
  found = sorted(own.parent.rglob('*.py')) if hasattr(module, '__path__') else [own]
  digest = hashlib.sha256()
  for path in found:
    digest.update(path.relative_to(own.parent).as_posix().encode())
    digest.update(hashlib.sha256(path.read_bytes()).digest())
  return digest.hexdigest()


def digests() -> dict[str, str]:
  """Returns the digests of all modules that were named, by name, sorted."""
  return {name: own.digest for name, own in sorted(_modules().items())}


def used(settings: Mapping[str, Any]) -> dict[str, str]:
  """Returns the digests of the modules whose parts a run has.

  A sweep's methods are given the same modules: a change in one of them is none to runs
  of others. A module of which a used one has a name, such as a class, is used too.

  Args:
    settings: All that the run depends on, by name; a part is named in a text of it.
  """
  modules = _modules()
  words = {word for value in settings.values() for word in _WORD.findall(str(value))}
  waiting, found = [*parts.modules(only_own=True, named=words)], set[str]()
  while waiting:
    own = f'{waiting.pop()}.'
    for name in modules.keys() - found:
      if own.startswith(inside := f'{modules[name].name}.'):
        found.add(name)
        loaded = [m for key, m in sys.modules.items() if f'{key}.'.startswith(inside)]
        waiting += [_home(value) for m in loaded for value in vars(m).values()]
  return {name: modules[name].digest for name in sorted(found)}


def _home(value: Any) -> str:
  """Returns the name of a module, or of the one that a class or function is of."""
  if isinstance(value, types.ModuleType):
    return value.__name__
  return str(getattr(value, '__module__', ''))


def flags() -> list[str]:
  """Returns the flag that imports the same in another process; [] for nothing."""
  given = ','.join(own.given for own in _modules().values())
  return [f'--{FLAG}={given}'] if given else []


def check_loaded(what: object, stored: Mapping[str, Any]) -> None:
  """Refuses to open a run whose own modules are not imported here.

  Args:
    what: The run, for the message.
    stored: Its config.json, perhaps a stranger's.

  Raises:
    ValueError: If a module is missing; the message has the flag to type.
  """
  known = _modules()
  missing = [name for name in of_run(what, stored) if name not in known]
  if missing:
    raise ValueError(
      f'{what} was made with parts of {" and ".join(missing)}; give --{FLAG}='
      f'{",".join(missing)} (or the path of the .py file) if you trust it: no module '
      'is imported because a run names it.'
    )


def changes(what: object, stored: Mapping[str, Any]) -> list[str]:
  """Returns a clause for each module of a run that is another here.

  Args:
    what: The run, for messages.
    stored: Its config.json, perhaps a stranger's.
  """
  known = digests()
  return [
    f'{name} has the digest {known[name][:_DIGITS]}, and had {digest[:_DIGITS]} when '
    f'{what} began'
    for name, digest in of_run(what, stored).items()
    if known.get(name, digest) != digest
  ]


def versions(what: object, stored: Mapping[str, Any]) -> dict[str, str]:
  """Returns the modules of a run with the begin of their digests, as a setting.

  Args:
    what: The run, for messages.
    stored: Its config.json, perhaps a stranger's.

  Returns:
    A text by the name of the entry; empty for a run of the checkout alone.
  """
  own = of_run(what, stored)
  text = '/'.join(f'{name}@{digest[:_DIGITS]}' for name, digest in own.items())
  return {STORED: text} if text else {}


def check_opened(what: object, stored: Mapping[str, Any]) -> None:
  """Refuses to open a run as `check_loaded`; warns of modules that are others here."""
  check_loaded(what, stored)
  for clause in changes(what, stored):
    _warn_once(f'Warning: {clause}: what it does may differ.')


@functools.cache
def _warn_once(line: str) -> None:
  sys.stderr.write(f'{line}\n')


def check_same(
  what: object, stored: Mapping[str, Any], config: Mapping[str, Any]
) -> None:
  """Refuses to resume a run with other modules than it began with.

  Args:
    what: The run, for the message.
    stored: Its config.json.
    config: The same of a run that starts now.

  Raises:
    ValueError: If a module is missing, is not the run's, or has changed.
  """
  check_loaded(what, stored)
  before, now = of_run(what, stored), of_run(what, config)
  more = [name for name in now if name not in before]
  wrong = [f'--{FLAG}={name} is given, and {what} began without it' for name in more]
  if wrong := [*wrong, *changes(what, stored)]:
    raise ValueError(
      f'{wrong[0]}: resume it with what it began with, or name another folder.'
    )


def of_run(what: object, stored: Mapping[str, Any]) -> Mapping[str, str]:
  """Returns the modules that a run names, and their digests.

  Args:
    what: The run, for the message.
    stored: Its config.json, perhaps a stranger's.

  Raises:
    ValueError: If it has something else there.
  """
  own = stored.get(STORED, {})
  is_right = isinstance(own, Mapping) and all(
    _NAME.fullmatch(name) and isinstance(digest, str) and _NAME.fullmatch(digest)
    for name, digest in own.items()
  )
  if not is_right:
    raise ValueError(f'{STORED} of {what} is damaged; it must be digests by module.')
  return own
