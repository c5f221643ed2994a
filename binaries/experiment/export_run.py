"""Writes the files of an export, for `binaries.export`."""

from collections.abc import Mapping, Sequence
import pathlib
from typing import NamedTuple

from absl import logging
import numpy as np
import tensorflow as tf

from binaries.config import run_config
from binaries.config import task_defaults
from binaries.experiment import classifier_quality
from binaries.experiment import encoder_card
from binaries.experiment import exporting
from tasks import images
from tasks import task_types
from tff_ssl.encoders import network as network_lib
from tff_ssl.evaluation import feature_sets
from tff_ssl.evaluation import intervals
from tff_ssl.evaluation import recalls
from tff_ssl.export import classifier_folder
from tff_ssl.export import comparison
from tff_ssl.export import encoder_file
from tff_ssl.export import exports
from tff_ssl.export import squares
from tff_ssl.reporting import giving
from tff_ssl.reporting import model_card
from tff_ssl.runs import class_names
from tff_ssl.runs import run_config as stored_config
from tff_ssl.runs.privacy import disclosure
from tff_ssl.storage import files

_DEFAULT = (exports.KERAS, exports.SAVED_MODEL, exports.TFLITE)
# Entries of the encoder's card that its classifier has too, or how they begin.
_SAID = (
  'encoder',
  'algorithm',
  'task',
  'data',
  'rounds',
  'parameters',
  encoder_file.NETWORK,
  'fit',
  'pixel_range',
  task_defaults.MEASURED,
)
_OF_CLASSIFIERS = (
  classifier_folder.LABELS,
  classifier_folder.CARD,
  classifier_folder.CODE,
  classifier_folder.TRAINED_ON,
)
# What becomes of a picture that is no square, by the way in which it becomes one.
_FITS = {
  images.CROP: 'its central square',
  images.PAD: 'all of it between black bars',
  images.STRETCH: 'all of it, in other proportions',
}
_HANDED_OVER = (
  f'{classifier_folder.CODE} says the class of pictures, with Keras and Pillow alone; '
  'this folder is all that `python -m binaries.predict --model=FOLDER` needs'
)


class Classifier(NamedTuple):
  """The classifier of an export.

  Attributes:
    end_to_end: Whether the encoder is trained too.
    wanted: The sensitivity that a threshold is chosen for, if there is one.
    marks: Whether training pictures can be recognised.
  """

  end_to_end: bool
  wanted: classifier_quality.Wanted | None = None
  marks: bool = False


