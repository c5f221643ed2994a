"""Features of pictures by encoders, and a map of them, for `binaries.embed`."""

from collections.abc import Sequence
import csv
import pathlib

import numpy as np
import pyarrow as pa
from pyarrow import parquet
import tensorflow as tf

from binaries.config import run_config
from binaries.config import task_defaults
from tasks import picture_values
from tasks import pictures
from tff_ssl.computing import inert
from tff_ssl.evaluation import feature_sets
from tff_ssl.evaluation import stages
from tff_ssl.export import encoder_file
from tff_ssl.reporting import model_card
from tff_ssl.reporting import projection
from tff_ssl.runs import run_config as stored_config
from tff_ssl.storage import files


def embed(
  sources: Sequence[str],
  images: str,
  config: run_config.RunConfig,
  out: pathlib.Path,
  *,
  formats: Sequence[str],
  map_images: int,
  color_by: str | None,
  table: str | None,
) -> None:
  """Encodes images with each encoder, and writes features and a map.

  Args:
    sources: Run folders, or encoder.keras files.
    images: A folder or .tar file with images.
    config: A run, for how pictures are read.
    out: Where the files are written.
    formats: Formats of the features, parquet or csv.
    map_images: Most images on the map.
    color_by: What gives frames on the map their colours; see `picture_values.read`.
    table: A CSV file with such a column, or None.

  Raises:
    ValueError: If an encoder cannot be read or does not read images, no image can, or
      the table has no such column.
  """
  # All are read before the first one encodes anything.
  paths = [_path(source) for source in sources]
  encoders = _encoders(paths)
  with stages.show_progress(stages.StageLines(what='embedding')):
    loaded = {
      title: pictures.load(
        images, encoder.input_shape[1:], task_defaults.reading(config.data, path)
      )
      for (title, encoder), path in zip(encoders.items(), paths, strict=True)
    }
    first = next(iter(loaded.values()))
    for line in first.intake.lines():
      print(f'  {line}')
    values = None
    if color_by is not None:
      own = task_defaults.arguments(config.data)['columns']
      values = picture_values.read(images, first.names, color_by, table, own)
    found = _encode(encoders, loaded)
    out.mkdir(parents=True, exist_ok=True)
    for number, (title, (_, features)) in enumerate(found.items(), 1):
      start = 'features' if len(found) == 1 else f'features_{number}'
      for kind in formats:
        _write(out / f'{start}.{kind}', first.names, features)
      print(
        f'{title}: {len(features):,} images, {features.shape[1]} features, in {start}.*'
      )
    _draw(out, found, images, map_images, values)
    print(f'Embedded: {out}')


def _encode(
  encoders: dict[str, tf.keras.Model], loaded: dict[str, pictures.Pictures]
) -> dict[str, tuple[pictures.Pictures, np.ndarray]]:
  """Returns the pictures in each encoder's size, and their features, by title."""
  found = {}
  for title, encoder in encoders.items():
    own = loaded[title]
    stages.begin(f'encoding {len(own.images):,} images with {title}')
    features = feature_sets.encode(encoder, own.images)
    if not np.all(np.isfinite(features)):
      raise ValueError(f'The features of {title} are not all finite.')
    found[title] = own, features
  return found


def _path(source: str) -> pathlib.Path:
  """Returns the encoder.keras of a run folder, or the file itself."""
  path = pathlib.Path(source)
  if not path.is_dir():
    return path
  stored_config.check_contained(path)
  return path / model_card.ENCODER


def _encoders(paths: Sequence[pathlib.Path]) -> dict[str, tf.keras.Model]:
  """Returns the encoders by title.

  Raises:
    ValueError: If one cannot be read, or does not read images.
  """
  encoders: dict[str, tf.keras.Model] = {}
  for path in paths:
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
    if path.suffix == '.parquet':
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
  out: pathlib.Path,
  found: dict[str, tuple[pictures.Pictures, np.ndarray]],
  source: str,
  map_images: int,
  values: Sequence[str] | None,
) -> None:
  """Writes the map as a page and as a picture.

  Args:
    out: The folder.
    found: Pictures and features by title.
    source: Where the images are from.
    map_images: Most images on the map.
    values: A value of each image, by which frames have colours; None: there are none.
  """
  # Imported only here: on its first import matplotlib writes its cache, and may
  # print a message about it.
  from tff_ssl.reporting import gallery

  first = next(iter(found.values()))[0]
  if len(first.names) < 2:
    print('map: none is drawn for a single image')
    return
  shown = projection.choose(len(first.names), map_images)
  # With many images this takes most of the time, and prints nothing meanwhile.
  print(f'map: laying out {len(shown):,} images with t-SNE', flush=True)
  panels = [gallery.panel(title, f[shown]) for title, (_, f) in found.items()]
  # The largest pictures show the most.
  loaded = max((p for p, _ in found.values()), key=lambda p: p.images.shape[1])
  images = loaded.images[shown]
  names = [first.names[k] for k in shown]
  note = f'{len(shown):,} of the {len(first.names):,} images of {source}'
  colors = None if values is None else gallery.coloring([values[k] for k in shown])
  page = gallery.build_page(panels, names, images, note, colors)
  files.write(out / 'map.html', page)
  gallery.draw(panels, images, note, out / 'map.png', colors)
