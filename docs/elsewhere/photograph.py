"""Writes the way of a photograph from a folder to its class, for `check.py`.

  python -m docs.elsewhere.photograph build/elsewhere/files
  python -m docs.elsewhere.photograph build/elsewhere/files RUN DATA_DIR PHOTO

A run's encoder is exported with a classifier in every format, and `predict` says the
probabilities of a photograph, which the files must give of its pixels as they are, of
any size. Without a run, one is made of pieces of the two photographs that scikit-learn
brings along.
"""

import csv
import pathlib
import subprocess
import sys

import numpy as np
from PIL import Image
from sklearn import datasets

from tasks import opening
from tff_ssl.export import exports

# Height and width of pieces, and of what is predicted, whose shorter side is four times
# that of a square: with weights of few digits TFLite too, which has no float64, rounds
# every pixel as we do.
_PIECE, _PHOTO = (71, 80), (160, 128)
# The pieces are of the columns before it, the photograph of those behind.
_COLUMN = 480
_SIZE, _ROUNDS = 32, 20


def _write_run(folder: pathlib.Path) -> tuple[pathlib.Path, pathlib.Path, pathlib.Path]:
  """Makes a run on pieces of photographs; returns it, its data, and a photograph."""
  run, data, photo = (folder / name for name in ('run', 'pieces', 'photo.png'))
  found = datasets.load_sample_images()
  for path, pixels in zip(found.filenames, found.images, strict=True):
    label = data / pathlib.Path(path).stem
    label.mkdir(parents=True, exist_ok=True)
    for top in range(0, len(pixels) - _PIECE[0] + 1, _PIECE[0]):
      for left in range(0, _COLUMN, _PIECE[1]):
        piece = pixels[top : top + _PIECE[0], left : left + _PIECE[1]]
        Image.fromarray(piece).save(label / f'{top}_{left}.png')
  first = found.images[0][: _PHOTO[0], _COLUMN : _COLUMN + _PHOTO[1]]
  Image.fromarray(first).save(photo)
  _call(
    'dcco',
    '--task=folder',
    f'--data_dir={data}',
    '--data=folders=class',
    f'--image_size={_SIZE}',
    '--partition=iid:clients=8',
    '--clients_per_round=4',
    f'--rounds={_ROUNDS}',
    f'--run_dir={run}',
  )
  return run, data, photo


def write(
  folder: pathlib.Path, run: pathlib.Path, data: pathlib.Path, photo: pathlib.Path
) -> None:
  """Writes the exports, and `numbers.npz` with the pixels and what is predicted.

  Args:
    folder: A new folder.
    run: The folder of a run.
    data: Where its data are.
    photo: A photograph of 8 bits that is not turned, nor a JPEG of more than four times
      the encoder's size, which `predict` decodes at a fraction of its size.
  """
  found = folder / 'predicted.csv'
  given = f'--run={run}', f'--data_dir={data}'
  formats = f'--formats={",".join(exports.FORMATS)}'
  _call('export', *given, f'--out={folder}', '--classifier', formats)
  _call('predict', *given, f'--images={photo}', f'--out={found}')
  with found.open(newline='') as file:
    (row,) = csv.DictReader(file)
  probabilities = [float(row[name]) for name in row if name.startswith('probability')]
  with Image.open(photo, formats=(*opening.FORMATS,)) as image:
    pixels = np.asarray(image.convert('RGB'))
  np.savez(
    folder / 'numbers.npz',
    raw=pixels[np.newaxis],
    probabilities=np.array([probabilities], np.float32),
  )


def _call(program: str, *flags: str) -> None:
  print(f'python -m binaries.{program} {" ".join(flags)}', flush=True)
  subprocess.run([sys.executable, '-m', f'binaries.{program}', *flags], check=True)


def main(folder: pathlib.Path, *given: str) -> None:
  """Writes both into a folder of `folder`."""
  paths = tuple(map(pathlib.Path, given)) or _write_run(folder / 'photograph')
  write(folder / f'photograph-{paths[0].name}', *paths)


if __name__ == '__main__':
  main(pathlib.Path(sys.argv[1]), *sys.argv[2:])
