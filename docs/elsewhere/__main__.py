"""Writes every encoder as runs and exports do, and the numbers that it gives.

  python -m docs.elsewhere build/elsewhere/files
  python -m docs.elsewhere build/elsewhere/files docs/take_away.md

`check.py` reads the files in environments that have nothing of this project, and
compares the numbers; the second command writes what it found into a page. `make
elsewhere` does all of it.
"""

import collections
from collections.abc import Iterator, Mapping, Sequence
import json
import pathlib
import sys
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn import datasets

from docs.campaigns import pages
from tasks import images
from tff_ssl.encoders import mobilenet
from tff_ssl.encoders import network
from tff_ssl.encoders import published_resnet
from tff_ssl.encoders import registry
from tff_ssl.encoders import torch_vit
from tff_ssl.encoders.operations import batch_normalization
from tff_ssl.evaluation import fine_tuning
from tff_ssl.evaluation import linear_probe
from tff_ssl.export import comparison
from tff_ssl.export import exports
from tff_ssl.runs import run_folder

# Odd and even sides: padding differs.
_IMAGE = (33, 32, 3)
# In smaller maps its last groups have so few values that float32 is 4e-4 from float64.
_DEEP_IMAGE = (65, 64, 3)
_ROW = (7,)
_EXAMPLES, _CLASSES = 6, 3
_SCALING = exports.Scaling(np.full(_ROW, 127.5), np.full(_ROW, 1 / 74))
# Encoders that are written fine-tuned too.
_TUNED = ('conv2-batch', 'resnet8-group-cifar', 'convnext_micro', 'vit_micro')
# An encoder of pictures of any size. The shorter side is four times that of a square:
# with weights of few digits TFLite too, which has no float64, rounds pixels as we do.
PHOTOGRAPH = 'photograph'
_PHOTO, _SQUARE = (160, 128), (32, 32, 3)
# Inputs and outputs of an encoder.
_NUMBERS = 'numbers.npz'
_MARKS = '<!-- elsewhere: written by make elsewhere -->', '<!-- elsewhere: end -->'


def norms(name: str) -> tuple[str, ...]:
  """Returns the norms that an encoder can have; () if it has no choice."""
  for published in (published_resnet, mobilenet):
    if name in published.NAMES:
      return published.NORMS
  return ('group', 'batch') if name in registry.with_option('normalization') else ()


def encoders() -> Iterator[tuple[str, network.Network]]:
  """Yields every small encoder of the registry, with each norm and stem, by a name."""
  for name in registry.NAMES:
    stems = ('cifar', 'imagenet') if name in registry.with_option('stem') else ()
    resnets = ('resnet50', 'torch_resnet50', 'keras_resnet50')
    deep = dict.fromkeys(resnets, _DEEP_IMAGE)
    shape = {'mlp': _ROW, **deep}.get(name, _IMAGE)
    patch = None
    if name in registry.with_option('patch_size'):
      shape, patch = (32, 24, 3), 8
    # All that PyTorch's transformers may have.
    more: dict[str, Any] = {}
    if name in torch_vit.NAMES:
      more = {'layer_scale': True, 'registers': 2}
    for norm in norms(name) or (None,):
      for stem in stems or (None,):
        encoder = registry.build_encoder(
          name, shape, 0.25, stem=stem, patch_size=patch, normalization=norm, **more
        )
        yield '-'.join(filter(None, (name, norm, stem))), encoder


def values(encoder: network.Network, seed: int = 0) -> network.Params:
  """Returns parameters and statistics of which none has its initial, idle value."""
  generator = np.random.default_rng(seed)
  params = encoder.init([0, 1])
  for name, value in params.items():
    # Kernels keep their scale, with which numbers stay of one size through all layers.
    size = 0.1 / np.prod(value.shape[:-1]) ** 0.5 if value.shape.rank > 1 else 0.1
    params[name] = value + (size * generator.normal(size=value.shape)).astype('f4')
  # Of a batch, or else every relu of a deep network may be 0; variances are larger.
  examples = generator.uniform(size=(_EXAMPLES, *encoder.input_shape)).astype('f4')
  for name, value in encoder.moments(params, examples).items():
    if name.endswith(batch_normalization.POPULATION_SQUARE):
      value *= generator.uniform(1.0, 1.1, value.shape).astype('f4')
    params[name] = value
  return params


class Example(NamedTuple):
  """An encoder of a run, and a classifier on its features.

  Attributes:
    encoder: The network.
    params: Its parameters and statistics.
    raw: Inputs of exports.
    scaled: The same as the encoder's inputs.
    features: Of these inputs.
    classifier: The classifier.
    is_tuned: Whether both were trained together.
    fit: How raw pictures become inputs; None: they have the encoder's size.
  """

  encoder: network.Network
  params: network.Params
  raw: np.ndarray
  scaled: np.ndarray
  features: np.ndarray
  classifier: linear_probe.LinearClassifier
  is_tuned: bool = False
  fit: str | None = None


