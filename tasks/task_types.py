"""What a task is: the examples of its splits and what is known about them."""

from collections.abc import Mapping
import dataclasses
import hashlib

import numpy as np

from tasks import intake as intake_lib
from tasks import provenance

# The name of the field that holds images.
IMAGE = 'image'
_SHOWN = 3
# Names that a field may not have.
_TAKEN = ('label', 'example_id', 'case', 'client')


@dataclasses.dataclass(frozen=True, eq=False)
class Examples:
  """Examples of one split, in memory or memory-mapped.

  Attributes:
    fields: What encoders read, by name: `image` (uint8 [n, height, width, channels]),
      or others, such as `left` and `right` of two modalities or the `features` of a
      table (float32 [n, d]). Fields of uint8 are images; all fields have n rows.
    label: int32 [n], -1 for an unlabelled example.
    example_id: int64 [n], unique over all splits of the task.
    case: int64 [n], the case (patient, lesion) that an example belongs to; it may be
      classified as one.
    client: int64 [n], the natural holder of the example (patient, hospital), the same
      for all of a case; None if each case is a client.
  """

  fields: Mapping[str, np.ndarray]
  label: np.ndarray
  example_id: np.ndarray
  case: np.ndarray
  client: np.ndarray | None = None

  def __post_init__(self) -> None:
    if not self.fields:
      raise ValueError('fields is empty; examples need one that an encoder reads.')
    for name, array in self.fields.items():
      _check_field(name, array)
    first = next(iter(self.fields))
    shape = self.fields[first].shape[:1]
    for name, array in self.fields.items():
      if array.shape[:1] != shape:
        raise ValueError(
          f'{name} has {len(array)} rows and {first} has {shape[0]}; all fields must '
          'have the same number of rows.'
        )
    for name, dtype in (
      ('label', np.int32),
      ('example_id', np.int64),
      ('case', np.int64),
      ('client', np.int64),
    ):
      # `client` alone may be None.
      array = self.holder if name == 'client' else getattr(self, name)
      if array.shape != shape or array.dtype != dtype:
        raise ValueError(
          f'{name} is {array.dtype} of shape {array.shape}; it must be '
          f'{np.dtype(dtype)} of shape {shape}, as there are {shape[0]} examples.'
        )
    if np.any(self.label < -1):
      raise ValueError(
        f'label has the value {np.min(self.label)}; it must be a class or -1 '
        '(unlabelled).'
      )

  def __len__(self) -> int:
    return len(self.label)

  def __getitem__(self, name: str) -> np.ndarray:
    """Returns a field by its name.

    Raises:
      ValueError: There is no field of that name.
    """
    if name not in self.fields:
      raise ValueError(
        f'The examples have no field {name!r}; they have {", ".join(self.fields)}.'
      )
    return self.fields[name]

  @property
  def image(self) -> np.ndarray:
    """The field `image`, uint8 [n, height, width, channels].

    Raises:
      ValueError: There are no images.
    """
    return self[IMAGE]

  @property
  def holder(self) -> np.ndarray:
    """The natural holder of each example: its client, or its case; int64 [n]."""
    return self.case if self.client is None else self.client

  def with_fields(self, **fields: np.ndarray) -> 'Examples':
    """The same examples with other arrays as some of their fields, by name."""
    return dataclasses.replace(self, fields={**self.fields, **fields})

  def take(self, positions: np.ndarray) -> 'Examples':
    """The examples at some positions.

    Args:
      positions: int [m].

    Returns:
      The m examples, in this order, in memory.
    """
    return Examples(
      fields={name: array[positions] for name, array in self.fields.items()},
      label=self.label[positions],
      example_id=self.example_id[positions],
      case=self.case[positions],
      client=None if self.client is None else self.client[positions],
    )


def _check_field(name: str, array: np.ndarray) -> None:
  if name in _TAKEN:
    raise ValueError(
      f'A field is called {name!r}; the names {", ".join(_TAKEN)} are reserved.'
    )
  if name == IMAGE or array.dtype == np.uint8:
    if array.ndim != 4 or array.dtype != np.uint8:
      raise ValueError(
        f'{name} is {array.dtype} of shape {array.shape}; it must be uint8 '
        'of shape [n, height, width, channels].'
      )
  elif array.ndim < 2 or array.dtype != np.float32:
    raise ValueError(
      f'{name} is {array.dtype} of shape {array.shape}; it must be float32 of shape '
      '[n, ...], or uint8 images [n, height, width, channels].'
    )


