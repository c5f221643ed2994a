r"""Exports the encoder of a run to Keras, SavedModel, TFLite and ONNX.

  python -m binaries.export --run=runs/digits --out=digits_encoder
  python -m binaries.export --run=runs/digits --out=digits_encoder \
      --to=keras,tflite --classifier
  python -m binaries.export --run=runs/digits --out=digits_model --finetuned
  python -m binaries.export --run=runs/fedavg --out=on_device --to=tflite_training
  python -m binaries.export --run=runs/private --out=for_others --give_away

The exported model takes images as bytes, or unscaled rows of a table, and returns
`features`. With --classifier it also returns `probabilities` of a linear classifier,
which is fitted on all training labels of the run's task. With --finetuned both come
from an encoder trained end to end on these labels, like the method `finetune`. Each
file is read back and compared with the encoder that is evaluated. `tflite_training` is
one local step of the run's objective, for training on a device, with signatures train,
infer, save and restore. The folder --out also has `encoder.md`, the model card, with
digests of all files. docs/take_away.md says how to use the files.

--give_away makes a folder with just what may be given away of a run: the encoder, its
card and the numbers that were released (docs/give_away.md). A classifier and a
fine-tuned encoder are fitted on raw examples and labels, so that of a private run they
are exported only with --unprotected, and the card then promises nothing.
"""

from collections.abc import Callable
import functools
import json
import pathlib
from typing import NamedTuple

from absl import flags
from absl import logging
import numpy as np
import tensorflow as tf

from binaries.experiment import exporting
from binaries.flags import common
from binaries.flags import outputs
from binaries.flags import program
from tasks import task_types
from tff_ssl.evaluation import feature_sets
from tff_ssl.evaluation import linear_probe
from tff_ssl.export import encoder_file
from tff_ssl.export import exports
from tff_ssl.reporting import giving
from tff_ssl.reporting import model_card
from tff_ssl.runs import run_config
from tff_ssl.runs.privacy import disclosure
from tff_ssl.storage import files

_CLASSIFIER = flags.DEFINE_bool(
  'classifier',
  False,
  "For export: fit a linear classifier on the task's training labels, and export it.",
)
_FINETUNED = flags.DEFINE_bool(
  'finetuned',
  False,
  "For export: train the encoder and a linear classifier end to end on the task's "
  'training labels (--finetune_steps, --finetune_learning_rate), and export both.',
)
_GIVE_AWAY = flags.DEFINE_bool(
  'give_away',
  False,
  'For export: write what may be given away of a run, and nothing else: its encoder, '
  'the card, and the numbers that a private run has released.',
)
_UNPROTECTED = flags.DEFINE_bool(
  'unprotected',
  False,
  'For export: allow --classifier and --finetuned for a private run, although its '
  'privacy does not hold for what they fit; the card then promises none.',
)
_TRAINING = 'tflite_training'
_DEFAULT = (exports.KERAS, exports.SAVED_MODEL, exports.TFLITE)
_STEP = 'training.tflite'
_LABELS = 'labels.json'
# Relative to the largest compared number, if that is above 1.
_TOLERANCE = 1e-4
_OWN = ('run', 'to', 'out', 'classifier', 'finetuned', 'unprotected', 'give_away')
# The flags that --help lists.
TAKEN = (*_OWN, *exporting.MAY_BE_GIVEN, 'partition_encoder', 'scaling')

# What each flag names.
REQUIRED = {'run': 'the folder of a run', 'out': 'a folder'}


def main() -> None:
  """Exports the encoder."""
  _check_given()
  if not logging.level_debug():
    # TensorFlow logs for every saved function how its names are written.
    logging.set_verbosity(logging.WARNING)
  folder = pathlib.Path(outputs.RUN.value)
  out = outputs.new_folder()
  wanted = _formats()
  formats = [name for name in wanted if name != _TRAINING]
  run_config.read(folder)
  encoder = encoder_file.read(folder / model_card.ENCODER)
  exporting.check_promise(folder)
  if _GIVE_AWAY.value:
    _give_away(folder, out)
    return
  task = None
  fits = _CLASSIFIER.value or _FINETUNED.value
  unprotected = exporting.unprotected(folder, fits, _UNPROTECTED.value)
  is_table = len(encoder.input_shape) == 2
  if fits or is_table or _TRAINING in wanted:
    task = exporting.load_task(folder)
  made = _make(task, encoder)
  notes = list(made.notes)
  if notes:
    print(notes[0])
  step = None
  if task is not None and _TRAINING in wanted:
    step = exporting.local_step(folder, task)
  out.mkdir(parents=True, exist_ok=True)
  written = _write(out, formats, task, made, notes, giving.is_private(folder))
  if made.fitted is not None and task is not None:
    with files.atomic(out / _LABELS) as aside:
      aside.write_text(json.dumps(task.label_names, indent=2) + '\n')
    written.append(out / _LABELS)
  if step is not None:
    with files.atomic(out / _STEP) as aside:
      aside.write_bytes(step)
    written.append(out / _STEP)
    notes.append(f'{_STEP}: one local step; signatures train, infer, save, restore')
    print(notes[-1])
  _write_card(folder, out, written, notes, unprotected)
  print(f'Exported: {out}')


def _give_away(folder: pathlib.Path, out: pathlib.Path) -> None:
  """Writes what may be given away, and says of each file of the run what it is."""
  found = giving.give(folder, out)
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