def export(
  folder: pathlib.Path,
  out: pathlib.Path,
  config: run_config.RunConfig,
  *,
  formats: Sequence[str],
  classifier: Classifier | None,
  allowed: bool,
) -> None:
  """Exports the encoder of a run.

  Args:
    folder: The run folder.
    out: Where the files are written; it may have the same files of an earlier export.
    config: The run, with changes of its data and of fine-tuning.
    formats: The formats; empty: those that need no other package.
    classifier: What is fitted on the training labels, if anything.
    allowed: Whether this may be done with the labels of a private run.

  Raises:
    ValueError: If a format cannot be written or does not reproduce the run, the run has
      no encoder, or other data, or `out` has other files of an earlier export.
  """
  wanted = tuple(dict.fromkeys(formats)) or _DEFAULT
  exports.check(wanted)
  if not logging.level_debug():
    # TensorFlow logs for every saved function how its names are written.
    logging.set_verbosity(logging.WARNING)
  path = folder / model_card.ENCODER
  encoder, network = encoder_file.read(path), encoder_file.rebuild(path)
  is_table = len(encoder.input_shape) == 2
  picture_fit = None
  if not is_table and encoder.input_shape[1] == encoder.input_shape[2]:
    picture_fit = task_defaults.reading(config.data).fit
  # It is handed over as a folder that works by itself.
  whole = classifier if exports.KERAS in wanted and picture_fit is not None else None
  _check_out(
    out,
    {
      **{exports.NAMES[name]: True for name in wanted},
      squares.CODE: exports.KERAS in wanted and picture_fit is not None,
      classifier_folder.LABELS: classifier is not None,
      classifier_folder.CARD: whole is not None,
      classifier_folder.CODE: whole is not None,
      classifier_folder.TRAINED_ON: whole is not None and whole.marks,
    },
  )
  task = None
  unprotected = exporting.unprotected(folder, classifier is not None, allowed)
  if classifier or is_table:
    task = exporting.load_task(folder, config)
  own = feature_sets.with_fixed_params(encoder)
  made, quality = exporting.Model(encoder, None, own), None
  if task is not None and classifier is not None:
    _check_classifier(task, classifier, whole is not None)
    made = exporting.fitted(config, task, encoder, classifier.end_to_end)
    quality = classifier_quality.measure(task, made, classifier.wanted)
  notes = list(made.notes)
  if quality is not None:
    notes[0] += f'; classes in the order of {classifier_folder.LABELS}'
    print(*notes, *recalls.lines(*quality), sep='\n')
  if whole is not None:
    notes.append(_HANDED_OVER)
  out.mkdir(parents=True, exist_ok=True)
  files.remove_asides(out)
  # The card of an earlier export says nothing of the files that are now written.
  (out / model_card.NAME).unlink(missing_ok=True)
  field = 'image' if task is None else task.field
  inputs = exporting.compared(
    task, made.encoder, network, field, giving.is_private(folder), picture_fit
  )
  written = _write(out, wanted, task, made, network, notes, inputs, picture_fit)
  shape, said = made.encoder.input_shape[1:], {}
  if task is not None and classifier is not None and quality is not None:
    written.append(class_names.write(out, task.label_names))
    if whole is not None:
      digests = [task.digests[k] for k in task.train.example_id] if whole.marks else []
      written += classifier_folder.write(out, _about(folder), shape, *quality, digests)
      # As whoever receives it does.
      classifier_folder.read(out)
    said = {**_words(task, classifier, shape, picture_fit), **quality._asdict()}
  _write_card(folder, out, written, notes, unprotected, said)
  print(f'Exported: {out}')


def _check_classifier(
  task: task_types.Task, classifier: Classifier, is_whole: bool
) -> None:
  """Refuses a threshold or marks that the task, or the formats, cannot have."""
  classifier_quality.check(task, classifier.wanted)
  if classifier.marks and not (is_whole and task.files is not None):
    raise ValueError(
      f'--digests is given with the task {task.name!r}; it must be one of files of '
      f'pictures, exported in the format {exports.KERAS}.'
    )


def _words(
  task: task_types.Task,
  classifier: Classifier,
  shape: Sequence[int],
  picture_fit: str | None,
) -> dict[str, str]:
  """Returns what a card says of a classifier before its numbers."""
  names = task.label_names
  size = ' x '.join(map(str, shape[:2]))
  takes = f'pictures of {size} pixels'
  if len(shape) == 1:
    takes = f'rows of {size} numbers, as they were measured'
  elif picture_fit is not None:
    takes = f'pictures of any size ({_FITS[picture_fit]} becomes {size} pixels)'
  made = 'A linear classifier was fitted on the features of an encoder'
  if classifier.end_to_end:
    made = 'An encoder and a linear classifier were trained end to end'
  count = np.sum(task.train.label >= 0)
  return {
    'classes': ', '.join(names)
    if len(names) <= intervals.MOST_CLASSES
    else f'{len(names):,} classes, named in {classifier_folder.LABELS}',
    'takes': takes,
    'made': f'{made}, by {count:,} labelled training examples of {task.name}',
  }


def _about(folder: pathlib.Path) -> dict[str, object]:
  """Returns what of a run's encoder is said of its classifier too."""
  known = files.read_json(folder / model_card.CARD)
  return {name: value for name, value in known.items() if name.startswith(_SAID)}


