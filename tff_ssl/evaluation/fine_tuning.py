"""Full fine-tuning: an encoder and a new linear head, trained together on few labels.

DCCO ("Federated Training of Dual Encoding Models on Small Non-IID Client Datasets",
2022), Section 4 and Appendix B.1: Adam, batch 256, 100 steps, cosine decay, flips only.
Supervised training from scratch is the same from random params, with more steps.
A case of several images is classified by the mean of its images' encodings; a batch is
then a batch of cases, each with all of its images.

Deviations:
  Cases of many images (30 in a track) would make steps of thousands of images. In a
    batch of more than 384 images, each case is therefore limited to the same number of
    images, drawn in each step, so that the batch has at most 384. 256 lesions of 1.3
    images fit whole. On tracks of 30 crops of CIFAR-10 images (131 labelled, 500 to
    test, five seeds), 384 gave 27.5 % for three quarters of the CPU time of 512, which
    gave 27.9 %.
  The rate of fine-tuning is not legible in the public text, and no rate suits all
    encoders: 100 steps from a DCCO encoder on CIFAR-10 reach 25 % at 0.001 and 44 % at
    0.01; an encoder that was trained with labels on digits has 83 % left at 0.01 and
    91 % at 0.001. A `finetune_search.Search` chooses rate and steps on held-out
    training labels; without one the rate is 0.01, as for training from scratch.
  Training from scratch counts steps, not epochs: 100 epochs of 5,000 labels are 2,000.
  The head starts at zero; the paper does not say.
"""

import collections
from collections.abc import Callable, Sequence
import dataclasses
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tff_ssl.computing import kinds
from tff_ssl.computing import seeds
from tff_ssl.evaluation import batches
from tff_ssl.evaluation import feature_sets
from tff_ssl.evaluation import finetune_search
from tff_ssl.evaluation import finetune_step
from tff_ssl.evaluation import label_fractions
from tff_ssl.evaluation import stages
from tff_ssl.optimization import adam
from tff_ssl.optimization import schedules

# Images that a core encodes at a time by default.
_ENCODED_AT_ONCE = 64
# Flat, from the name of a parameter to its tensor.
Params = collections.OrderedDict[str, tf.Tensor]


@dataclasses.dataclass(frozen=True)
class FinetuneConfig(kinds.Kind):
  """Hyperparameters of training with labels.

  Attributes:
    learning_rate: Initial rate of Adam, decayed to 0 by half a cosine.
    batch_size: Images (or cases) of a batch; all if there are fewer.
    num_steps: Number of steps.
    most_images: Maximum number of images of a batch of cases. If the cases have more,
      each is limited to the same number, at least one, drawn again in each step.
    flip: Whether each image is flipped left to right with probability 1/2; vectors are
      not.
  """

  learning_rate: kinds.Positive = 0.01
  batch_size: kinds.Count = 256
  num_steps: kinds.Count = 100
  most_images: kinds.Count = 384
  flip: bool = True


# Source: Appendix B.1, supervised training from scratch.
FROM_SCRATCH = FinetuneConfig(num_steps=2000)


class Finetuned(NamedTuple):
  """The result of fine-tuning.

  Attributes:
    params: The trained encoder.
    head: The trained linear head: kernel [d, num_classes] and bias [num_classes].
    predictions: int32, the class of each test image, or of each test case by
      increasing case id.
    features: float32 [N, d], the trained encoder's features of each test image.
    chosen: Rate and steps, if a search chose them; None: they were given.
  """

  params: Params
  head: Params
  predictions: np.ndarray
  features: np.ndarray
  chosen: finetune_search.Chosen | None = None


