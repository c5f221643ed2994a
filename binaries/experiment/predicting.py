"""Classes of pictures by a run, or by a classifier alone, for `binaries.predict`."""

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
from tff_ssl.evaluation import recalls
from tff_ssl.evaluation import stages
from tff_ssl.export import classifier_folder
from tff_ssl.export import encoder_file
from tff_ssl.export import exports
from tff_ssl.reporting import giving
from tff_ssl.reporting import model_card
from tff_ssl.storage import files

# Classes on a line.
_SHOWN = 2
# Pictures that a model takes at a time.
_BATCH = 256


class Predicted(NamedTuple):
  """What is known of n pictures.

  Attributes:
    names: Names of their files.
    probabilities: float [n, classes].
    classes: int [n], the class that each counts as.
    trained_on: For each, whether it was trained on; None: it is not known.
    nearest: For each picture, the most similar labelled training pictures, the nearest
      first, as 'name (class)'.
  """

  names: Sequence[str]
  probabilities: np.ndarray
  classes: np.ndarray
  trained_on: Sequence[bool | None]
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
  """Prints, and writes if asked, the classes of pictures, by a run.

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
    stages.begin(f'encoding {len(read.names):,} pictures')
    found = model.outputs(read.pixels)
    similar = _nearest(task, model, found[exports.FEATURES], nearest)
  known = {task.digests[place] for place in task.train.example_id} if task.files else ()
  probabilities = found[exports.PROBABILITIES]
  predicted = Predicted(
    read.names,
    probabilities,
    recalls.classes(probabilities, task.label_names),
    [digest in known if task.files else None for digest in read.digests],
    similar,
  )
  for note in model.notes:
    print(note)
  if giving.is_private(folder):
    print(
      'No privacy is guaranteed for what follows: it was fitted on the raw examples '
      'and labels of all clients, and names some of them. Do not give it away.'
    )
  _tell(predicted, task.label_names, out)


def predict_by(
  folder: str | os.PathLike[str], images: Sequence[str], out: str | None
) -> None:
  """Prints, and writes if asked, the classes of pictures, by an exported classifier.

  Args:
    folder: What `binaries.export` made; it may be a stranger's.
    images: Pictures, folders and .tar files.
    out: A .csv file, or None.

  Raises:
    ValueError: If it is no classifier of pictures, or no picture can be read.
  """
  classifier = classifier_folder.read(folder)
  card = pathlib.Path(folder, classifier_folder.CARD)
  (data,) = task_defaults.of_card(card, {'fit': 'fit', 'pixel_range': 'pixel_range'})
  reading = task_defaults.reading(data, pathlib.Path(folder, classifier_folder.MODEL))
  with stages.show_progress(stages.StageLines(what='predicting')):
    read = _read(images, classifier.model.input_shape[1:], reading)
    stages.begin(f'encoding {len(read.names):,} pictures')
    found = [
      classifier.model(read.pixels[start : start + _BATCH])
      for start in range(0, len(read.names), _BATCH)
    ]
  probabilities = np.concatenate([each[exports.PROBABILITIES] for each in found])
  predicted = Predicted(
    read.names,
    probabilities,
    recalls.classes(probabilities, classifier.label_names, classifier.threshold),
    [classifier.was_trained_on(digest) for digest in read.digests],
    [[] for _ in read.names],
  )
  print(*recalls.lines(classifier.tested, classifier.threshold), sep='\n')
  if classifier.marks is None:
    print('not known: whether it was trained on one of these pictures')
  _tell(predicted, classifier.label_names, out)


class _Read(NamedTuple):
  """Pictures that could be read: names, pixels, and digests of their files."""

  names: list[str]
  pixels: np.ndarray
  digests: list[str]


def _read(
  images: Sequence[str], shape: tuple[int, int, int], reading: images_lib.Reading
) -> _Read:
  names: list[str] = []
  digests: list[str] = []
  pixels: list[np.ndarray] = []
  for path in images:
    loaded = pictures.load(path, shape, reading)
    for line in loaded.intake.lines():
      print(f'  {line}')
    names += loaded.names
    digests += loaded.digests
    pixels.append(loaded.images)
  return _Read(names, np.concatenate(pixels), digests)


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


def _tell(predicted: Predicted, label_names: Sequence[str], out: str | None) -> None:
  """Prints a line for each picture, and writes the table if it is asked for."""
  names = [inert.line(name) for name in label_names]
  for name, row, chosen, known, nearest in zip(*predicted, strict=True):
    likely = [k for k in np.argsort(-row, kind='stable') if k != chosen]
    shown = [chosen, *likely][:_SHOWN]
    line = f'{name}: {", ".join(f"{names[k]} {row[k]:.1%}" for k in shown)}'
    if nearest:
      line += f'; nearest: {", ".join(nearest)}'
    print(f'{line}{"; it was trained on this picture" if known else ""}')
  if out is not None:
    _write(pathlib.Path(out), predicted, label_names)
    print(f'Predicted: {out}')


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
    writer.writerow(map(inert.cell, [*header, 'nearest', 'trained on']))
    for name, row, chosen, known, nearest in zip(*predicted, strict=True):
      cells = [inert.cell(name), inert.cell(label_names[chosen]), *map(str, row)]
      said = '' if known is None else ('no', 'yes')[known]
      writer.writerow([*cells, inert.cell('; '.join(nearest)), said])
