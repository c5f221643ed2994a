"""Partitions by their specification, such as `dirichlet:alpha=0.1,examples=4`.

  iid:examples=4            clients of 4 examples, IID
  iid:clients=5             5 clients of equal size, IID
  dirichlet:alpha=0,examples=4   clients of 4 examples, of one class each
  shares:alpha=0.1,clients=5     5 clients, each with its share of every class
  shares:alpha=0.1,clients=5,balanced=true   the same, of equal sizes
  skew:beta=0.5,clients=5        half of the data spread evenly, half by class
  classes:per_client=2,clients=5 5 clients of 2 classes each
  quantity:alpha=0.5,clients=10  10 clients of unequal sizes, IID
  quantity:power=1,clients=10    the same, by a power law
  clusters:clients=5             5 clusters of the features of an encoder
  clusters:clients=5,whiten=true,balanced=true   of equal sizes, of whitened features
  clusters:clients=20,sources=5,alpha=0.1        5 clusters, mixed over 20 clients
  rotation:clients=5             5 clients, IID but for the rotation of their images
  rotation:clients=5,alpha=0.1   the same, with rotations mixed over clients
  style:clients=5,beta=0.5       IID but for the style of images, half of each style
                                 spread evenly over the clients
  case                      each case is a client, or each holder where cases have
                            holders
  client                    the same, by another name
  case:max_examples=6       the same, of at most 6 examples

The fields are those of the kind's configuration.
"""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from tff_ssl.computing import kinds
from tff_ssl.partition import classes
from tff_ssl.partition import clusters
from tff_ssl.partition import dirichlet
from tff_ssl.partition import iid
from tff_ssl.partition import mixed_sources
from tff_ssl.partition import natural_clients
from tff_ssl.partition import partitions
from tff_ssl.partition import quantity
from tff_ssl.partition import shares
from tff_ssl.partition import skew
from tff_ssl.partition import sources

PartitionConfig: TypeAlias = (
  iid.IidConfig
  | dirichlet.DirichletConfig
  | shares.SharesConfig
  | skew.SkewConfig
  | classes.ClassesConfig
  | quantity.QuantityConfig
  | clusters.ClustersConfig
  | sources.RotationConfig
  | sources.StyleConfig
  | natural_clients.CaseConfig
)

_CONFIGS: dict[str, type[PartitionConfig]] = {
  'iid': iid.IidConfig,
  'dirichlet': dirichlet.DirichletConfig,
  'shares': shares.SharesConfig,
  'skew': skew.SkewConfig,
  'classes': classes.ClassesConfig,
  'quantity': quantity.QuantityConfig,
  'clusters': clusters.ClustersConfig,
  'rotation': sources.RotationConfig,
  'style': sources.StyleConfig,
  'case': natural_clients.CaseConfig,
  'client': natural_clients.CaseConfig,
}
KINDS = tuple(_CONFIGS)
_OF_SOURCES = (sources.RotationConfig, sources.StyleConfig)
_TRANSFORMS: dict[type[PartitionConfig], sources.Transform] = {
  sources.RotationConfig: sources.rotate,
  sources.StyleConfig: sources.stylise,
}


def parse(text: str) -> PartitionConfig:
  """Reads the specification of a partition.

  Args:
    text: `kind` or `kind:field=value,...` (`computing.kinds`), see the module.

  Returns:
    The configuration.

  Raises:
    ValueError: The kind, a field or a value is not allowed, or a field is missing or
      given twice.
  """
  try:
    config: PartitionConfig = kinds.parse(text, _CONFIGS)
  except ValueError as error:
    raise ValueError(f'The partition is {text!r}: {error}') from error
  return config


def needs_features(config: PartitionConfig) -> bool:
  """Whether `build` needs the features of the examples."""
  return isinstance(config, clusters.ClustersConfig)


