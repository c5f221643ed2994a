"""Clients that differ in what their images look like: clusters of features.

Wang et al. (Dec-SSL, ICLR 2023), Section C.2, "Feature distribution shift": the
features of a trained network are reduced to 30 dimensions by PCA and clustered; each
cluster is a data source. No label is used.

Deviations:
  The paper does not name its clustering; this is k-means, the best of ten starts.
  The encoder is the caller's; the paper's is a supervised ResNet-50.
"""

import dataclasses

import numpy as np

from tff_ssl.partition import clients as clients_lib

_STARTS = 10


@dataclasses.dataclass(frozen=True)
class ClustersConfig:
  """How features are clustered.

  Attributes:
    clients: Number of clusters; each is a client. 1 is all data in one client.
    components: Dimensions that PCA keeps, or fewer where there are fewer.
  """

  clients: int
  components: int = 30

  def __post_init__(self) -> None:
    clients_lib.check_count('clients of a clusters partition', self.clients)
    clients_lib.check_count('components of a clusters partition', self.components)


def build(
  config: ClustersConfig, features: np.ndarray, rng: np.random.Generator
) -> clients_lib.Partition:
  """Makes each cluster of features a client.

  Args:
    config: Numbers of clusters and of dimensions.
    features: float [n, d], finite; row i is of example i.
    rng: Source of the starts of k-means.

  Returns:
    The partition; every example belongs to a client. An example whose features lie
    between two clusters to the last bit may go to either from machine to machine.

  Raises:
    ValueError: The features are not such an array, or have fewer distinct rows than
      there are clients.

  Source: Dec-SSL, Section C.2.
  """
  # Imported here, as it takes seconds that the other partitions need not wait for.
  from sklearn import cluster
  from sklearn import decomposition

  features = np.asarray(features, np.float64)
  if features.ndim != 2 or not features.size or not np.all(np.isfinite(features)):
    raise ValueError(
      f'The features of a clusters partition are of shape {list(features.shape)} with '
      f'{int(np.sum(~np.isfinite(features)))} non-finite numbers; they must be finite '
      'numbers [examples, dimensions].'
    )
  distinct = len(np.unique(features, axis=0))
  if distinct < config.clients:
    raise ValueError(
      f'A clusters partition of {config.clients} clients needs as many different '
      f'features, but the {len(features)} examples have {distinct}.'
    )
  seed = int(rng.integers(2**31))
  reduced = decomposition.PCA(
    min(config.components, *features.shape), random_state=seed
  ).fit_transform(features)
  found = cluster.KMeans(config.clients, n_init=_STARTS, random_state=seed).fit(reduced)
  return clients_lib.from_positions(
    [np.flatnonzero(found.labels_ == k) for k in range(config.clients)]
  )
