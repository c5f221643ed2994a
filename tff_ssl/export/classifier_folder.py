"""A classifier of pictures as a folder that needs neither its run nor its data.

The folder has the model (`model.keras`), the names of its classes (`labels.json`), code
that needs Keras alone (`classify.py` and `square.py`), and `model.json`: the network,
how pictures are read, what the classifier makes of test pictures, and digests of the
other files, by which a damaged one is found.

Whoever receives the folder need not trust it. `read` rebuilds the model from
`model.json` and takes nothing but arrays from the file, as `encoder_file` does; no code
in the folder is executed.

`trained_on.json` is there only if it was asked for. It has a mark for each training
picture, by which the picture is recognised. So it tells anybody who has a picture
whether it was among them. The key of the marks lies beside them, which does not prevent
that; but nobody can compare the marks of two folders, or with digests from elsewhere,
without the pictures.
"""

from collections.abc import Mapping, Sequence
import hmac
import json
import os
import pathlib
import secrets
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tff_ssl.computing import json_kinds
from tff_ssl.computing import kinds
from tff_ssl.encoders import network as network_lib
from tff_ssl.evaluation import linear_probe
from tff_ssl.evaluation import recalls
from tff_ssl.export import encoder_file
from tff_ssl.export import exports
from tff_ssl.export import squares
from tff_ssl.runs import class_names
from tff_ssl.storage import files
from tff_ssl.storage import memory

MODEL = exports.NAMES[exports.KERAS]
CARD, LABELS, CODE = 'model.json', class_names.NAME, 'classify.py'
TRAINED_ON = 'trained_on.json'
# Entries of the card.
_TESTED, _THRESHOLD, _DIGESTS = 'tested', 'threshold', 'files'
# Of `trained_on.json`.
_KEY, _MARKS = 'key', 'pictures'
_MARK_LENGTH = 32
# What a stranger's layers may raise.
_WRONG = (KeyError, TypeError, AttributeError, ValueError, OverflowError)


class Classifier(NamedTuple):
  """A classifier that was read from a folder.

  Attributes:
    model: Maps squares uint8 [n, size, size, channels] to features and probabilities.
    label_names: Names of the classes.
    tested: What it makes of test pictures.
    threshold: Decides between two classes; None: the likelier one counts.
    key: Key of the marks.
    marks: Marks of the training pictures; None: they are not known.
  """

  model: tf.keras.Model
  label_names: tuple[str, ...]
  tested: recalls.Tested
  threshold: recalls.Threshold | None
  key: str = ''
  marks: frozenset[str] | None = None

  def was_trained_on(self, digest: str) -> bool | None:
    """Returns whether a picture was trained on; None: it is not known.

    Args:
      digest: Digest of the content of its file.
    """
    return None if self.marks is None else _mark(self.key, digest) in self.marks


def write(
  folder: str | os.PathLike[str],
  about: Mapping[str, object],
  image_shape: tuple[int, int, int],
  tested: recalls.Tested,
  threshold: recalls.Threshold | None,
  trained_on: Sequence[str] = (),
) -> list[pathlib.Path]:
  """Writes what a folder needs besides the model, its labels and `square.py`.

  Args:
    folder: It has these files.
    about: Entries of the encoder's card: its network, and how pictures are read.
    image_shape: (height, width, channels) of the squares that the model takes.
    tested: What the classifier makes of test pictures.
    threshold: Decides between two classes, if there is one.
    trained_on: Digests of the contents of the training pictures, from which marks are
      made; empty: there are no marks.

  Returns:
    The files.
  """
  folder = pathlib.Path(folder)
  names = class_names.read(folder)
  positive = 0 if threshold is None else names.index(threshold.positive)
  text = squares.template(CODE).render(
    size=image_shape[0],
    channels=image_shape[2],
    threshold=threshold,
    positive=positive,
    other=1 - positive,
  )
  files.write(folder / CODE, text)
  written = [folder / CODE]
  if trained_on:
    key = secrets.token_hex(32)
    # Sorted: their order tells nothing.
    marks = sorted({_mark(key, digest) for digest in trained_on})
    files.write(folder / TRAINED_ON, json.dumps({_KEY: key, _MARKS: marks}) + '\n')
    written.append(folder / TRAINED_ON)
  named = [MODEL, LABELS, squares.CODE, *(path.name for path in written)]
  card = {
    **about,
    'load': f"tf.keras.models.load_model('{MODEL}')",
    _TESTED: kinds.to_json(tested),
    _THRESHOLD: kinds.to_json(threshold),
    _DIGESTS: {name: files.sha256(folder / name) for name in named},
  }
  files.write_json(folder / CARD, card)
  return [*written, folder / CARD]


