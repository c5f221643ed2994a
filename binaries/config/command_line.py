"""The command line of programs: the only module that defines or reads a flag.

Flags follow from dataclasses: those of a training program from `RunConfig`, those of
another program from its `Options`. A field with kinds, or that is a dataclass itself,
is a flag that may be repeated, each time with some of its fields:

  --clients=adam:learning_rate=0.001 --clients=epochs=5
"""

from collections.abc import Collection, Mapping, Sequence
import contextlib
import dataclasses
import importlib
import os
from typing import Annotated, Any, TypeVar

from absl import flags

from binaries.config import changing
from binaries.config import docstrings
from binaries.config import programs
from binaries.config import run_config
from tff_ssl.computing import kinds
from tff_ssl.computing import near_names
from tff_ssl.runs import own_modules

Options = TypeVar('Options')


class Changes(tuple[str, ...]):
  """The values of a repeated flag of an `Options`, as text, for `changing.changed`."""


UNCHANGED = Changes()


class RunChanges(tuple[tuple[str, str], ...]):
  """The flags of training programs and their values, for `changing.configure`.

  A program whose `Options` has such a field takes these flags in addition to its own.
  """


NO_CHANGES = RunChanges()


# A field of an `Options` that is a path: `~` is expanded, which shells do not do.
Path = Annotated[str, 'path']
# Not a field of a run: a flag of every program, which runs what it names.
_IMPORT = own_modules.FLAG
ABOUT_IMPORT = (
  'Modules of your own, or .py files, with commas between them; they are run, and '
  'their parts are then known here. Whoever opens the run gives it again.'
)
_ABOUT = {
  changing.CONFIG: (
    'config.json of a run from which this one begins, without its paths and what '
    'executed it; other flags change it.'
  ),
  'method': 'The method, as in fedema or fedema:tau=0.7.',
}
_NOT_FLAGS = ('all_if_fewer',)
# Flags of runs that may be repeated.
REPEATED = ('method', *run_config.PARTS, *run_config.KINDS)
# Flags that say which run it is; a program that starts many runs sets them itself.
OF_ONE_RUN = ('seed', 'run_dir')
# Fields of the evaluation that change how an encoder is fine-tuned.
_OF_FINETUNING = ('finetune_steps', 'finetune_rate', 'precision')
_COLUMNS = 'columns'
# absl's own flag that programs take too.
_VERBOSITY = 'verbosity'


def check_fields(flag: str, texts: Sequence[str], used: Sequence[str]) -> None:
  """Refuses fields of a flag that a program does not use.

  Args:
    flag: Name of the flag.
    texts: What it is given as.
    used: The fields that are used.

  Raises:
    ValueError: If another field is given.
  """
  for name in (name for text in texts for name in kinds.given(text)):
    if name not in used:
      raise ValueError(
        f'--{flag} has {name}; here it must be one of {", ".join(used)}.'
      )


def check_finetuning(texts: Sequence[str], finetuned: bool) -> None:
  """Refuses changes of an evaluation that do nothing for fine-tuning.

  Args:
    texts: What --evaluation is given as.
    finetuned: Whether something is fine-tuned.

  Raises:
    ValueError: If a field is given that is not of fine-tuning, or there is none.
  """
  check_fields('evaluation', texts, _OF_FINETUNING)
  if texts and not finetuned:
    raise ValueError(
      f'--evaluation={texts[0]} is given without --finetuned, which it is for; leave '
      'it out.'
    )