def build(
  config: str | PartitionConfig,
  labels: np.ndarray,
  cases: np.ndarray,
  seed: int,
  features: np.ndarray | None = None,
  names: Sequence[str] = (),
) -> partitions.Partition:
  """Deals the training examples to clients.

  Some kinds also change the images that clients hold: see `client_images`.

  Args:
    config: A configuration, or its specification as text.
    labels: int [n], the label of each example, -1 for none.
    cases: int [n], the case of each example, or its holder, for natural clients.
    seed: The same seed, configuration and arrays give the same partition.
    features: float [n, d], an encoder's features of each example, if the kind needs
      them.
    names: The name of each case, in lexicographic order, for clients that are cases;
      without names, clients are numbered.

  Returns:
    The partition: no example belongs to two clients.

  Raises:
    ValueError: The configuration does not fit the examples.
  """
  if labels.ndim != 1 or labels.shape != cases.shape:
    raise ValueError(
      f'labels have shape {labels.shape} and cases {cases.shape}; they must be two '
      'vectors of the same length.'
    )
  config = parse(config) if isinstance(config, str) else config
  rng = np.random.default_rng(seed)
  match config:
    case iid.IidConfig():
      return iid.build(config, len(labels), rng)
    case dirichlet.DirichletConfig():
      return dirichlet.build(config, labels, rng)
    case shares.SharesConfig():
      return shares.build(config, labels, rng)
    case skew.SkewConfig():
      return skew.build(config, labels, rng)
    case classes.ClassesConfig():
      return classes.build(config, labels, rng)
    case quantity.QuantityConfig():
      return quantity.build(config, len(labels), rng)
    case clusters.ClustersConfig():
      return clusters.build(config, _fitting(features, len(labels)), rng)
    case sources.RotationConfig() | sources.StyleConfig():
      source = sources.draw(config, len(labels), rng)
      return mixed_sources.deal(config, source, rng, balanced=True)
    case natural_clients.CaseConfig():
      return natural_clients.build(config, cases, rng, names)
  raise ValueError(f'{config!r} is not a configuration of a partition.')


def changes_images(config: str | PartitionConfig) -> bool:
  """Returns whether a kind gives each client, or each source, changed images."""
  config = parse(config) if isinstance(config, str) else config
  return type(config) in _TRANSFORMS


def source_of(
  config: str | PartitionConfig, num_examples: int, seed: int
) -> np.ndarray | None:
  """Returns the source of each example, by which its image is changed.

  Args:
    config: A configuration, or its specification as text.
    num_examples: Number of all examples.
    seed: The seed that `build` was given.

  Returns:
    int64 [num_examples], if the images are changed by sources that are mixed over
    clients; None if they are not changed, or client k is source k.
  """
  config = parse(config) if isinstance(config, str) else config
  if not isinstance(config, _OF_SOURCES) or not config.is_mixed:
    return None
  return sources.draw(config, num_examples, np.random.default_rng(seed))


def client_images(
  config: str | PartitionConfig,
  images: np.ndarray,
  partition: partitions.Partition,
  source: np.ndarray | None = None,
) -> np.ndarray:
  """Returns images as the clients hold them.

  Args:
    config: A configuration, or its specification as text.
    images: uint8 [n, H, W, C], in memory or memory-mapped.
    partition: What `build` made of the configuration.
    source: What `source_of` returned.

  Returns:
    `images` itself, unless the kind changes images: then changed copies in memory,
    uint8 [n, H, W, C].

  Raises:
    ValueError: Sources are mixed over clients, and `source` is None.
  """
  config = parse(config) if isinstance(config, str) else config
  if not isinstance(config, _OF_SOURCES):
    return images
  held = list(partition.values())
  if config.is_mixed:
    if source is None:
      raise ValueError(
        f'source is None with {config}, whose clients hold images of several sources; '
        'it must be the source of each image.'
      )
    held = [np.flatnonzero(source == k) for k in range(config.num_sources)]
  return sources.change(_TRANSFORMS[type(config)], images, held)


def _fitting(features: np.ndarray | None, num_examples: int) -> np.ndarray:
  if features is None or len(features) != num_examples:
    raise ValueError(
      f'A clusters partition needs features [{num_examples}, d], an encoding of each '
      f'example; they are {None if features is None else list(features.shape)}.'
    )
  return features
