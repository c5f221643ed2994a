"""Judging the encoder of a run at sites, where the coordinator has no picture.

All that leaves a site are sums over its examples. Of two views of each, without labels:
the means from which the signals of quality follow (`evaluation.signals`). If the run
names classes, of the labelled training examples: counts, sums and second moments by
class, from which the coordinator solves a linear classifier (`evaluation.closed_form`);
then each site counts what it predicts of the examples that it holds out. The same is
done for the encoder before training, and for the pixels.
"""

import collections
from collections.abc import Callable, Iterable, Mapping, Sequence
import dataclasses

import numpy as np

from binaries.building import sites
from binaries.config import run_config
from binaries.experiment import quality
from binaries.experiment import results
from tasks import task_types
from tff_ssl.encoders import network
from tff_ssl.evaluation import closed_form
from tff_ssl.evaluation import feature_sets
from tff_ssl.evaluation import inputs as inputs_lib
from tff_ssl.evaluation import linear_probe
from tff_ssl.evaluation import signals
from tff_ssl.reporting import plain_text
from tff_ssl.reporting import verdict
from tff_ssl.simulation import client_data
from tff_ssl.sites import messages
from tff_ssl.sites import participation

# The two questions, in place of exchanges.
SUMS, PREDICTIONS = 'judging sums', 'judging predictions'
# What is judged, by the prefix of its numbers; pixels have no encoder.
_ENCODERS = {'': 'encoder', verdict.UNTRAINED: 'random encoder'}
_PIXELS = 'pixels/'
_MOMENTS = ('mean', 'second', 'cross', 'waves')
_HEAD = ('mean', 'scale', 'kernel', 'bias')

Arrays = Mapping[str, np.ndarray]
Shapes = Mapping[str, tuple[int, ...]]


class Judge:
  """A site's side: answers the two questions from its own examples."""

  def __init__(
    self,
    config: run_config.RunConfig,
    task: task_types.Task,
    encoder: network.Network,
    held: client_data.ArrayClientData,
    allowed: bool,
  ):
    """Takes the site's examples.

    Args:
      config: The run.
      task: The site's.
      encoder: The network.
      held: Its clients, of the training examples.
      allowed: Whether the site's rules let such sums leave.
    """
    self._task, self._encoder, self._allowed = task, encoder, allowed
    self._classes = sites.classes_of(config)
    self._encode = feature_sets.build_encode(encoder.infer, encoder.batch_in_cache())
    dealt = {client_id: held.positions(client_id) for client_id in held.ids}
    self._views = quality.Views(config, task, encoder, dealt)
    self._chosen = quality.drawn(dealt, len(task.train.label), config.random_seed)

  def __call__(self, message: messages.Message) -> dict[str, np.ndarray]:
    """Answers a question.

    Args:
      message: The question, with the parameters of the encoders and, for predictions,
        the classifiers.

    Raises:
      participation.DeclinedError: If the site's rules forbid it.
    """
    if not self._allowed:
      raise participation.DeclinedError('By the rules of this site nothing is judged.')
    if message.body['exchange'] == SUMS:
      return self._sums(message.arrays)
    return self._predictions(message.arrays)

  def _sums(self, given: Arrays) -> dict[str, np.ndarray]:
    own: dict[str, np.ndarray] = {}
    for prefix, params in _by_encoder(given).items():
      first, second = self._views.features(params, self._chosen)
      means = signals.moments(first, second)
      own[f'{prefix}signals/examples'] = np.array(means.examples)
      for name in _MOMENTS:
        own[f'{prefix}signals/{name}'] = getattr(means, name) * means.examples
    if self._classes:
      labels = self._labels(self._task.train)
      for prefix, features in self._features(given, self._task.train).items():
        known = labels >= 0
        moments = closed_form.moments(
          features[known], labels[known], len(self._classes)
        )
        for name, value in moments._asdict().items():
          own[f'{prefix}classes/{name}'] = value
    return own

  def _predictions(self, given: Arrays) -> dict[str, np.ndarray]:
    own: dict[str, np.ndarray] = {}
    labels, size = self._labels(self._task.test), len(self._classes)
    for prefix, features in self._features(given, self._task.test).items():
      mean, scale, kernel, bias = (given[f'{prefix}head/{name}'] for name in _HEAD)
      head = linear_probe.LinearClassifier(mean, scale, kernel, bias)
      counts = np.zeros([size, size])
      known = labels >= 0
      np.add.at(counts, (labels[known], head.predict(features[known])), 1)
      own[f'{prefix}confusions'] = counts
    return own

  def _features(
    self, given: Arrays, examples: task_types.Examples
  ) -> dict[str, np.ndarray]:
    """Returns the features of examples by what encodes them: pixels too."""
    images = examples[self._encoder.field]
    features = {_PIXELS: inputs_lib.flat(images)}
    for prefix, params in _by_encoder(given).items():
      features[prefix] = self._encode(params, images)
    return features

  def _labels(self, examples: task_types.Examples) -> np.ndarray:
    """Returns the places of examples' classes among those of the run; -1: none."""
    places = [
      self._classes.index(name) if name in self._classes else -1
      for name in self._task.label_names
    ]
    return np.array([*places, -1])[examples.label]


def _by_encoder(given: Arrays) -> dict[str, network.Params]:
  """Returns the parameters of each encoder, by its prefix."""
  return {
    prefix: collections.OrderedDict(
      (name.removeprefix(f'{prefix}params/'), value)
      for name, value in given.items()
      if name.startswith(f'{prefix}params/')
    )
    for prefix in _ENCODERS
  }


