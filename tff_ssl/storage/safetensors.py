"""Reads `.safetensors` files, which may be strangers', and writes them: NumPy alone.

A file is the number of bytes of its header (8 bytes, little-endian), the header (JSON:
name -> `dtype`, `shape` and `data_offsets`) and the bytes of all tensors, one after
another. It holds no program. Everything that the header says is compared with the size
of the file before any memory is taken for a tensor.

Source: https://github.com/huggingface/safetensors, "Format".
"""

from collections.abc import Iterator, Mapping
import contextlib
import json
import math
import os
import stat
from typing import IO, Any, NamedTuple

import numpy as np

from tff_ssl.storage import files

SUFFIX = '.safetensors'
_LENGTH_BYTES = 8
# Those of networks have some ten thousand bytes.
_MOST_HEADER_BYTES = 2**24
_ABOUT = '__metadata__'
# The most axes of a tensor, and what its sizes and offsets are below.
_MOST_AXES, _MOST = 8, 2**63
_BFLOAT16 = 'BF16'
# Alignment of the tensors in a written file, in bytes.
_ALIGNED = 8
# Types by their names in the files, as they are stored.
_TYPES: Mapping[str, np.dtype] = {
  name: np.dtype(stored)
  for name, stored in {
    'F64': '<f8',
    'F32': '<f4',
    'F16': '<f2',
    _BFLOAT16: '<u2',
    'I64': '<i8',
    'U64': '<u8',
    'I32': '<i4',
    'I16': '<i2',
    'I8': 'i1',
    'U8': 'u1',
    'BOOL': '?',
  }.items()
}
_NAMES = {stored: name for name, stored in _TYPES.items() if name != _BFLOAT16}


class Header(NamedTuple):
  """What a tensor is, as the file's header says.

  Attributes:
    type: Name of its type, such as 'F32'.
    shape: Its shape.
    start: Its first byte in the file.
    end: The byte behind its last one.
  """

  type: str
  shape: tuple[int, ...]
  start: int
  end: int


class Tensors:
  """The tensors of a file, of which none has been read; `open_tensors` opens it.

  Attributes:
    headers: What each tensor is, by name, in the order of their bytes.
    about: Texts about the file, by name.
  """

  def __init__(self, file: IO[bytes], size: int):
    """Reads the header.

    Args:
      file: A regular file, or one in memory, at its beginning.
      size: Its bytes.

    Raises:
      ValueError: It is no header, or does not fit the file; the message is the second
        half of a sentence about the file.
    """
    self._file = file
    if size < _LENGTH_BYTES:
      raise ValueError(f'has {size} bytes; it must have at least {_LENGTH_BYTES}')
    length = int.from_bytes(file.read(_LENGTH_BYTES), 'little')
    most = min(size - _LENGTH_BYTES, _MOST_HEADER_BYTES)
    if length > most:
      raise ValueError(
        f'declares a header of {length:,} bytes; it must have at most {most:,}'
      )
    described = _parsed(file.read(length))
    self.about = _about(described.get(_ABOUT, {}))
    self.headers = _headers(described, _LENGTH_BYTES + length, size)

  def read(self, name: str) -> np.ndarray:
    """Returns a tensor of floating type as float32.

    Args:
      name: One of `headers`.

    Raises:
      ValueError: It is of another type, or not finite; see `__init__`.
    """
    header = self.headers[name]
    if _TYPES[header.type].kind != 'f' and header.type != _BFLOAT16:
      raise ValueError(f'has {name!r} of type {header.type}; it must be of floats')
    array = self.stored(name)
    if header.type == _BFLOAT16:
      # The upper half of a float32.
      array = (array.astype('<u4') << 16).view('<f4')
    with np.errstate(over='ignore'):
      array = array.astype(np.float32)
    if not np.isfinite(array).all():
      raise ValueError(
        f'has a value of {name!r} that is not finite; all must be finite in float32'
      )
    return array

  def stored(self, name: str) -> np.ndarray:
    """Returns a tensor as it is stored; BF16 as uint16.

    Args:
      name: One of `headers`.

    Raises:
      ValueError: The file ends within it; see `__init__`.
    """
    header = self.headers[name]
    self._file.seek(header.start)
    content = self._file.read(header.end - header.start)
    if len(content) != header.end - header.start:
      raise ValueError(f'ends within {name!r}; it must have all bytes of its header')
    return np.frombuffer(content, _TYPES[header.type]).reshape(header.shape)


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
  # A pipe blocks until somebody writes to it, unless it is opened like this.
  with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK), 'rb') as file:
    try:
      status = os.fstat(file.fileno())
      if not stat.S_ISREG(status.st_mode):
        raise ValueError('is a folder, pipe or device; it must be a file')
      yield Tensors(file, status.st_size)
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
  header: dict[str, Any] = {} if about is None else {_ABOUT: dict(about)}
  parts, end = list[bytes](), 0
  for name, value in arrays.items():
    array = np.asarray(value)
    stored = array.dtype.newbyteorder('<')
    parts.append(np.ascontiguousarray(array, stored).tobytes())
    start, end = end, end + len(parts[-1])
    header[name] = {
      'dtype': _NAMES[stored],
      'shape': [*array.shape],
      'data_offsets': [start, end],
    }
  text = json.dumps(header).encode()
  text += b' ' * (-len(text) % _ALIGNED)
  return b''.join([len(text).to_bytes(_LENGTH_BYTES, 'little'), text, *parts])


