"""A folder of photographs before it is broken, and what is meant by it."""

from collections.abc import Sequence
import csv
import io
import pathlib

import numpy as np
from PIL import Image

from tests.worlds import pictures as made

CLASSES = ('cat', 'dog')


def pictures(count: int = 12, size: int = 24) -> list[bytes]:
  """Makes JPEGs of slanted gradients, which all differ and have no symmetry."""
  y, x = np.mgrid[:size, :size] / size
  files = []
  for k in range(count):
    level = 30 + 200 * (x * (1 + k % 4) + y * (5 - k % 4)) / 6
    colours = np.stack([level, level * 0.9, level * 0.8 + k], axis=-1)
    files.append(made.of(Image.fromarray(colours.astype(np.uint8)), 'JPEG'))
  return files


class Folder:
  """Photographs in a folder of each class, with a manifest that says the same.

  Attributes:
    path: The folder.
    target: What is loaded: the folder, or what a way makes of it.
    names: The photographs' names in it.
    rows: The manifest's: name, client, label. Every two photographs are a client.
    meant: By a photograph's name without folder and suffix its label, its client, and
      whether it trains, None where that is free.
    changed: Likewise, photographs that are meant to look otherwise than before.
  """

  def __init__(self, path: pathlib.Path, files: Sequence[bytes]) -> None:
    self.path = self.target = path
    self.names: list[str] = []
    self.rows: list[list[str]] = []
    self.meant: dict[str, tuple[str, str, bool | None]] = {}
    self.changed: dict[str, Image.Image] = {}
    for k, content in enumerate(files):
      label, client = CLASSES[k % 2], f'p{k // 2:02d}'
      self.names.append(f'{label}/{k:03d}.jpg')
      self.write(self.names[-1], content)
      self.rows.append([self.names[-1], client, label])
      self.meant[f'{k:03d}'] = (label, client, None)
    self.list_all()

  def write(self, name: str, content: bytes) -> None:
    """Writes a file, and the folders around it."""
    path = self.path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)

  def list_all(
    self,
    header: str = 'image,client_id,label',
    separator: str = ',',
    encoding: str = 'utf-8',
    end: str = '\n',
  ) -> None:
    """Writes the manifest."""
    text = io.StringIO()
    writer = csv.writer(text, delimiter=separator, lineterminator=end)
    writer.writerows([header.split(','), *self.rows])
    self.write('manifest.csv', text.getvalue().encode(encoding))

  def read(self, k: int) -> bytes:
    """The content of the photograph k."""
    return (self.path / self.names[k]).read_bytes()

  def put(self, k: int, content: bytes) -> None:
    """Writes another content into the file of the photograph k."""
    self.write(self.names[k], content)

  def picture(self, k: int, mode: str = 'RGB') -> Image.Image:
    """The photograph k."""
    return Image.open(io.BytesIO(self.read(k))).convert(mode)

  def encoded(self, k: int, kind: str, mode: str = 'RGB') -> bytes:
    """The photograph k as a file of another kind."""
    return made.of(self.picture(k, mode), kind)

  def replace(self, k: int, suffix: str, content: bytes) -> None:
    """Puts another file in the place of the photograph k."""
    (self.path / self.names[k]).unlink()
    self.names[k] = self.names[k].removesuffix('.jpg') + suffix
    self.write(self.names[k], content)
    self.rows[k][0] = self.names[k]
    self.list_all()

  def move(self, k: int, name: str) -> None:
    """Moves the photograph k."""
    (self.path / name).parent.mkdir(parents=True, exist_ok=True)
    (self.path / self.names[k]).rename(self.path / name)
    self.names[k] = self.rows[k][0] = name
    self.list_all()

  def split(self, train: str, test: str) -> None:
    """Moves half of the photographs into the folder train, and half into test."""
    for k, stem in enumerate(self.meant):
      trains = k % 4 in (1, 2)
      self.move(k, f'{train if trains else test}/{self.names[k]}')
      label, client, _ = self.meant[stem]
      self.meant[stem] = (label, client, trains)
    for name in CLASSES:
      (self.path / name).rmdir()

  def only(self, name: str) -> None:
    """Removes the manifest in favour of another file, or loads that."""
    (self.path / 'manifest.csv').unlink(missing_ok=True)
    self.target = self.path / name