class FineTuning:
  """Fine-tuning, compiled once, to run it from many params and with many label sets."""

  def __init__(
    self,
    apply: Callable[[Params, tf.Tensor], tf.Tensor],
    num_classes: int,
    config: FinetuneConfig | None = None,
    infer: Callable[[Params, tf.Tensor], tf.Tensor] | None = None,
    complete: Callable[[Params, np.ndarray], Params] | None = None,
    search: finetune_search.Search | None = None,
    chunk_size: int | None = None,
  ):
    """Initializes fine-tuning; the first run compiles it.

    Args:
      apply: Maps (params, float32 images [n, H, W, C] in [0, 1]) to features [n, d].
      num_classes: Number of classes.
      config: Hyperparameters; None for the defaults.
      infer: `apply` in inference, of completed params, where batch norm differs; None:
        `apply` itself.
      complete: Completes params for `infer` with statistics of the training images.
      search: How rate and steps are chosen in each run; None: they are the
        configuration's.
      chunk_size: About how many images go through the network at once, such as
        `Network.batch_in_cache` returns. A batch is divided into chunks of whole cases,
        and their gradients are summed; only the last digits change. None: all images,
        as an encoder that mixes the examples of a batch needs.
    """
    self._num_classes = num_classes
    self._config = config or FinetuneConfig()
    self._complete = complete or (lambda params, _: params)
    self._search = search
    self._encode = feature_sets.build_encode(
      infer or apply, chunk_size or _ENCODED_AT_ONCE
    )
    self._step = finetune_step.FinetuneStep(
      apply, num_classes, self._config.flip, chunk_size
    )

  def __call__(
    self,
    params: Params,
    train_images: np.ndarray,
    train_labels: np.ndarray,
    test_images: np.ndarray,
    seed: int,
    train_cases: np.ndarray | None = None,
    test_cases: np.ndarray | None = None,
  ) -> Finetuned:
    """Fine-tunes an encoder.

    Args:
      params: The encoder's.
      train_images: uint8 [N, H, W, C].
      train_labels: int [N] in [0, num_classes).
      test_images: uint8 [M, H, W, C].
      seed: Non-negative integer.
      train_cases: int [N]; a case is classified as a whole. None: each image is.
      test_cases: int [M], likewise.

    Raises:
      ValueError: Lengths differ, nothing is labelled, a label is out of range, or
        images of one case have different labels.
    """
    label_fractions.check(
      'Fine-tuning', train_labels, self._num_classes, len(train_images)
    )
    if train_cases is not None and len(train_cases) != len(train_labels):
      raise ValueError(
        f'Fine-tuning got {len(train_cases)} cases for {len(train_labels)} images; '
        'each image needs one.'
      )
    cases = np.arange(len(train_labels)) if train_cases is None else train_cases
    units = _Units(cases, feature_sets.case_labels(train_labels, cases))
    initial = self._start(params, train_images)
    if self._search is None:
      chosen, rate, steps = None, self._config.learning_rate, self._config.num_steps
    else:
      chosen = self._choose(self._search, initial, train_images, units, seed)
      rate, steps = chosen.learning_rate, chosen.steps
    stages.begin(f'fine-tuning in {steps:,} steps')
    (trained,) = self._train(initial, train_images, units, seed, rate, [steps])
    stages.begin(
      f'encoding {len(test_images):,} test examples with the fine-tuned encoder'
    )
    tuned, encoded, logits = self._test(trained, train_images, test_images, test_cases)
    predictions = np.argmax(logits, axis=1).astype(np.int32)
    return Finetuned(tuned, trained['head'], predictions, encoded, chosen)

  def _start(self, params: Params, images: np.ndarray) -> Any:
    """Returns the encoder with a head of zeros."""
    completed = self._complete(params, images[:1])
    num_features = self._encode(completed, images[:0]).shape[1]
    head = collections.OrderedDict(
      kernel=tf.zeros([num_features, self._num_classes]),
      bias=tf.zeros([self._num_classes]),
    )
    params = tf.nest.map_structure(tf.convert_to_tensor, params)
    return collections.OrderedDict(params=params, head=head)

  def _test(
    self,
    trained: Any,
    seen: np.ndarray,
    images: np.ndarray,
    cases: np.ndarray | None,
  ) -> tuple[Params, np.ndarray, np.ndarray]:
    """Returns the encoder with statistics of what it has seen, encodings and logits."""
    tuned = self._complete(trained['params'], seen)
    pooled = encoded = self._encode(tuned, images)
    if cases is not None:
      unlabelled = np.full([len(cases)], -1)
      pooled, _, _ = feature_sets.pool_cases(pooled, unlabelled, cases)
    head = trained['head']
    return tuned, encoded, pooled @ head['kernel'].numpy() + head['bias'].numpy()

  def _choose(
    self,
    search: finetune_search.Search,
    initial: Any,
    images: np.ndarray,
    units: '_Units',
    seed: int,
  ) -> finetune_search.Chosen:
    """Tries each rate on a part of the labels, and tests it on the others."""
    parts = finetune_search.parts(units.labels, search, seed)
    if not parts:
      return finetune_search.Chosen(search.fallback, self._config.num_steps, 0)
    validated = sum(part.size for part in parts)
    scores = collections.defaultdict(list)
    for part in parts:
      training = np.setdiff1d(np.arange(len(units.labels)), part)
      seen, of_seen = units.take(training)
      others, of_others = units.take(part)
      stops = [max(1, round(stop * self._config.num_steps)) for stop in search.stops]
      for rate in search.learning_rates:
        stages.begin(f'fine-tuning at the learning rate {rate:g}, to choose the rate')
        tried = self._train(initial, images[seen], of_seen, seed, rate, stops)
        for steps, trained in zip(stops, tried, strict=True):
          *_, logits = self._test(
            trained, images[seen], images[others], of_others.cases
          )
          scores[rate, steps].append(finetune_search.score(logits, of_others.labels))
    means = {
      choice: tuple(np.mean(scored, axis=0)) for choice, scored in scores.items()
    }
    # Takes the first of equals: the lowest rate, if they are in order.
    rate, steps = max(means, key=lambda choice: means[choice])
    return finetune_search.Chosen(rate, steps, validated)

  def _train(
    self,
    trained: Any,
    images: np.ndarray,
    units: '_Units',
    seed: int,
    rate: float,
    stops: Sequence[int],
  ) -> list[Any]:
    """Returns the parameters after each of increasing numbers of steps."""
    config = self._config
    schedule = schedules.Cosine(rate, config.num_steps)
    positions = batches.batch_positions(
      len(units.labels), config.batch_size, config.num_steps, seed
    )
    state = adam.init(trained)
    stopped = {}
    for number, batch in enumerate(positions[: stops[-1]]):
      random = np.random.default_rng([seed, number])
      members, segments = units.images(batch, config.most_images, random)
      trained, state = self._step(
        trained,
        state,
        images[members],
        segments,
        units.labels[batch],
        schedule(number),
        seeds.stream(seed, number),
      )
      if number + 1 in stops:
        stopped[number + 1] = tf.nest.map_structure(tf.convert_to_tensor, trained)
      stages.update(number + 1, stops[-1])
    return [stopped[stop] for stop in stops]