def read(folder: str | os.PathLike[str]) -> Classifier:
  """Reads a classifier, perhaps a stranger's, without executing anything.

  Args:
    folder: From `write`; `trained_on.json` may have been removed.

  Raises:
    ValueError: If it is no such folder, or a file is missing or damaged.
  """
  folder = pathlib.Path(folder)
  if not (folder / CARD).is_file():
    raise ValueError(
      f'{folder} has no {CARD}; it must be a folder that binaries.export made with '
      '--classifier or --finetuned, of pictures and in the format keras.'
    )
  files.check_contained(folder)
  card, where = files.read_json(folder / CARD), str(folder / CARD)
  try:
    tested = json_kinds.from_json(recalls.Tested, card[_TESTED], where)
    threshold = card[_THRESHOLD]
    if threshold is not None:
      threshold = json_kinds.from_json(recalls.Threshold, threshold, where)
    digests = dict(card[_DIGESTS])
  except (KeyError, TypeError) as error:
    raise ValueError(f'{where} describes no classifier: it lacks {error}.') from error
  needed = [MODEL, LABELS, *([TRAINED_ON] * (folder / TRAINED_ON).is_file())]
  for name in needed:
    _check_whole(folder / name, digests.get(name))
  label_names = class_names.read(folder)
  if threshold is not None and (
    len(label_names) != 2 or threshold.positive not in label_names
  ):
    raise ValueError(
      f'{where} has a threshold for {threshold.positive!r}; it must be one of two '
      'classes.'
    )

  def build(network: network_lib.Network, layers: Any) -> tf.keras.Model:
    return _model(folder / MODEL, network, layers, len(label_names))

  model = encoder_file.read(folder / MODEL, build)
  return Classifier(model, label_names, tested, threshold, *_trained_on(folder))


def _model(
  path: pathlib.Path, network: network_lib.Network, layers: Any, num_classes: int
) -> tf.keras.Model:
  """Returns the model that a file must hold: the network, and a linear classifier.

  The statistics by which features are standardised are numbers of a layer, not weights.
  """
  try:
    options = {
      each['config']['name']: each['config'] for each in layers['config']['layers']
    }
    mean, factor = (
      np.asarray(options[f'standardise_{name}'][field], np.float64)
      for name, field in (('center', 'offset'), ('factor', 'scale'))
    )
    width = network.output_dim
    if mean.shape != (width,) or factor.shape != (width,) or not np.all(factor > 0):
      raise ValueError(f'standardises {mean.shape} and {factor.shape} features')
    # A list of names must not take more memory than the file.
    if 4 * width * num_classes > path.stat().st_size:
      raise ValueError(f'too small for the {num_classes:,} classes of {LABELS}')
  except _WRONG as error:
    raise ValueError(f'{path} has no classifier in it: {error}') from error
  classifier = linear_probe.LinearClassifier(
    -mean,
    1 / factor,
    np.zeros([width, num_classes], np.float32),
    np.zeros([num_classes], np.float32),
  )
  return exports.with_preprocessing(encoder_file.untrained(network), None, classifier)


def _trained_on(folder: pathlib.Path) -> tuple[str, frozenset[str] | None]:
  path = folder / TRAINED_ON
  if not path.is_file():
    return '', None
  # It grows with the data.
  most = max(files.MOST_JSON, memory.free() // files.JSON_PARSED)
  held = files.read_json(path, most)
  key, marks = held.get(_KEY), held.get(_MARKS)
  if not isinstance(key, str) or not isinstance(marks, list):
    raise ValueError(f'{path} has no {_KEY} and {_MARKS}; it must have both.')
  return key, frozenset(map(str, marks))


def _mark(key: str, digest: str) -> str:
  code = hmac.new(key.encode(), digest.encode(), 'sha256')
  return code.hexdigest()[:_MARK_LENGTH]


def _check_whole(path: pathlib.Path, digest: object) -> None:
  """Refuses a file that is not as it was written, or is not there."""
  if not path.is_file():
    raise ValueError(f'{path} is missing; the classifier needs it.')
  if files.sha256(path) != digest:
    raise ValueError(
      f'{path} is damaged, or of another export: it is not the file that {CARD} has '
      'the digest of.'
    )
