"""What a task is: the examples of its splits and what is known about them."""

import dataclasses
import hashlib

import numpy as np


@dataclasses.dataclass(frozen=True, eq=False)
class Examples:
  """Examples of one split, in memory or memory-mapped.

  Attributes:
    image: uint8 [n, height, width, channels].
    label: int32 [n], -1 where an example is unlabelled.
    example_id: int64 [n], unique over all splits of the task.
    case: int64 [n], the case (patient, lesion) that an example belongs to.
  """

  image: np.ndarray
  label: np.ndarray
  example_id: np.ndarray
  case: np.ndarray

  def __post_init__(self) -> None:
    if self.image.ndim != 4 or self.image.dtype != np.uint8:
      raise ValueError(
        f'image is {self.image.dtype} of shape {self.image.shape}; it must be uint8 '
        'of shape [n, height, width, channels].'
      )
    for name, dtype in (
      ('label', np.int32),
      ('example_id', np.int64),
      ('case', np.int64),
    ):
      array = getattr(self, name)
      if array.shape != self.image.shape[:1] or array.dtype != dtype:
        raise ValueError(
          f'{name} is {array.dtype} of shape {array.shape}; it must be '
          f'{np.dtype(dtype)} of shape {self.image.shape[:1]}, as there are '
          f'{len(self.image)} images.'
        )
    if np.any(self.label < -1):
      raise ValueError(
        f'label holds {np.min(self.label)}; it must be a class or -1 (unlabelled).'
      )

  def __len__(self) -> int:
    return len(self.image)

  def take(self, positions: np.ndarray) -> 'Examples':
    """The examples at some positions.

    Args:
      positions: int [m].

    Returns:
      The m examples, in this order, in memory.
    """
    return Examples(
      image=self.image[positions],
      label=self.label[positions],
      example_id=self.example_id[positions],
      case=self.case[positions],
    )


@dataclasses.dataclass(frozen=True, eq=False)
class Task:
  """A data set, ready to be dealt to clients and to evaluate an encoder on.

  Attributes:
    name: The name in the registry.
    label_names: Names of the classes; empty where nothing is labelled.
    train: Examples to pretrain on.
    test: Examples to evaluate on.
    validation: Examples to choose settings on, or None.
    case_level: Whether a case, rather than an image, is what is classified.
    report: Lines that say what was left out.
  """

  name: str
  label_names: tuple[str, ...]
  train: Examples
  test: Examples
  validation: Examples | None = None
  case_level: bool = False
  report: tuple[str, ...] = ()

  def __post_init__(self) -> None:
    splits = self.splits()
    for split, examples in splits.items():
      if not len(examples):
        raise ValueError(f'Task {self.name!r} has 0 {split} examples; it needs some.')
      if examples.image.shape[1:] != self.image_shape:
        raise ValueError(
          f'Task {self.name!r} has {split} images of shape {examples.image.shape[1:]} '
          f'and train images of shape {self.image_shape}; they must be the same.'
        )
      if np.max(examples.label) >= self.num_classes:
        raise ValueError(
          f'Task {self.name!r} has the {split} label {np.max(examples.label)}; it '
          f'must be below the number of classes, {self.num_classes}.'
        )
    ids = np.concatenate([examples.example_id for examples in splits.values()])
    if len(np.unique(ids)) != len(ids):
      raise ValueError(f'Task {self.name!r} has an example_id twice.')
    cases = np.concatenate([np.unique(examples.case) for examples in splits.values()])
    if len(np.unique(cases)) != len(cases):
      raise ValueError(f'Task {self.name!r} has a case in two splits.')

  def splits(self) -> dict[str, Examples]:
    """The splits that there are, by name."""
    splits = {'train': self.train, 'validation': self.validation, 'test': self.test}
    return {name: examples for name, examples in splits.items() if examples is not None}

  @property
  def image_shape(self) -> tuple[int, int, int]:
    """Height, width and channels."""
    _, height, width, channels = self.train.image.shape
    return height, width, channels

  @property
  def num_classes(self) -> int:
    """Number of classes."""
    return len(self.label_names)

  def describe(self) -> str:
    """The task in one line."""
    parts = []
    for split, examples in self.splits().items():
      cases = f' of {len(np.unique(examples.case)):,} cases' if self.case_level else ''
      unlabelled = int(np.sum(examples.label < 0))
      note = f' ({unlabelled:,} unlabelled)' if unlabelled else ''
      parts.append(f'{split} {len(examples):,} images{cases}{note}')
    shape = 'x'.join(str(size) for size in self.image_shape)
    return f'{self.name}: {", ".join(parts)}, {self.num_classes} classes, {shape}'

  def fingerprint(self) -> str:
    """Identifies the examples: a digest of all ids, labels, cases and pixels."""
    digest = hashlib.blake2b(digest_size=16)
    for split, examples in self.splits().items():
      digest.update(split.encode())
      for array in (examples.example_id, examples.label, examples.case, examples.image):
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()
