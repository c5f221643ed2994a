"""Transfer beyond classification: segmentation and detection, as numbers.

Dec-SSL ("Does Learning from Decentralized Non-IID Unlabeled Data Benefit from Self
Supervision?", ICLR 2023) transfers its encoders to detection and segmentation. Here
each image has one object with a known mask: a small head on the encoder's last feature
maps predicts the mask, or the box around it.

Names of the numbers:
  masks/10%                              training images whose masks were used
  segmentation/10%/frozen/iou            mean over test images of the masks' IoU
  segmentation/10%/frozen/found          share of test images whose IoU is at least 0.5
  segmentation/10%/finetuned/iou         with the encoder trained too
  segmentation/10%/without_image/iou     of one mask for all: pixels in most masks
  detection/10%/frozen/iou               mean IoU of the boxes
  detection/10%/frozen/found             recall at IoU 0.5, with one box per image
  detection/10%/without_image/iou        of one box for all: the medians of its sides
The last number of each method scores one fixed guess for all images; it is high where
objects are photographed in the middle.
"""

import collections
from collections.abc import Callable, Iterator, Sequence
import dataclasses
from typing import Any

import numpy as np
import tensorflow as tf

from tff_ssl.computing import kinds
from tff_ssl.computing import seeds
from tff_ssl.encoders import network as network_lib
from tff_ssl.evaluation import batches
from tff_ssl.evaluation import dense_heads
from tff_ssl.evaluation import feature_maps
from tff_ssl.evaluation import feature_sets
from tff_ssl.evaluation import label_fractions
from tff_ssl.evaluation import method_names
from tff_ssl.evaluation import overlap
from tff_ssl.evaluation import population_statistics
from tff_ssl.evaluation import stages
from tff_ssl.optimization import adam
from tff_ssl.optimization import schedules

FROZEN, FINETUNED = 'frozen', 'finetuned'
WITHOUT_IMAGE = 'without_image'
_BATCH = 64


@dataclasses.dataclass(frozen=True)
class DenseConfig(kinds.Kind):
  """How heads are trained.

  Attributes:
    num_steps: Steps of Adam.
    batch_size: Images of a step; all images if there are fewer.
    frozen_rate: Initial rate of a head on a frozen encoder, decayed to 0 by half a
      cosine.
    finetuned_rate: The same if the encoder is trained too.
  """

  num_steps: kinds.Count = 300
  batch_size: kinds.Count = 32
  frozen_rate: kinds.Positive = 3e-3
  finetuned_rate: kinds.Positive = 1e-3


@dataclasses.dataclass(frozen=True)
class Masked:
  """Images, each with a mask.

  Attributes:
    image: uint8 [n, height, width, channels].
    mask: bool [n, height, width].
    case: int [n]; shares of the training images keep or drop cases as a whole.
  """

  image: np.ndarray
  mask: np.ndarray
  case: np.ndarray

  def __post_init__(self) -> None:
    if self.image.shape[:3] != self.mask.shape or not len(self.mask):
      raise ValueError(
        f'Masks have shape {list(self.mask.shape)} for images of shape '
        f'{list(self.image.shape[:3])}; each image needs one mask of its size, and '
        'there must be at least one image.'
      )

  def take(self, positions: np.ndarray) -> 'Masked':
    """Returns some of the images, by their positions."""
    return Masked(self.image[positions], self.mask[positions], self.case[positions])

  def with_object(self) -> 'Masked':
    """Returns the images whose masks are not empty: only these have a box."""
    known = np.any(self.mask, axis=(1, 2))
    return self if np.all(known) else self.take(np.flatnonzero(known))