def asked(config: run_config.RunConfig, encoder: network.Network) -> dict[str, Shapes]:
  """Returns the shapes of all that a site is asked to judge by, by question.

  Args:
    config: The run.
    encoder: The network.
  """
  if not sites.is_judged(config):
    return {}
  size = len(sites.classes_of(config))
  predictions = {PREDICTIONS: _counts(size)} if size else {}
  return {SUMS: _shapes(encoder, size), **predictions}


def _counts(num_classes: int) -> Shapes:
  """Returns the shapes of the counts of what is predicted."""
  shape = (num_classes, num_classes)
  return {f'{prefix}confusions': shape for prefix in (*_ENCODERS, _PIXELS)}


@dataclasses.dataclass(frozen=True)
class Judged:
  """What the coordinator knows of an encoder.

  Attributes:
    numbers: By name, as in evaluation.json.
    lines: For people: a table by site.
  """

  numbers: results.Numbers
  lines: tuple[str, ...] = ()


def judge(
  ask: Callable[[str, Arrays, Shapes], Mapping[str, Arrays]],
  encoder: network.Network,
  params: network.Params,
  untrained: network.Params,
  classes: Sequence[str],
) -> Judged:
  """Asks the sites for their sums; returns what follows from them.

  Args:
    ask: (question, arrays, shapes of the sums) -> the sums by site; those of all sites
      alone if they are masked.
    encoder: The network.
    params: Parameters of the encoder.
    untrained: Those before training.
    classes: Names of the classes; empty: nothing is classified.
  """
  given = {
    f'{prefix}params/{name}': np.asarray(value)
    for prefix, own in zip(_ENCODERS, (params, untrained), strict=True)
    for name, value in own.items()
  }
  size = len(classes)
  total = _total(ask(SUMS, given, _shapes(encoder, size)).values())
  numbers: results.Numbers = collections.OrderedDict()
  for prefix in _ENCODERS:
    count = total[f'{prefix}signals/examples']
    means = [total[f'{prefix}signals/{name}'] / count for name in _MOMENTS]
    found = quality.named(signals.signals(signals.Moments(float(count), *means)))
    numbers.update({prefix + name: value for name, value in found.items()})
  if not classes:
    return Judged(numbers)
  heads: dict[str, np.ndarray] = {}
  for prefix in (*_ENCODERS, _PIXELS):
    moments = closed_form.Moments(
      *(total[f'{prefix}classes/{name}'] for name in closed_form.Moments._fields)
    )
    head = closed_form.fit_lda(moments).classifier
    heads |= {f'{prefix}head/{name}': getattr(head, name) for name in _HEAD}
  answers = ask(PREDICTIONS, {**given, **heads}, _counts(size))
  answers = {**answers, 'all sites': _total(answers.values())}
  for prefix in (*_ENCODERS, _PIXELS):
    counts = answers['all sites'][f'{prefix}confusions']
    numbers[f'{prefix}lda/100%/accuracy'] = _accuracy(counts)
    numbers[f'{prefix}lda/100%/balanced_accuracy'] = _balanced(counts)
  return Judged(numbers, tuple(_table(answers)))


def _shapes(encoder: network.Network, num_classes: int) -> dict[str, tuple[int, ...]]:
  """Returns the shapes of the sums of a site, by name."""
  width = encoder.output_dim
  waves = 2 * signals.frequencies(width).shape[1]
  shapes: dict[str, tuple[int, ...]] = {}
  for prefix in _ENCODERS:
    own = {'examples': (), 'mean': (width,), 'waves': (waves,)}
    own |= dict.fromkeys(('second', 'cross'), (width, width))
    shapes |= {f'{prefix}signals/{name}': shape for name, shape in own.items()}
  if num_classes:
    black = np.zeros([1, *encoder.input_shape], np.uint8)
    widths = {**dict.fromkeys(_ENCODERS, width), _PIXELS: inputs_lib.flat(black).size}
    for prefix, d in widths.items():
      sums = ((num_classes,), (num_classes, d), (d, d))
      named = zip(closed_form.Moments._fields, sums, strict=True)
      shapes |= {f'{prefix}classes/{name}': shape for name, shape in named}
  return shapes


def _table(answers: Mapping[str, Arrays]) -> list[str]:
  """Returns lines of accuracies by site."""
  names = {**_ENCODERS, _PIXELS: 'pixels'}
  rows: list[dict[str, object]] = []
  for site, own in answers.items():
    counts = int(own['confusions'].sum())
    shares = {
      name: _accuracy(own[f'{prefix}confusions']) if counts else None
      for prefix, name in names.items()
    }
    rows.append({'site': site, 'held out': counts, **shares})
  lines = plain_text.text(rows, percent=[*names.values()]).splitlines()
  return [*lines, 'accuracy of a linear classifier, solved from sums over all sites']


def _total(answers: Iterable[Arrays]) -> dict[str, np.ndarray]:
  """Returns sums over sites, in the order of their names."""
  total: dict[str, np.ndarray] = {}
  for own in answers:
    for name, value in own.items():
      total[name] = total[name] + value if name in total else value
  return total


def _accuracy(counts: np.ndarray) -> float:
  return float(np.trace(counts) / max(1.0, counts.sum()))


def _balanced(counts: np.ndarray) -> float:
  there = counts.sum(axis=1) > 0
  return float(np.mean(np.diag(counts)[there] / counts.sum(axis=1)[there]))