def give_away(folder: pathlib.Path, out: pathlib.Path) -> None:
  """Writes what may be given away, and says of each file of the run what it is.

  Args:
    folder: The run folder.
    out: A new folder.

  Raises:
    ValueError: If the run has no encoder.
  """
  encoder_file.read(folder / model_card.ENCODER)
  # A run that ends replaces the encoder, then its card.
  with stored_config.locked(folder, reads=True):
    found, left_out = giving.give(folder, out, encoder_card.PUBLIC)
  if left_out:
    print(
      f'left out of {disclosure.NUMBERS}: the last {left_out} rounds, which came after '
      'the encoder, and which its card does not count'
    )
  if not giving.is_private(folder):
    print(
      f'{folder} is no private run: no noise was added, and nothing is guaranteed, of '
      f'the encoder and the numbers either: {", ".join(found.public)}.'
    )
    print(f'To give away: {out}')
    return
  for name, rule in found.public.items():
    print(f'{name}: {rule.kind.value}, {rule.why}')
  for what, rules in (
    (f'left out of {disclosure.NUMBERS}', giving.columns_of(folder).private),
    ('left with the run', found.private),
  ):
    # Files in a folder have one rule.
    named = {rule.name: rule.why for rule in rules.values()}
    for name, why in named.items():
      print(f'{what}: {name}: {why}')
  print(f'To give away: {out}')


def _check_out(out: pathlib.Path, written: Mapping[str, bool]) -> None:
  """Refuses files of an earlier export that stay: the new card would speak for them.

  Args:
    out: The folder.
    written: Whether the export writes a file of this name.

  Raises:
    ValueError: If there is such a file.
  """
  for name in (*exports.NAMES.values(), squares.CODE, *_OF_CLASSIFIERS):
    if not written.get(name) and (out / name).exists():
      raise ValueError(
        f'{out} has {name} of an earlier export, which this one does not write again; '
        f'--out must be a new folder, because {model_card.NAME} speaks for all of it.'
      )


def _write_card(
  folder: pathlib.Path,
  out: pathlib.Path,
  written: list[pathlib.Path],
  notes: list[str],
  unprotected: str | None,
  of_classifier: Mapping[str, object],
) -> None:
  """Writes the model card, with digests of all files, including those in folders."""
  found = {
    path.relative_to(out).as_posix(): path
    for top in written
    for path in ([top] if top.is_file() else sorted(top.rglob('*')))
    if path.is_file()
  }
  text = model_card.build(folder, found, notes, unprotected, classifier=of_classifier)
  files.write(out / model_card.NAME, text)


def _write(
  out: pathlib.Path,
  formats: Sequence[str],
  task: task_types.Task | None,
  made: exporting.Model,
  network: network_lib.Network,
  notes: list[str],
  inputs: exporting.Compared,
  picture_fit: str | None,
) -> list[pathlib.Path]:
  """Writes the formats, and compares each with the encoder that is evaluated."""
  cases = inputs.expected(made)
  is_table = len(made.encoder.input_shape) == 2
  scaling = None
  if task is not None and task.scaling is not None and is_table:
    scaling = exports.Scaling(*task.scaling)
  model = exports.with_preprocessing(made.encoder, scaling, made.fitted)
  notes += _notes(model, picture_fit)
  written = []
  for name in formats:
    path = exports.write(model, name, out, network, picture_fit)
    line = f'{path.name}: not compared with the run, because PyTorch is not installed'
    if exports.can_load(name):
      run = exports.load(name, path, picture_fit is not None)
      line = comparison.check(path.name, run, cases, inputs.what)
    notes.append(line)
    print(line, flush=True)
    written.append(path)
    if name == exports.KERAS and picture_fit is not None:
      written.append(path.with_name(squares.CODE))
  return written


def _notes(model: tf.keras.Model, picture_fit: str | None) -> list[str]:
  """Returns what the files take: the card's first lines are about encoder.keras."""
  shape = ', '.join(map(str, ['n', *model.input_shape[1:]]))
  kind = model.inputs[0].dtype.name
  if picture_fit is None:
    taken = f'`{exports.INPUT}`, {kind} [{shape}], and scale them'
    return [f'model.*, savedmodel and torch_model take {taken}']
  _, size, _, channels = model.input_shape
  any_size = (
    f'savedmodel, torch_model and model.* take `{exports.INPUT}`, {kind} [n, height, '
    f'width, {channels}], resize them to {size} x {size} pixels as in training '
    f'({picture_fit}), and scale them'
  )
  of_keras = (
    f'model.keras alone takes {kind} [{shape}], because Keras 2 and 3 have no layer in '
    f'common that resizes with antialiasing: {squares.CODE} makes such squares'
  )
  return [any_size, of_keras]