class Evaluator:
  """Trains and tests heads on one encoder's maps; compiles each kind once."""

  def __init__(
    self,
    encoder: network_lib.Network,
    train: Masked,
    test: Masked,
    config: DenseConfig | None = None,
  ):
    """Sets the images that heads are trained and tested on.

    Args:
      encoder: With feature maps.
      train: What heads are trained on.
      test: What they are tested on.
      config: How they are trained; None: the defaults.

    Raises:
      ValueError: The encoder has no maps, or all masks of a split are empty.
    """
    self._config = config or DenseConfig()
    self._encoder = encoder
    self._maps = feature_maps.build(encoder)
    self._complete = population_statistics.build_complete(encoder)
    shapes = feature_maps.shapes(encoder)
    height, width, _ = encoder.input_shape
    self._heads: dict[str, dense_heads.DenseHead] = {
      method_names.SEGMENTATION: dense_heads.Segmentation(shapes, (height, width)),
      method_names.DETECTION: dense_heads.Box(shapes),
    }
    self._sets = {method_names.SEGMENTATION: (train, test)}
    for split, masked in (('training', train), ('test', test)):
      if not np.any(masked.mask):
        raise ValueError(
          f'All {split} masks are empty; evaluation needs at least one object.'
        )
    self._sets[method_names.DETECTION] = (train.with_object(), test.with_object())
    self._compiled: dict[tuple[str, str], Any] = {}

  def evaluate(
    self,
    params: network_lib.Params,
    methods: Sequence[str] = method_names.DENSE,
    fractions: Sequence[float] = (0.01, 0.1, 1.0),
    seed: int = 0,
    ways: Sequence[str] = (FROZEN, FINETUNED),
    num_steps: int | None = None,
  ) -> collections.OrderedDict[str, float]:
    """Evaluates parameters of the encoder.

    Args:
      params: As `Network.infer` takes them.
      methods: Some of `method_names.DENSE`.
      fractions: Shares of the training images whose masks are used, each in (0, 1].
      seed: Non-negative integer that fixes shares, batches and heads.
      ways: Some of `FROZEN` and `FINETUNED`.
      num_steps: Steps of Adam; None: the configuration's.

    Returns:
      Numbers by name, as the module lists them.

    Raises:
      ValueError: Parameters are not finite, before or after training.
    """
    _check_finite(params, 'The encoder')
    numbers: collections.OrderedDict[str, float] = collections.OrderedDict()
    for fraction in fractions:
      percent = f'{100 * fraction:g}%'
      numbers[f'masks/{percent}'] = float(
        len(_share(self._sets[method_names.SEGMENTATION][0], fraction, seed))
      )
      for method in methods:
        train, test = self._sets[method]
        share = train.take(_share(train, fraction, seed))
        steps = num_steps or self._config.num_steps
        predictions = {
          **{
            way: self._predict(method, way, params, share, seed, steps) for way in ways
          },
          WITHOUT_IMAGE: _without_image(method, share, len(test.mask)),
        }
        for way, predicted in predictions.items():
          for name, value in _score(method, predicted, test.mask):
            numbers[f'{method}/{percent}/{way}/{name}'] = value
    return numbers

  def _predict(
    self,
    method: str,
    way: str,
    params: network_lib.Params,
    train: Masked,
    seed: int,
    steps: int,
  ) -> np.ndarray:
    """Trains a head, and returns its predictions for the test images."""
    head, test = self._heads[method], self._sets[method][1]
    targets = _targets(method, train.mask)
    trained = collections.OrderedDict(head=head.init(seed))
    fixed: network_lib.Params = collections.OrderedDict()
    if way == FINETUNED:
      trained['encoder'] = population_statistics.trained(self._encoder, params)
    else:
      fixed = _tensors(params)
    rate = self._rate(way)
    schedule = schedules.Cosine(rate, steps)
    state = adam.init(trained)
    drawn = batches.batch_positions(len(targets), self._config.batch_size, steps, seed)
    step = self._build_step(head, way)
    shown = 'with the encoder frozen' if way == FROZEN else 'end to end'
    stages.begin(f'{method} with {len(targets):,} masks, {shown}')
    for number, batch in enumerate(drawn):
      # Before the step: the first one is compiled.
      stages.update(number, steps)
      trained, state = self._run(
        (method, way),
        step,
        (
          trained,
          state,
          fixed,
          tf.constant(schedule(number), tf.float32),
          tf.constant(seeds.stream(seed, number)),
        ),
        (train.image[batch], targets[batch].astype(np.float32)),
      )
    _check_finite(trained, f'What was trained by {method} at the rate {rate}')
    if way == FINETUNED:
      fixed = _tensors(self._complete(trained['encoder'], train.image))
    infer = self._build_infer(head)
    outputs = [
      self._run(
        (method, 'infer'),
        infer,
        (trained['head'], fixed),
        (test.image[start : start + _BATCH],),
      ).numpy()
      for start in range(0, len(test.image), _BATCH)
    ]
    predicted = np.concatenate(outputs)
    return predicted > 0 if method == method_names.SEGMENTATION else predicted

  def _rate(self, way: str) -> float:
    config = self._config
    return config.finetuned_rate if way == FINETUNED else config.frozen_rate

  def _run(
    self,
    key: tuple[str, str],
    function: Callable[..., Any],
    structures: Sequence[Any],
    batch: Sequence[np.ndarray],
  ) -> Any:
    """Calls a function of structures and of a batch of any size, compiled once."""
    tensors = [tf.constant(array) for array in batch]
    if key not in self._compiled:
      self._compiled[key] = tf.function(
        function, autograph=False
      ).get_concrete_function(
        *tf.nest.map_structure(lambda x: tf.TensorSpec(x.shape, x.dtype), structures),
        *(tf.TensorSpec([None, *x.shape[1:]], x.dtype) for x in tensors),
      )
    return self._compiled[key](*structures, *tensors)

  def _build_infer(self, head: dense_heads.DenseHead) -> Callable[..., tf.Tensor]:
    maps, apply = self._maps, self._encoder.infer

    def infer(params: Any, encoder: Any, images: tf.Tensor) -> tf.Tensor:
      return head.predict(params, maps(apply, encoder, feature_sets.scale(images)))

    return infer

  def _build_step(
    self, head: dense_heads.DenseHead, way: str
  ) -> Callable[..., tuple[Any, Any]]:
    maps, encoder = self._maps, self._encoder

    def step(
      trained: Any,
      state: Any,
      fixed: Any,
      rate: tf.Tensor,
      seed: tf.Tensor,
      images: tf.Tensor,
      targets: tf.Tensor,
    ) -> tuple[Any, Any]:
      inputs = feature_sets.scale(images)
      # One image of two is mirrored, with its mask or box.
      drawn = tf.random.stateless_uniform([tf.shape(images)[0]], seed) < 0.5
      inputs = _where(drawn, tf.reverse(inputs, axis=[2]), inputs)
      targets = _where(drawn, head.flip(targets), targets)
      if way == FROZEN:
        seen = maps(encoder.infer, fixed, inputs)
      with tf.GradientTape() as tape:
        tape.watch(trained)
        if way == FINETUNED:
          seen = maps(encoder.apply, trained['encoder'], inputs)
        loss = head.loss(head.predict(trained['head'], seen), targets)
      grads = tape.gradient(
        loss, trained, unconnected_gradients=tf.UnconnectedGradients.ZERO
      )
      return adam.update(trained, state, grads, rate)

    return step


