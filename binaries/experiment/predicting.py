"""Classes of pictures by a run's encoder and labels, for `binaries.predict`."""

from collections.abc import Sequence
import csv
import os
import pathlib
from typing import NamedTuple

import numpy as np
from sklearn import neighbors

from binaries.config import run_config
from binaries.config import task_defaults
from binaries.experiment import exporting
from tasks import images as images_lib
from tasks import pictures
from tasks import task_types
from tff_ssl.computing import inert
from tff_ssl.evaluation import stages
from tff_ssl.export import encoder_file
from tff_ssl.export import exports
from tff_ssl.reporting import giving
from tff_ssl.reporting import model_card
from tff_ssl.storage import files

# Classes on a line.
_SHOWN = 2


class Predicted(NamedTuple):
  """What is known of n pictures.

  Attributes:
    names: Names of their files.
    probabilities: float [n, classes].
    nearest: For each picture, the most similar labelled training pictures, the nearest
      first, as 'name (class)'.
  """

  names: Sequence[str]
  probabilities: np.ndarray
  nearest: Sequence[Sequence[str]]


def predict(
  folder: str | os.PathLike[str],
  images: Sequence[str],
  config: run_config.RunConfig,
  *,
  out: str | None,
  nearest: int,
  end_to_end: bool,
) -> None:
  """Prints, and writes if asked, the classes of pictures.

  Args:
    folder: The run folder.
    images: Pictures, folders and .tar files.
    config: The run, with changes of its data and of fine-tuning.
    out: A .csv file, or None.
    nearest: Number of similar training pictures to name.
    end_to_end: Whether the encoder is fine-tuned on the labels.

  Raises:
    ValueError: If the run has no encoder of images, other data or no labels, or no
      picture can be read.
  """
  folder = pathlib.Path(folder)
  encoder = encoder_file.read(folder / model_card.ENCODER)
  if len(encoder.input_shape) != 4:
    raise ValueError(
      f'{folder} has an encoder for inputs of shape {encoder.input_shape[1:]}; it must '
      'be one for images.'
    )
  with stages.show_progress(stages.StageLines(what='predicting')):
    # Pictures first: reading and encoding the training examples takes longer.
    reading = task_defaults.reading(config.data, folder / model_card.ENCODER)
    read = _read(images, encoder.input_shape[1:], reading)
    task = exporting.load_task(folder, config)
    model = exporting.fitted(config, task, encoder, end_to_end)
    stages.begin(f'encoding {len(read[0]):,} pictures')
    found = model.outputs(read[1])
    similar = _nearest(task, model, found[exports.FEATURES], nearest)
  predicted = Predicted(read[0], found[exports.PROBABILITIES], similar)
  for note in model.notes:
    print(note)
  if giving.is_private(folder):
    print(
      'No privacy is guaranteed for what follows: it was fitted on the raw examples '
      'and labels of all clients, and names some of them. Do not give it away.'
    )
  _show(predicted, task.label_names)
  if out is not None:
    _write(pathlib.Path(out), predicted, task.label_names)
    print(f'Predicted: {out}')


def _read(
  images: Sequence[str], shape: tuple[int, int, int], reading: images_lib.Reading
) -> tuple[list[str], np.ndarray]:
  """Returns names and pixels of all pictures that can be read."""
  names: list[str] = []
  pixels: list[np.ndarray] = []
  for path in images:
    loaded = pictures.load(path, shape, reading)
    for line in loaded.intake.lines():
      print(f'  {line}')
    names += loaded.names
    pixels.append(loaded.images)
  return names, np.concatenate(pixels)


def _nearest(
  task: task_types.Task, model: exporting.Model, features: np.ndarray, count: int
) -> list[list[str]]:
  """Returns the most similar labelled training examples of each picture."""
  labelled = np.flatnonzero(task.train.label >= 0)
  count = min(count, len(labelled))
  if not count:
    return [[] for _ in features]
  stages.begin(f'encoding {len(labelled):,} labelled training examples')
  known = model.encode(task.train[task.field][labelled])
  search = neighbors.NearestNeighbors(
    n_neighbors=count, algorithm='brute', metric='cosine'
  )
  found = search.fit(known).kneighbors(features, return_distance=False)
  names = task.names(task.train)
  classes = [task.label_names[label] for label in task.train.label]
  return [[f'{names[k]} ({classes[k]})' for k in labelled[row]] for row in found]


def _show(predicted: Predicted, label_names: Sequence[str]) -> None:
  """Prints a line for each picture."""
  for name, row, nearest in zip(*predicted, strict=True):
    likely = np.argsort(-row, kind='stable')[:_SHOWN]
    classes = ', '.join(f'{label_names[k]} {row[k]:.1%}' for k in likely)
    similar = f'; nearest: {", ".join(nearest)}' if nearest else ''
    print(f'{name}: {classes}{similar}')


def _write(
  path: pathlib.Path, predicted: Predicted, label_names: Sequence[str]
) -> None:
  """Writes a row for each picture: its class, the probability of each, the nearest."""
  with (
    files.atomic(path) as aside,
    aside.open('w', newline='', encoding='utf-8') as file,
  ):
    writer = csv.writer(file)
    header = ['image', 'class', *(f'probability of {each}' for each in label_names)]
    writer.writerow(map(inert.cell, [*header, 'nearest']))
    for name, row, nearest in zip(*predicted, strict=True):
      chosen = label_names[int(np.argmax(row))]
      cells = [inert.cell(name), inert.cell(chosen), *map(str, row)]
      writer.writerow([*cells, inert.cell('; '.join(nearest))])
