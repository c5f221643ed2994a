"""Reads `.safetensors` files, which may be strangers', and writes them.

A file holds no program. The package of the same name compares what a header says with
the size of the file before any memory is taken for a tensor.
"""

from collections.abc import Iterator, Mapping
import contextlib
import os
import pathlib
import stat

import ml_dtypes  # noqa: F401  NumPy knows bfloat16 by it.
import numpy as np
import safetensors
from safetensors import numpy as in_numpy

from tff_ssl.storage import files

SUFFIX = '.safetensors'
_LENGTH_BYTES = 8
_ABOUT = '__metadata__'
_FLOATS = ('F64', 'F32', 'F16', 'BF16')


class Tensors:
  """The tensors of a file, of which none has been read; `open_tensors` opens it.

  Attributes:
    shapes: Of each tensor, by name.
  """

  def __init__(self, file: safetensors.safe_open):
    """Takes a file that is open."""
    self._file = file
    self.shapes = {
      name: tuple(file.get_slice(name).get_shape()) for name in file.offset_keys()
    }

  def read(self, name: str) -> np.ndarray:
    """Returns a tensor of floating type as float32.

    Args:
      name: One of `shapes`.

    Raises:
      ValueError: It is of another type, or not finite; the message is the second half
        of a sentence about the file.
    """
    stored = self._file.get_slice(name).get_dtype()
    if stored not in _FLOATS:
      raise ValueError(f'has {name!r} of type {stored}; it must be of floats')
    with np.errstate(over='ignore'):
      array = self._file.get_tensor(name).astype(np.float32)
    if not np.isfinite(array).all():
      raise ValueError(
        f'has a value of {name!r} that is not finite; all must be finite in float32'
      )
    return array


@contextlib.contextmanager
def open_tensors(path: str | os.PathLike[str]) -> Iterator[Tensors]:
  """Opens a file.

  Args:
    path: The file.

  Raises:
    ValueError: It is no regular file, or not such a file as it must be; also if its
      tensors are read within the block. The message names the file.
    OSError: It cannot be read.
  """
  # A pipe blocks until somebody writes to it.
  if not stat.S_ISREG(pathlib.Path(path).stat().st_mode):
    raise ValueError(f'{path} is a folder, pipe or device; it must be a file.')
  try:
    # A file in memory that becomes shorter would end the process.
    with safetensors.safe_open(path, 'numpy', backend='pread') as file:
      yield Tensors(file)
  except safetensors.SafetensorError as error:
    raise ValueError(f'{path} is no whole safetensors file: {error}.') from error
  except ValueError as error:
    raise ValueError(f'{path} {error}.') from error


def as_bytes(
  arrays: Mapping[str, np.ndarray], about: Mapping[str, str] | None = None
) -> bytes:
  """Returns the content of a file.

  Args:
    arrays: Tensors by name, of the types that these files have.
    about: Texts about the file, by name.
  """
  dense = {name: np.asarray(value, order='C') for name, value in arrays.items()}
  return in_numpy.save(dense, None if about is None else dict(about))


def from_bytes(content: bytes) -> tuple[dict[str, np.ndarray], dict[str, str]]:
  """Returns the tensors of a file by name, and the texts about it.

  Args:
    content: All of the file, perhaps a stranger's.

  Raises:
    ValueError: It is no such file; the message is the second half of a sentence.
  """
  try:
    arrays = in_numpy.load(content)
  except safetensors.SafetensorError as error:
    raise ValueError(f'is no whole safetensors file: {error}') from error
  except (KeyError, OverflowError, ValueError) as error:
    raise ValueError(f'has a type or a size that NumPy lacks: {error}') from error
  end = _LENGTH_BYTES + int.from_bytes(content[:_LENGTH_BYTES], 'little')
  header = files.parse_json(content[_LENGTH_BYTES:end], 'its header')
  return arrays, header.get(_ABOUT) or {}