class _Units:
  """The cases (or single images) that batches are drawn from."""

  def __init__(self, cases: np.ndarray, labels: np.ndarray):
    """Groups images by case; `labels` are the cases', by increasing case id."""
    _, index = np.unique(cases, return_inverse=True)
    order = np.argsort(index, kind='stable')
    self._members = np.split(order, np.cumsum(np.bincount(index))[:-1])
    self.cases = cases
    self.labels = labels

  def take(self, units: np.ndarray) -> tuple[np.ndarray, '_Units']:
    """Returns the positions of the images of some units, and these units alone."""
    positions, index = self.images(np.sort(units))
    return positions, _Units(index, self.labels[np.sort(units)])

  def images(
    self,
    batch: np.ndarray,
    most: int | None = None,
    random: np.random.Generator | None = None,
  ) -> tuple[np.ndarray, np.ndarray]:
    """Returns the positions of the images of some units, and the unit of each.

    Args:
      batch: The units.
      most: Maximum number in all, but at least one of each unit; None: no limit.
      random: Draws the images.
    """
    members = [self._members[unit] for unit in batch]
    if most is not None and random is not None:
      limit = _limit(np.array([*map(len, members)]), most)
      members = [
        images if len(images) <= limit else random.permutation(images)[:limit]
        for images in members
      ]
    return np.concatenate(members), np.repeat(
      np.arange(len(batch)), [*map(len, members)]
    )


def _limit(sizes: np.ndarray, most: int) -> int:
  """Returns the largest limit per unit that keeps the sum within `most`; at least 1."""
  limits = np.arange(1, np.max(sizes) + 1)
  totals = np.array([np.sum(np.minimum(sizes, limit)) for limit in limits])
  fitting = limits[totals <= most]
  return int(fitting[-1]) if fitting.size else 1
