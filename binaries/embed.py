r"""Embeds a folder of images: features of each image, and a map to explore them.

  python -m binaries.embed --run=runs/ham --images=photos --out=embedded
  python -m binaries.embed --run=runs/ham --beside=runs/other --images=photos --out=both
  python -m binaries.embed --run=encoder.keras --images=photos.tar --out=embedded

The encoder comes from a run, or from a file encoder.keras with its card encoder.json
next to it. The images come from a folder or .tar and its subfolders. They are made
squares of the encoder's size, by --fit and --pixel_range of the run or of the command
line; unreadable ones are named and left out. The folder --out has

  features.parquet, features.csv   a row per image: its file's name, and the features
  map.html                         a map with thumbnails; on a click the most similar
  map.png                          the same as a picture

With --beside the map shows two encoders side by side, and each encoder's features are
in separate files. If there are more than --map_images images, the map shows a random
sample of them, the same for both encoders.
"""

from collections.abc import Sequence
import csv
import pathlib

from absl import flags
import numpy as np
import pyarrow as pa
from pyarrow import parquet
import tensorflow as tf

from binaries.flags import adopting
from binaries.flags import common
from binaries.flags import outputs
from binaries.flags import paths
from binaries.flags import program
from binaries.flags import reading
from tasks import pictures
from tff_ssl.computing import inert
from tff_ssl.evaluation import feature_sets
from tff_ssl.evaluation import stages
from tff_ssl.export import encoder_file
from tff_ssl.reporting import model_card
from tff_ssl.reporting import projection
from tff_ssl.runs import run_config
from tff_ssl.storage import files

_IMAGES = paths.define('images', None, 'For embed: folder or .tar file with images.')
_BESIDE = paths.define(
  'beside', None, 'For embed: another run or encoder.keras, for a map side by side.'
)
_MAP_IMAGES = flags.DEFINE_integer(
  'map_images',
  1000,
  'For embed: most images on the map.',
  lower_bound=2,
  upper_bound=5000,
)
_PARQUET, _CSV = 'parquet', 'csv'
_FORMATS = (_PARQUET, _CSV)
# The flags that --help lists.
TAKEN = ('run', 'beside', 'images', 'out', 'to', 'map_images', *reading.NAMES)

# What each flag names.
REQUIRED = {
  'run': 'the folder of a run, or an encoder.keras',
  'images': 'a folder or .tar file with images',
  'out': 'a folder',
}


def main() -> None:
  """Embeds the images."""
  for name in common.given():
    if name not in TAKEN:
      raise ValueError(
        f'--{name} is given; binaries.embed takes only {", ".join(TAKEN)}; an '
        'existing encoder needs no other flags.'
      )
  formats = _formats()
  program.check_required(REQUIRED)
  out = outputs.new_folder()
  _adopt()
  # Both are read before the first one encodes anything.
  encoders = _encoders()
  with stages.show_progress(stages.StageLines(what='embedding')):
    _embed(out, encoders, formats)


def _embed(
  out: pathlib.Path, encoders: dict[str, tf.keras.Model], formats: Sequence[str]
) -> None:
  """Encodes the images with each encoder, and writes features and map."""
  found = {}
  for title, encoder in encoders.items():
    loaded = pictures.load(_IMAGES.value, encoder.input_shape[1:], reading.value())
    stages.begin(f'encoding {len(loaded.images):,} images with {title}')
    features = feature_sets.encode(encoder, loaded.images)
    if not np.all(np.isfinite(features)):
      raise ValueError(f'The features of {title} are not all finite.')
    found[title] = loaded, features
  first = next(iter(found.values()))[0]
  for line in first.intake.lines():
    print(f'  {line}')
  out.mkdir(parents=True, exist_ok=True)
  for number, (title, (loaded, features)) in enumerate(found.items(), 1):
    start = 'features' if len(found) == 1 else f'features_{number}'
    for kind in formats:
      _write(out / f'{start}.{kind}', loaded.names, features)
    print(
      f'{title}: {len(features):,} images, {features.shape[1]} features, in {start}.*'
    )
  _draw(out, found)
  print(f'Embedded: {out}')


