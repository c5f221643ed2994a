"""Records the flags of programs, for --help without importing TensorFlow.

  python -m binaries.outlines

It writes binaries/flags/outlines/PROGRAM.json for each program that takes seconds to
import. Run it after flags have changed; a test asks for it.
"""

from collections.abc import Collection
import importlib
import json

from binaries import sweep
from binaries.flags import outline
from binaries.flags import program
from binaries.methods import choice
from binaries.methods import table
from binaries.methods import told_defaults

# Programs that name their own flags; those with methods are in the table.
_OTHERS = (
  'audit',
  'benchmark',
  'embed',
  'evaluate',
  'export',
  'linear_theory',
  'outlines',
  'partition',
  'race',
  'study',
)
# The flags that --help lists: none.
TAKEN: tuple[str, ...] = ()


def main() -> None:
  """Writes the records."""
  for name, content in build().items():
    path = outline.path_of(name)
    path.parent.mkdir(exist_ok=True)
    path.write_text(content, encoding='utf-8')
  print(f'Written: {outline.path_of("*")}')


def build() -> dict[str, str]:
  """Returns the records by program, as the texts of their files."""
  taken: dict[str, Collection[str]] = {
    name: choice.flags_of(name) for name in table.PROGRAMS
  }
  for name in _OTHERS:
    taken[name] = importlib.import_module(f'binaries.{name}').TAKEN
  taken['sweep'] = sweep.taken()
  return {name: _record(name, names) for name, names in taken.items()}


def _record(name: str, taken: Collection[str]) -> str:
  module = importlib.import_module(f'binaries.{name}')
  defaults = told_defaults.of_program(name) if name in table.PROGRAMS else {}
  known = outline.record(
    module.__doc__ or '',
    *program.shown(module.__name__, taken, defaults),
    getattr(module, 'REQUIRED', {}),
  )
  return json.dumps(known, indent=1, ensure_ascii=False) + '\n'


if __name__ == '__main__':
  program.run(main, TAKEN)
