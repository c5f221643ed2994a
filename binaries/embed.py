r"""Embeds a folder of images: features of each image, and a map to explore them.

  python -m binaries.embed --run=runs/ham --images=photos --out=embedded
  python -m binaries.embed --run=runs/ham --beside=runs/other --images=photos --out=both
  python -m binaries.embed --run=encoder.keras --images=photos.tar --out=embedded

The encoder comes from a run, or from a file encoder.keras with its card encoder.json
next to it. The images come from a folder or .tar and its subfolders. They are made
squares of the encoder's size, by fit and pixel_range of the run or of --data;
unreadable ones are named and left out. Nothing is written into their folder: decoded
images are in the user's cache ($XDG_CACHE_HOME or ~/.cache). The folder --out has

  features.parquet, features.csv   a row per image: its file's name, and the features
  map.html                         a map with thumbnails; on a click the most similar
  map.png                          the same as a picture

With --beside the map shows two encoders side by side, and each encoder's features are
in separate files. With --color_by frames on the map are coloured by a column of a table
that names the pictures (--table, or the manifest among them), such as label or
client_id, or by the `folder` that each is in. If there are more than --map_images
images, the map shows a random sample of them, the same for both encoders.
"""

import dataclasses
import pathlib
from typing import Annotated, Literal

from binaries.config import changing
from binaries.config import command_line
from binaries.config import data as data_lib
from binaries.config import outputs
from binaries.config import run_config
from binaries.launching import program
from tff_ssl.computing import kinds
from tff_ssl.runs import run_config as stored_config
from tff_ssl.settings import methods
from tff_ssl.settings import objectives

_READING = ('fit', 'pixel_range', 'columns')


@dataclasses.dataclass(frozen=True)
class Options:
  """What is embedded, with what, and what is written.

  Attributes:
    run: The folder of a run, or an encoder.keras.
    images: A folder or .tar file with images.
    out: A folder, new or not that of a run.
    beside: Another run or encoder.keras, for a map side by side.
    formats: Formats to write: parquet, csv or both.
    map_images: Most images on the map.
    color_by: A column of the table, or folder: frames on the map have colours by it.
    table: A CSV file that names pictures; none: manifest.csv among the pictures.
    data: Changes of how pictures are read, as in fit=pad,pixel_range=-1000/400; or the
      table's column of pictures, as in columns=image=Photo.
  """

  run: str
  images: str
  out: str
  beside: str | None = None
  formats: tuple[Literal['parquet', 'csv'], ...] = ('parquet', 'csv')
  map_images: Annotated[int, kinds.Range(2, 5000)] = 1000
  color_by: str | None = None
  table: str | None = None
  data: command_line.Changes = command_line.UNCHANGED


def main(options: Options) -> None:
  """Embeds the images."""
  out = outputs.new_folder(options.out)
  if out.resolve().is_relative_to(pathlib.Path(options.images).resolve()):
    raise ValueError(
      f'out is {str(out)!r}; it must be outside the folder of the images, '
      f'{options.images}, of which map.png would be one.'
    )
  if options.table is not None and options.color_by is None:
    raise ValueError('--table is given without --color_by, which names a column of it.')
  config = _config(options)
  # TensorFlow is imported only now, when the command line has been checked.
  from binaries.experiment import embedding

  embedding.embed(
    [path for path in (options.run, options.beside) if path],
    options.images,
    config,
    out,
    formats=tuple(dict.fromkeys(options.formats)) or ('parquet', 'csv'),
    map_images=options.map_images,
    color_by=options.color_by,
    table=options.table,
  )


def _config(options: Options) -> run_config.RunConfig:
  """Returns a run on pictures read as those of the run, with changes."""
  command_line.check_fields('data', options.data, _READING)
  data = _data(options.run)
  if options.beside is not None:
    _check_alike(options, data, _data(options.beside))
  config = run_config.RunConfig(methods.FedAvg(), objectives.Simclr(), data=data)
  return changing.changed(config, {'data': options.data})


def _check_alike(options: Options, data: data_lib.Data, other: data_lib.Data) -> None:
  """Refuses two encoders that read pictures in different ways, if none is given."""
  # Only here: it imports NumPy.
  from binaries.config import task_defaults

  given = {name for text in options.data for name in kinds.given(text)}
  ways = [task_defaults.reading(each) for each in (data, other)]
  for name in ('fit', 'pixel_range'):
    own, theirs = (kinds.value_text(getattr(way, name)) for way in ways)
    if own != theirs and name not in given:
      raise ValueError(
        f'{options.run} reads pictures with {name}={own}, and {options.beside} with '
        f'{name}={theirs}; give the one that both read them with as --data={name}=..., '
        'or embed them one by one.'
      )


def _data(run: str) -> data_lib.Data:
  """Returns how pictures were read for an encoder."""
  source = pathlib.Path(run)
  if (source / stored_config.NAME).is_file():
    return changing.read(run, keep_paths=False).data
  # Of what was given away, or of a client's encoder, there may be the card alone.
  card = source / 'encoder.json' if source.is_dir() else source.with_suffix('.json')
  if not card.is_file():
    return data_lib.Data()
  # Only here: it imports NumPy.
  from binaries.config import task_defaults

  (own,) = task_defaults.of_card(card, {name: name for name in ('fit', 'pixel_range')})
  return own


if __name__ == '__main__':
  program.run('embed', resumes=False)