def _formats() -> list[str]:
  """Returns the formats that the flag names.

  Raises:
    ValueError: If one is unknown.
  """
  wanted = list(dict.fromkeys(outputs.TO.value or _FORMATS))
  for name in wanted:
    if name not in _FORMATS:
      raise ValueError(f'to has {name!r}; it must be one of {", ".join(_FORMATS)}.')
  return wanted


def _adopt() -> None:
  """Reads pictures as the run did, unless the command line says otherwise."""
  folder = pathlib.Path(outputs.RUN.value)
  if (folder / run_config.NAME).is_file():
    stored = run_config.read(folder)['flags']
    known = {name: stored[name] for name in reading.NAMES if name in stored}
    adopting.adopt(known, reading.NAMES)


def _encoders() -> dict[str, tf.keras.Model]:
  """Returns the encoders by title.

  Raises:
    ValueError: If one cannot be read, or does not read images.
  """
  encoders: dict[str, tf.keras.Model] = {}
  for flag in (outputs.RUN, _BESIDE):
    if not flag.value:
      continue
    path = pathlib.Path(flag.value)
    if path.is_dir():
      run_config.check_contained(path)
      path = path / model_card.ENCODER
    encoder = encoder_file.read(path)
    if len(encoder.input_shape) != 4:
      raise ValueError(
        f'{path} is an encoder for tables, with inputs of shape '
        f'{encoder.input_shape[1:]}; it must be an encoder for images.'
      )
    title = path.resolve().parent.name
    encoders[title if title not in encoders else f'{title} (2)'] = encoder
  return encoders


def _write(path: pathlib.Path, names: tuple[str, ...], features: np.ndarray) -> None:
  """Writes a row per image: its name as `image`, and the features by number."""
  columns = [f'feature_{k}' for k in range(features.shape[1])]
  with files.atomic(path) as aside:
    if path.suffix == f'.{_PARQUET}':
      arrays = [pa.array(names), *map(pa.array, np.ascontiguousarray(features.T))]
      parquet.write_table(pa.table(arrays, names=['image', *columns]), aside)
      return
    with aside.open('w', newline='', encoding='utf-8') as file:
      writer = csv.writer(file)
      writer.writerow(['image', *columns])
      for name, row in zip(names, features, strict=True):
        # The fewest digits that distinguish a float32 from all others.
        writer.writerow([inert.cell(name), *map(str, row)])


def _draw(
  out: pathlib.Path, found: dict[str, tuple[pictures.Pictures, np.ndarray]]
) -> None:
  """Writes the map as a page and as a picture."""
  # Imported only here: on its first import matplotlib writes its cache, and may
  # print a message about it.
  from tff_ssl.reporting import gallery

  first = next(iter(found.values()))[0]
  if len(first.names) < 2:
    print('map: none is drawn for a single image')
    return
  shown = projection.choose(len(first.names), _MAP_IMAGES.value)
  # With many images this takes most of the time, and prints nothing meanwhile.
  print(f'map: laying out {len(shown):,} images with t-SNE', flush=True)
  panels = [gallery.panel(title, f[shown]) for title, (_, f) in found.items()]
  # The largest pictures show the most.
  loaded = max((p for p, _ in found.values()), key=lambda p: p.images.shape[1])
  images = loaded.images[shown]
  names = [first.names[k] for k in shown]
  note = f'{len(shown):,} of the {len(first.names):,} images of {_IMAGES.value}'
  page = gallery.build_page(panels, names, images, note)
  with files.atomic(out / 'map.html') as aside:
    aside.write_text(page, encoding='utf-8')
  gallery.draw(panels, images, note, out / 'map.png')


if __name__ == '__main__':
  common.run(main, TAKEN)