@dataclasses.dataclass(frozen=True, eq=False)
class Described:
  """Descriptions of the classes in one of two modalities, such as their names.

  Attributes:
    field: The modality.
    examples: float32 [m, ...], descriptions, at least one of each class.
    label: int32 [m], the class of each.
  """

  field: str
  examples: np.ndarray
  label: np.ndarray


@dataclasses.dataclass(frozen=True, eq=False)
class Task:
  """A data set, ready to be dealt to clients and to evaluate an encoder on.

  Attributes:
    name: The name in the registry.
    label_names: Names of the classes; empty if nothing is labelled.
    train: Examples to pretrain on.
    test: Examples to evaluate on.
    validation: Examples to choose settings on, or None.
    case_level: Whether cases, rather than images, are classified.
    report: Lines that say what was left out.
    intake: What became of its files, if the task is one of files; `report` says it.
    case_names: Names of the cases, in lexicographic order; empty if they have none.
    client_names: Names of the clients, likewise, if examples have clients.
    scaling: For a table: the number that was subtracted from each feature, and the
      factor by which it was then multiplied, 0 for a constant one; None if nothing was
      scaled.
    measured: What of the inputs was measured on all examples together; empty if each
      input depends on its own example alone.
    described: Descriptions of the classes in one of two modalities, if there are any.
    files: Where the images come from, if they are files.
    digests: A digest of each example's content by example_id, '' where it could not be
      read; empty for published data that are always the same.
    grows: Whether the data are a user's own, to which more may be added; then no split
      moves (`splits.hold_out_named`).
    split_by_name: Whether names alone choose the test split.
  """

  name: str
  label_names: tuple[str, ...]
  train: Examples
  test: Examples
  validation: Examples | None = None
  case_level: bool = False
  report: tuple[str, ...] = ()
  intake: intake_lib.Intake | None = None
  case_names: tuple[str, ...] = ()
  client_names: tuple[str, ...] = ()
  scaling: tuple[np.ndarray, np.ndarray] | None = None
  measured: tuple[provenance.Measured, ...] = ()
  described: Described | None = None
  files: provenance.Files | None = None
  digests: tuple[str, ...] = ()
  grows: bool = False
  split_by_name: bool = False

  def __post_init__(self) -> None:
    splits = self.splits()
    for split, examples in splits.items():
      if not len(examples):
        raise ValueError(f'Task {self.name!r} has 0 {split} examples; it needs some.')
      shapes = {name: array.shape[1:] for name, array in examples.fields.items()}
      if shapes != self.shapes:
        raise ValueError(
          f'Task {self.name!r} has {split} fields of shapes {shapes} and train fields '
          f'of shapes {self.shapes}; they must be the same.'
        )
      if np.max(examples.label) >= self.num_classes:
        raise ValueError(
          f'Task {self.name!r} has the {split} label {np.max(examples.label)}; it '
          f'must be below the number of classes, {self.num_classes}.'
        )
    ids = np.concatenate([examples.example_id for examples in splits.values()])
    if len(np.unique(ids)) != len(ids):
      raise ValueError(f'Task {self.name!r} has an example_id twice.')
    self._check_apart('case', [examples.case for examples in splits.values()])
    self._check_clients(list(splits.values()))

  def _check_apart(self, what: str, by_split: list[np.ndarray]) -> None:
    """Raises ValueError if a case or a client is in two splits."""
    distinct = np.concatenate([np.unique(numbers) for numbers in by_split])
    if len(np.unique(distinct)) != len(distinct):
      raise ValueError(f'Task {self.name!r} has a {what} in two splits.')

  def _check_clients(self, splits: list[Examples]) -> None:
    """Raises ValueError if some examples have no client, or clients share a case."""
    clients = [examples.client for examples in splits if examples.client is not None]
    if not clients:
      return
    if len(clients) < len(splits):
      raise ValueError(f'Task {self.name!r} has clients in some splits only.')
    self._check_apart('client', clients)
    for examples in splits:
      pairs = np.unique(np.stack([examples.case, examples.holder]), axis=1)
      if len(np.unique(pairs[0])) != pairs.shape[1]:
        raise ValueError(f'Task {self.name!r} has a case with two clients.')

  def splits(self) -> dict[str, Examples]:
    """The existing splits, by name."""
    splits = {'train': self.train, 'validation': self.validation, 'test': self.test}
    return {name: examples for name, examples in splits.items() if examples is not None}

  @property
  def image_shape(self) -> tuple[int, int, int]:
    """Height, width and channels.

    Raises:
      ValueError: There are no images.
    """
    _, height, width, channels = self.train.image.shape
    return height, width, channels

  @property
  def shapes(self) -> dict[str, tuple[int, ...]]:
    """The shape of an example in each field."""
    return {name: array.shape[1:] for name, array in self.train.fields.items()}

  @property
  def field(self) -> str:
    """The field that is encoded and evaluated: the first; of two modalities `left`."""
    return next(iter(self.train.fields))

  @property
  def num_classes(self) -> int:
    """Number of classes."""
    return len(self.label_names)

  @property
  def has_labels(self) -> bool:
    """Whether an example of any split has a label."""
    return any(np.any(examples.label >= 0) for examples in self.splits().values())

  def why_unlabelled(self) -> str | None:
    """Why labels cannot be used, or None: nothing has one, or nothing in a split.

    Only of splits by name, which may put few labels into one split. A list that gives
    such splits is wrong.
    """
    parts = {'': self.has_labels}
    if self.split_by_name:
      splits = {'train ': self.train, 'test ': self.test}
      parts |= {split: bool(np.any(own.label >= 0)) for split, own in splits.items()}
    bare = [part for part, has_labels in parts.items() if not has_labels]
    return f'No {bare[0]}example of {self.name} has a label' if bare else None

  @property
  def holder_names(self) -> tuple[str, ...]:
    """Names of the holders of examples: see `Examples.holder`."""
    return self.case_names if self.train.client is None else self.client_names

  def names(self, examples: Examples) -> list[str]:
    """Names of examples: those of their files, or their places (`row 1` and so on).

    Args:
      examples: Examples of one of the splits, n.
    """
    ids = examples.example_id.tolist()
    if self.files is None:
      return [f'row {example_id + 1}' for example_id in ids]
    return [self.files.images[example_id] for example_id in ids]

  def names_of_holders(self, examples: Examples) -> list[str]:
    """Names of the holders of examples; an example without a holder is its own.

    Args:
      examples: Examples of one of the splits, n.
    """
    if not self.holder_names:
      return self.names(examples)
    return [self.holder_names[holder] for holder in examples.holder.tolist()]

  def describe(self, of_labels: bool = True) -> str:
    """The task in one line.

    Args:
      of_labels: Whether it says how many examples have none.
    """
    parts = []
    unit = 'image' if self.field == IMAGE else 'example'
    for split, examples in self.splits().items():
      counted = [intake_lib.many(len(examples), unit)]
      if self.case_level:
        counted.append(intake_lib.many(len(np.unique(examples.case)), 'case'))
      if examples.client is not None:
        counted.append(intake_lib.many(len(np.unique(examples.client)), 'client'))
      unlabelled = int(np.sum(examples.label < 0))
      note = f' ({unlabelled:,} unlabelled)' if unlabelled and of_labels else ''
      parts.append(f'{split} {" of ".join(counted)}{note}')
    shapes = ', '.join(
      ('' if name == IMAGE else f'{name} ') + 'x'.join(str(size) for size in shape)
      for name, shape in self.shapes.items()
    )
    line = f'{self.name}: {", ".join(parts)}, {self.num_classes} classes, {shapes}'
    if self.split_by_name:
      line += '; the split is by name: a fifth on average, and additions move none'
    return line

  def warnings(self) -> list[str]:
    """Sentences on likely mistakes in the data, if `intake` does not say them."""
    if self.intake is not None:
      return []
    known, tested = (
      set(np.unique(examples.label[examples.label >= 0]).tolist())
      for examples in (self.train, self.test)
    )
    missing = [self.label_names[label] for label in sorted(tested - known)]
    if not missing:
      return []
    shown = ', '.join(missing[:_SHOWN]) + (', ...' if len(missing) > _SHOWN else '')
    warning = (
      f'The task {self.name!r} has {len(missing)} of {self.num_classes} classes only '
      f'in its test split ({shown}); no classifier can learn them.'
    )
    return [warning]

  def fingerprint(self) -> str:
    """Identifies the examples: a digest of all ids, labels, cases, clients, fields."""
    digest = hashlib.blake2b(digest_size=16)
    for split, examples in self.splits().items():
      digest.update(split.encode())
      for name in examples.fields:
        if name != IMAGE:
          digest.update(name.encode())
      known = [examples.example_id, examples.label, examples.case]
      if examples.client is not None:
        digest.update(b'client')
        known.append(examples.client)
      for array in (*known, *examples.fields.values()):
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()
