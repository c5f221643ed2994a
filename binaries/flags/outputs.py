"""Files that binaries write where a flag says: `--plot`, and checks of their paths."""

import pathlib

from absl import flags

PLOT = flags.DEFINE_string('plot', None, 'PNG file for a figure of what is printed.')


def check(flag: flags.FlagHolder[str | None], suffix: str) -> None:
  """Refuses a path that could not be written to, before the work and not after it.

  Args:
    flag: Names a file, or has no value.
    suffix: What the path must end in.

  Raises:
    ValueError: If it ends in something else, or in a folder that does not exist.
  """
  path = flag.value
  if path is None:
    return
  if not path.endswith(suffix):
    raise ValueError(f'--{flag.name} is {path!r}; it must end in {suffix}.')
  folder = pathlib.Path(path).parent
  if not folder.is_dir():
    raise ValueError(
      f'--{flag.name} is {path!r}; there must be a folder {str(folder)!r}.'
    )