def _parsed(content: bytes) -> Mapping[str, Any]:
  """Returns a header's JSON object."""
  try:
    header = files.parse_json(content, 'it', _MOST_HEADER_BYTES)
  except ValueError as error:
    raise ValueError(f'has no header of JSON: {error}; it must have one') from error
  if not isinstance(header, Mapping):
    raise ValueError('has a header that is no JSON object; it must be one')
  return header


def _about(value: Any) -> dict[str, str]:
  if not isinstance(value, Mapping) or not all(
    isinstance(text, str) for text in value.values()
  ):
    raise ValueError(f'has a wrong {_ABOUT} in its header; it must have texts by name')
  return dict(value)


def _headers(described: Mapping[str, Any], first: int, size: int) -> dict[str, Header]:
  """Returns what each tensor is, after a check that they fill the file.

  Args:
    described: The header.
    first: The first byte behind it.
    size: Bytes of the file.
  """
  headers = [
    (name, _header(name, value, first))
    for name, value in described.items()
    if name != _ABOUT
  ]
  headers.sort(key=lambda each: each[1].start)
  end = first
  for name, header in headers:
    if header.start != end:
      raise ValueError(
        f'has {name!r} from byte {header.start:,} on; it must follow the tensor '
        f'before, at byte {end:,}'
      )
    end = header.end
  if end != size:
    raise ValueError(
      f'has {size:,} bytes; it must have the {end:,} that its header declares'
    )
  return dict(headers)


def _header(name: str, value: Any, first: int) -> Header:
  """Parses one entry of the header: type, shape, offsets."""
  form = f'has a wrong entry {name!r} in its header; it must have'
  if not isinstance(value, Mapping) or value.get('dtype') not in (*_TYPES,):
    raise ValueError(f'{form} a dtype, one of {", ".join(_TYPES)}')
  shape: Any = value.get('shape')
  offsets: Any = value.get('data_offsets')
  for numbers in (shape, offsets):
    if (
      not isinstance(numbers, list)
      or len(numbers) > _MOST_AXES
      or not all(type(each) is int and 0 <= each < _MOST for each in numbers)
    ):
      raise ValueError(f'{form} whole numbers as shape and data_offsets')
  num_bytes = math.prod(shape) * _TYPES[value['dtype']].itemsize
  if len(offsets) != 2 or offsets[1] - offsets[0] != num_bytes:
    raise ValueError(
      f'{form} data_offsets around the {num_bytes:,} bytes of its shape {shape}'
    )
  return Header(value['dtype'], tuple(shape), first + offsets[0], first + offsets[1])