class _Made(NamedTuple):
  """The model to export, and the reference for comparing each file.

  Attributes:
    encoder: The run's encoder, or the fine-tuned one.
    fitted: The classifier, if there is one.
    encode: Maps inputs to the features that the encoder must give.
    notes: Notes on the training, for the card.
  """

  encoder: tf.keras.Model
  fitted: linear_probe.LinearClassifier | None
  encode: Callable[[np.ndarray], np.ndarray]
  notes: tuple[str, ...] = ()


def _make(task: task_types.Task | None, encoder: tf.keras.Model) -> _Made:
  """Trains the models that the flags ask for.

  Args:
    task: The run's task, if it was loaded.
    encoder: The run's encoder.
  """
  own: Callable[[np.ndarray], np.ndarray]
  own = functools.partial(feature_sets.encode, encoder)
  if task is None or not (_CLASSIFIER.value or _FINETUNED.value):
    return _Made(encoder, None, own)
  notes = []
  if _FINETUNED.value:
    tuned = exporting.finetuned(task, encoder, task.field)
    encoder, fitted, own = tuned.model, tuned.head, tuned.encode
    notes.append(
      f'features and probabilities: {tuned.about}; classes in the order of {_LABELS}'
    )
  else:
    fitted, accuracy = exporting.classifier(task, encoder, task.field)
    notes.append(
      f'probabilities: logistic regression on all training labels, {accuracy:.1%} of '
      'the test examples classified correctly; classes in the order of ' + _LABELS
    )
  if task.case_level:
    notes.append(
      'probabilities: fitted on the mean features of cases; for a single image they '
      'are less certain'
    )
  return _Made(encoder, fitted, own, tuple(notes))


def _check_given() -> None:
  """Raises ValueError if a flag of the run is given, or a needed flag is missing."""
  for name in common.given():
    if name not in TAKEN:
      raise ValueError(
        f'--{name} is given; binaries.export takes only {", ".join(TAKEN)}; the run '
        'provides the rest.'
      )
  program.check_required(REQUIRED)


def _write_card(
  folder: pathlib.Path,
  out: pathlib.Path,
  written: list[pathlib.Path],
  notes: list[str],
  unprotected: str | None,
) -> None:
  """Writes the model card, with digests of all files, including those in folders."""
  found = {
    path.relative_to(out).as_posix(): path
    for top in written
    for path in ([top] if top.is_file() else sorted(top.rglob('*')))
    if path.is_file()
  }
  hashed = {model_card.ENCODER: folder / model_card.ENCODER, **found}
  with files.atomic(out / model_card.NAME) as aside:
    text = model_card.build(folder, hashed, notes, unprotected)
    aside.write_text(text, encoding='utf-8')


def _formats() -> list[str]:
  """Returns the formats that the flag names.

  Raises:
    ValueError: If one is unknown, or needs a package that is not installed.
  """
  wanted = list(dict.fromkeys(outputs.TO.value or _DEFAULT))
  for name in wanted:
    if name not in (*exports.FORMATS, _TRAINING):
      raise ValueError(
        f'to has {name!r}; it must be one of '
        f'{", ".join((*exports.FORMATS, _TRAINING))}.'
      )
  if wanted != [_TRAINING]:
    exports.check([name for name in wanted if name != _TRAINING])
  if _GIVE_AWAY.value:
    for flag in (outputs.TO, _CLASSIFIER, _FINETUNED, _UNPROTECTED):
      if flag.value:
        raise ValueError(
          f'--{flag.name} is given with --{_GIVE_AWAY.name}, which copies files of the '
          'run and makes none.'
        )
  if _UNPROTECTED.value and not (_CLASSIFIER.value or _FINETUNED.value):
    raise ValueError(
      f'--{_UNPROTECTED.name} is given without --{_CLASSIFIER.name} or '
      f'--{_FINETUNED.name}; it is for them only.'
    )
  for flag in (_CLASSIFIER, _FINETUNED):
    if flag.value and wanted == [_TRAINING]:
      raise ValueError(
        f'--{flag.name} is given with --to={_TRAINING}, which it does not change.'
      )
  if _CLASSIFIER.value and _FINETUNED.value:
    raise ValueError(
      '--classifier and --finetuned are both given; an export has one classifier, '
      'either on the encoder of the run or trained together with it.'
    )
  return wanted


def _write(
  out: pathlib.Path,
  formats: list[str],
  task: task_types.Task | None,
  made: _Made,
  notes: list[str],
  is_private: bool,
) -> list[pathlib.Path]:
  """Writes the formats, and compares each with the encoder that is evaluated."""
  field = 'image' if task is None else task.field
  own = exporting.compared(task, made.encoder, field, is_private)
  expected = exporting.expected(made.encode, made.fitted, own.scaled)
  scaling = exporting.scaling(task, made.encoder)
  model = exports.with_preprocessing(made.encoder, scaling, made.fitted)
  # The card's first lines are about encoder.keras, whose inputs are scaled.
  shape = ', '.join(map(str, ['n', *model.input_shape[1:]]))
  notes.append(
    f'model.* and savedmodel take `{exports.INPUT}`, {model.inputs[0].dtype.name} '
    f'[{shape}], and scale them'
  )
  written = []
  for name in formats:
    path = exports.write(model, name, out)
    gap = exports.largest_difference(exports.load(name, path)(own.inputs), expected)
    line = (
      f'{path.name}: within {gap:.1e} of the run on {len(own.inputs)} {own.what} '
      f'(allowed: {_TOLERANCE:g})'
    )
    if not gap <= _TOLERANCE:
      raise ValueError(f'{line}: the format {name} does not reproduce the run.')
    notes.append(line)
    print(line, flush=True)
    written.append(path)
  return written


if __name__ == '__main__':
  common.run(main, TAKEN)