def take_imports(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
  """Takes --import out of a command line.

  Returns:
    The modules that it names, and the other arguments.

  Raises:
    ValueError: If it has no value.
  """
  names, rest, waiting = list[str](), list[str](), [*arguments]
  while waiting:
    flag, equals, value = (argument := waiting.pop(0)).partition('=')
    if flag not in (f'--{_IMPORT}', f'-{_IMPORT}'):
      rest.append(argument)
      continue
    value = value if equals or not waiting else waiting.pop(0)
    found = [name.strip() for name in value.split(',') if name.strip()]
    if not found:
      raise ValueError(
        f'--{_IMPORT} has no value; it must be given as --{_IMPORT}=MODULE.'
      )
    names += [name for name in found if name not in names]
  return names, rest


def of_runs() -> dict[str, str]:
  """Returns the flags of training programs, with what each is."""
  about = docstrings.attributes(run_config.RunConfig)
  own = {name: text for name, text in about.items() if name not in _NOT_FLAGS}
  for name, path in changing.SHORT.items():
    part, field = path.split('.')
    own[name] = docstrings.attributes(run_config.PARTS[part])[field]
  return {**own, **_ABOUT}


def parse_run(program: str, arguments: Sequence[str]) -> run_config.RunConfig:
  """Reads the command line of a training program.

  Args:
    program: Name of the program.
    arguments: The command line after the program's name.

  Raises:
    ValueError: If it is malformed; one sentence that names the flag and what is
      allowed.
  """
  changes = _changes(of_runs(), arguments)
  try:
    config = changing.configure(programs.load(program), changes)
  except ValueError:
    _check_imports(dict(changes).get('run_dir'))
    raise
  if not config.run_dir:
    raise ValueError(missing('run_dir', 'a folder, new or of this run'))
  return config


def _check_imports(folder: str | None) -> None:
  """Refuses to resume a run whose own modules are not imported; others are not read."""
  # Only here: most command lines are well-formed.
  stored = importlib.import_module('tff_ssl.runs.run_config')
  with contextlib.suppress(OSError):
    if folder and os.path.isfile(os.path.join(folder, stored.NAME)):  # noqa: PTH113, PTH118
      own_modules.check_loaded(folder, stored.read(folder))


def missing(name: str, what: str) -> str:
  """Returns the sentence about a flag that a program needs but was not given."""
  return f'--{name} is not given; it must name {what}.'


def parse_options(cls: type[Options], arguments: Sequence[str]) -> Options:
  """Reads the command line of a program that trains nothing.

  Args:
    cls: A dataclass whose fields are the flags; one without a default must be given.
    arguments: The command line after the program's name.

  Raises:
    ValueError: If it is malformed; one sentence that names the flag and what is
      allowed.
  """
  types = kinds.field_types(cls).items()
  own = [n for n, type_ in types if type_ is Changes or dataclasses.is_dataclass(type_)]
  # Given as --NAME or --noNAME.
  switches = [n for n, type_ in types if type_ is bool]
  changes = _changes(of_options(cls), arguments, (*own, *REPEATED), switches)
  return _options_of(cls, changes)


def of_options(cls: type[Any]) -> dict[str, str]:
  """Returns the flags that are the fields of options, with what each is."""
  own = docstrings.attributes(cls)
  for name in _of_all_runs(cls):
    del own[name]
    own.update(of_runs())
  return own


def _of_all_runs(cls: type[Any]) -> tuple[str, ...]:
  """Returns the field of options that has the flags of training programs, if any."""
  return tuple(n for n, type_ in kinds.field_types(cls).items() if type_ is RunChanges)


def _options_of(cls: type[Options], changes: Sequence[changing.Change]) -> Options:
  """Returns options from flags and their values; see `parse_options`."""
  types, own = kinds.field_types(cls), dict[str, Any]()
  for name in _of_all_runs(cls):
    own[name] = RunChanges(change for change in changes if change[0] not in types)
  for name, text in changes:
    if name not in types:
      continue
    type_ = types[name]
    if type_ is Changes:
      own[name] = Changes((*own.get(name, ()), text))
      continue
    try:
      if dataclasses.is_dataclass(type_):
        before = own.get(name, type_())
        own[name] = changing.expand_home(kinds.parse(text, {'': type_}, before))
      else:
        own[name] = changing.parse_scalar(text, type_)
    except ValueError as error:
      raise ValueError(changing.refused(name, text, error)) from error
  required: Any = cls
  for each in dataclasses.fields(required):
    if each.default is dataclasses.MISSING and not own.get(each.name):
      about = docstrings.attributes(cls)[each.name]
      raise ValueError(missing(each.name, about[:1].lower() + about[1:].rstrip('.')))
  return cls(**own)


def _changes(
  about: Mapping[str, str],
  arguments: Sequence[str],
  may_repeat: Collection[str] = REPEATED,
  booleans: Collection[str] = (),
) -> list[changing.Change]:
  """Parses a command line by absl, without its global flags.

  Returns:
    The flags that are given and their values, in their order.
  """
  known, order = flags.FlagValues(), list[changing.Change]()
  for name in about:
    parser = _Recorder(name, order, name in booleans)
    flag = flags.Flag(parser, None, name, None, '', boolean=name in booleans)
    known[name] = flag
  if _VERBOSITY in flags.FLAGS:
    known[_VERBOSITY] = flags.FLAGS[_VERBOSITY]
  try:
    rest = known(['', *arguments])
  except flags.UnrecognizedFlagError as error:
    raise ValueError(unknown(error.flagname, about)) from error
  except (flags.Error, ValueError) as error:
    raise ValueError(_sentence(error)) from error
  if not flags.FLAGS.is_parsed():
    flags.FLAGS.mark_as_parsed()
  if len(rest) > 1:
    raise ValueError(f'{rest[1]!r} is no flag; all arguments must be --flag=value.')
  return _last_of_simple(order, may_repeat)


def _last_of_simple(
  order: Sequence[changing.Change], may_repeat: Collection[str]
) -> list[changing.Change]:
  """Leaves out values of flags that are given again and cannot be repeated.

  Columns are a list, which may be given in parts.
  """
  last = {name: k for k, (name, _) in enumerate(order)}
  columns = ','.join(text for name, text in order if name == _COLUMNS)
  return [
    (name, columns if name == _COLUMNS else text)
    for k, (name, text) in enumerate(order)
    if name in may_repeat or last[name] == k
  ]


class _Recorder(flags.ArgumentParser):
  """A parser that records what is given, in the order of the command line."""

  syntactic_help = ''

  def __init__(self, name: str, order: list[changing.Change], is_switch: bool):
    self._name, self._order, self._is_switch = name, order, is_switch

  def parse(self, argument: Any) -> Any:
    """Records the text of a value."""
    text = str(argument).lower() if self._is_switch else str(argument)
    self._order.append((self._name, text))
    return argument


def unknown(name: str, about: Mapping[str, str]) -> str:
  """Returns the sentence about a flag that is none of those described."""
  stem = name if name in about else name.removeprefix('no')
  near = near_names.nearest(stem, about) or _part_with(name)
  meant = f'; did you mean --{near}?' if near else '; --help lists all flags.'
  return f'There is no flag --{name}{meant}'


def _part_with(name: str) -> str:
  """Returns the flag of a part that has a field of this name; '' if none has."""
  for flag, cls in run_config.PARTS.items():
    if name in kinds.field_types(cls):
      return f'{flag}={name}='
  for flag, table in run_config.KINDS.items():
    for cls in table.values():
      if name in kinds.field_types(cls):
        return f'{flag}={name}='
  return ''


def _sentence(error: Exception) -> str:
  text = ' '.join(str(error).split())
  if text.startswith('Missing value for flag '):
    name = text.rpartition('-')[2]
    text = f'--{name} has no value; it must be given as --{name}=VALUE'
  return text if text.endswith(('.', '?')) else f'{text}.'