def _share(masked: Masked, fraction: float, seed: int) -> np.ndarray:
  """Returns the positions of a share of the images, in whole cases."""
  every = np.zeros([len(masked.mask)], np.int32)
  return label_fractions.label_fraction(every, fraction, seed, groups=masked.case)


def _targets(method: str, masks: np.ndarray) -> np.ndarray:
  """Returns the targets of a head."""
  return masks if method == method_names.SEGMENTATION else overlap.boxes_of(masks)


def _without_image(method: str, train: Masked, count: int) -> np.ndarray:
  """Returns one fixed guess, made of all training images, `count` times."""
  if method == method_names.SEGMENTATION:
    one = np.mean(train.mask, axis=0) >= 0.5
  else:
    one = np.median(overlap.boxes_of(train.mask), axis=0)
  return np.broadcast_to(one, (count, *one.shape))


def _score(
  method: str, predicted: np.ndarray, masks: np.ndarray
) -> Iterator[tuple[str, float]]:
  """Yields the metrics of predictions by name."""
  if method == method_names.SEGMENTATION:
    ious = overlap.mask_iou(predicted, masks)
  else:
    ious = overlap.box_iou(predicted, overlap.boxes_of(masks))
  yield 'iou', float(np.mean(ious))
  yield 'found', float(np.mean(ious >= overlap.FOUND))


def _where(drawn: tf.Tensor, yes: tf.Tensor, no: tf.Tensor) -> tf.Tensor:
  """Chooses whole examples."""
  shape = [-1, *[1] * (no.shape.rank - 1)]
  return tf.where(tf.reshape(drawn, shape), yes, no)


def _check_finite(params: Any, what: str) -> None:
  if not all(np.all(np.isfinite(value)) for value in tf.nest.flatten(params)):
    raise ValueError(f'{what} is not finite; it has diverged.')


def _tensors(params: network_lib.Params) -> network_lib.Params:
  return collections.OrderedDict(
    (name, tf.convert_to_tensor(value)) for name, value in params.items()
  )