def examples() -> Iterator[tuple[str, Example]]:
  """Yields every encoder with a classifier, some fine-tuned, one of a photograph."""
  generator = np.random.default_rng(0)
  for name, encoder in encoders():
    params, shape = values(encoder), encoder.input_shape
    if len(shape) == 3:
      dim = comparison.dim_images(shape, _EXAMPLES)
      dim = comparison.well_conditioned(encoder, params, dim)
      noise = generator.integers(0, 256, (_EXAMPLES, *shape), np.uint8)
      raw = np.concatenate([noise, dim])
      scaled = raw / np.float32(255)
    else:
      scaled = generator.normal(size=(_EXAMPLES, *shape)).astype(np.float32)
      scaled = np.concatenate([scaled, comparison.faint_rows(shape[0], _EXAMPLES)])
      raw = scaled / _SCALING.factor.astype(np.float32) + np.float32(_SCALING.mean)
    example = _example(generator, encoder, raw, scaled)
    yield name, example
    if name in _TUNED:
      yield f'{name}-finetuned', _tuned(example)
  raw = datasets.load_sample_images().images[0][np.newaxis, : _PHOTO[0], : _PHOTO[1]]
  encoder = registry.build_encoder('conv2', _SQUARE, 0.25)
  scaled = images.resize(raw, _SQUARE[0], 'crop') / np.float32(255)
  example = _example(generator, encoder, raw, scaled)
  yield PHOTOGRAPH, example._replace(fit='crop')


def _example(
  generator: np.random.Generator,
  encoder: network.Network,
  raw: np.ndarray,
  scaled: np.ndarray,
) -> Example:
  """Returns an encoder with its features of inputs and a classifier on them."""
  params = values(encoder)
  # In float64, so that only what others round counts, and not what we do.
  exact = {key: np.asarray(value, np.float64) for key, value in params.items()}
  features = encoder.infer(exact, scaled.astype(np.float64)).numpy()
  features = features.astype(np.float32)
  fitted = _classifier(generator, features)
  return Example(encoder, params, raw, scaled, features, fitted)


def _tuned(example: Example) -> Example:
  """Trains an encoder and a new classifier for some steps."""
  encoder, raw = example.encoder, example.raw

  def complete(params: network.Params, images: np.ndarray) -> network.Params:
    scaled = images / np.float32(255)
    return params | (encoder.moments(params, scaled) if encoder.statistics else {})

  tuning = fine_tuning.FineTuning(
    encoder.apply,
    _CLASSES,
    fine_tuning.FinetuneConfig(num_steps=3),
    infer=encoder.infer,
    complete=complete,
  )
  params = collections.OrderedDict(
    (name, example.params[name]) for name in encoder.specs
  )
  tuned = tuning(params, raw, np.arange(len(raw)) % _CLASSES, raw, seed=0)
  head = linear_probe.of_head(tuned.head)
  return example._replace(
    params=tuned.params, features=tuned.features, classifier=head, is_tuned=True
  )


def write(folder: pathlib.Path, formats: Sequence[str] = exports.FORMATS) -> None:
  """Writes a folder for each encoder: its files, and `numbers.npz`.

  Args:
    folder: A new folder.
    formats: Formats of the exports.
  """
  exports.check(formats)
  folder.mkdir(parents=True)
  for name, each in examples():
    with run_folder.RunFolder(folder / name, {}) as opened:
      if not each.is_tuned and each.fit is None:
        opened.save_encoder(each.encoder.to_keras(each.params), {})
    scaling = _SCALING if each.raw.ndim == 2 else None
    keras = each.encoder.to_keras(each.params)
    model = exports.with_preprocessing(keras, scaling, each.classifier)
    for kind in formats:
      exports.write(model, kind, folder / name, each.encoder, each.fit)
    np.savez(
      folder / name / _NUMBERS,
      raw=each.raw,
      scaled=each.scaled,
      features=each.features,
      probabilities=each.classifier.probabilities(each.features),
    )
    print(f'{name}: written', flush=True)


def table(differences: Mapping[str, Mapping[str, float]]) -> str:
  """Returns a table of encoders and places, in Markdown.

  Args:
    differences: Place -> encoder -> the largest difference.
  """
  gaps = pd.DataFrame(differences).sort_index().rename_axis('encoder')
  shown = gaps.map(lambda gap: '' if np.isnan(gap) else f'{gap:.0e}')
  align = ['left', *['right'] * len(differences)]
  return shown.to_markdown(colalign=align, disable_numparse=True)


def _classifier(
  generator: np.random.Generator, features: np.ndarray
) -> linear_probe.LinearClassifier:
  """Returns a classifier that is not fitted, but of usual size."""
  width = features.shape[1]
  return linear_probe.LinearClassifier(
    features.mean(axis=0),
    features.std(axis=0) + np.float32(0.1),
    (generator.normal(size=(width, _CLASSES)) / width**0.5).astype(np.float32),
    generator.normal(size=_CLASSES).astype(np.float32),
  )


def main(folder: pathlib.Path, page: str | None = None) -> None:
  """Writes the files, or the table into a page."""
  if page is None:
    write(folder)
    return
  differences = json.loads((folder / 'differences.json').read_text())
  pages.write_between(pathlib.Path(page), _MARKS, table(differences))


if __name__ == '__main__':
  main(pathlib.Path(sys.argv[1]), *sys.argv[2:])
