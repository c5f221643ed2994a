"""Records the flags of programs, for --help without importing TensorFlow.

  python -m binaries.methods.outlines

It writes binaries/flags/outlines/PROGRAM.json for each program that takes seconds to
import. Run it after flags have changed; a test asks for it.
"""

from collections.abc import Collection
import importlib
import json

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
  'partition',
  'sweep',
)


def main() -> None:
  """Writes the records."""
  for name, content in build().items():
    path = outline.path_of(name)
    path.parent.mkdir(exist_ok=True)
    path.write_text(content, encoding='utf-8')
  print(f'Written: {outline.path_of("*")}')


def build() -> dict[str, str]:
  """Returns the records by program, as the texts of their files."""
  return {name: _record(name) for name in (*table.PROGRAMS, *_OTHERS)}


def _record(name: str) -> str:
  module = importlib.import_module(f'binaries.{name}')
  taken: Collection[str]
  if name in table.PROGRAMS:
    taken, defaults = choice.flags_of(name), told_defaults.of_program(name)
  else:
    taken, defaults = getattr(module, 'TAKEN', None) or module.taken(), {}
  known = outline.record(
    module.__doc__ or '',
    *program.shown(module.__name__, taken, defaults),
    getattr(module, 'REQUIRED', {}),
  )
  return json.dumps(known, indent=1, ensure_ascii=False) + '\n'


if __name__ == '__main__':
  main()
