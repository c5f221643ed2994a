"""The frozen base of a run that trains adapters: `base.npz` in its folder.

Checkpoints hold only what is trained (see `encoders.lora`). With the base beside them a
run is resumed, evaluated and continued without what it began from.
"""

import collections
from collections.abc import Mapping
import os
import pathlib

import numpy as np

from tff_ssl.encoders import lora
from tff_ssl.storage import archives
from tff_ssl.storage import files

NAME = 'base.npz'


def write(folder: str | os.PathLike[str], base: Mapping[str, np.ndarray]) -> None:
  """Writes the base of a run, if its folder has none.

  Args:
    folder: The run folder.
    base: Name -> value of all parameters of the encoder without adapters.
  """
  path = pathlib.Path(folder) / NAME
  if not path.exists():
    with files.atomic(path) as aside, aside.open('wb') as file:
      np.savez(file, **base)


def read(
  folder: str | os.PathLike[str],
) -> collections.OrderedDict[str, np.ndarray] | None:
  """Returns the base of a run; None if it has none.

  Args:
    folder: The run folder.

  Raises:
    ValueError: If the file is damaged.
  """
  path = pathlib.Path(folder) / NAME
  if not path.exists():
    return None
  try:
    with archives.open_arrays(path, stored=True) as arrays:
      for name, header in arrays.headers.items():
        if header.dtype.kind != 'f':
          raise ValueError(f'{name!r} holds {header.dtype}; it must hold floats')
      return collections.OrderedDict(
        (name, arrays.read(name)) for name in arrays.headers
      )
  except files.NPZ_ERRORS as error:
    raise ValueError(f'cannot read the frozen weights {path}: {error}') from error


def merged(
  folder: str | os.PathLike[str], params: Mapping[str, np.ndarray]
) -> collections.OrderedDict[str, np.ndarray]:
  """Returns the parameters of a run's encoder without adapters.

  Args:
    folder: The run folder.
    params: The trained parameters of its encoder.

  Raises:
    ValueError: If the base is damaged.
  """
  merged = lora.merge(read(folder) or {}, params)
  return collections.OrderedDict(
    (name, np.asarray(value)) for name, value in merged.items()
  )
