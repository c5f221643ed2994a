"""Clients that differ in what their images look like: clusters of features.

Wang et al. (Dec-SSL, ICLR 2023), Section C.2, "Feature distribution shift": the
features of a trained network are reduced to 30 dimensions by PCA and clustered. Each
cluster is a client, or clusters are mixed over clients (see `mixed_sources`). No label
is used.

Deviations:
  The paper does not name its clustering; this is k-means, the best of ten starts. Its
    clusters have unequal sizes, but the paper's data are evenly split: `balanced`.
  Whitening is not in the paper. Without it the first few components, in which features
    differ most, determine almost alone which cluster an example is in.
  The caller provides the encoder; the paper's is a supervised ResNet-50.
"""

import dataclasses

import numpy as np

from tff_ssl.computing import kinds
from tff_ssl.partition import equal_kmeans
from tff_ssl.partition import mixed_sources
from tff_ssl.partition import partitions

_STARTS = 10


@dataclasses.dataclass(frozen=True)
class ClustersConfig(mixed_sources.MixedConfig):
  """How features are clustered; the clusters are the sources.

  Attributes:
    components: Dimensions that PCA keeps, or all if there are fewer.
    whiten: Whether these are scaled to the same variance.
    balanced: Whether clusters, and clients mixed by alpha, are of equal sizes.
  """

  components: kinds.Count = 30
  whiten: bool = False
  balanced: bool = False

  kind = 'clusters'


def build(
  config: ClustersConfig, features: np.ndarray, rng: np.random.Generator
) -> partitions.Partition:
  """Clusters features, and deals the clusters to clients.

  Args:
    config: Numbers of clusters and of dimensions.
    features: float [n, d], finite; row i is of example i.
    rng: Source of the starts of k-means, and of the draws that mix clusters.

  Returns:
    The partition. Every example belongs to a client, except a few if clusters are mixed
    by alpha over balanced clients. An example whose features are exactly between two
    clusters may go to different clusters on different machines.

  Raises:
    ValueError: The features are not such an array, or have fewer distinct rows than
      there are clusters, or not all clients can be filled.

  Source: Dec-SSL, Section C.2.
  """
  # Imported here: it takes seconds, for which the other partitions need not wait.
  from sklearn import cluster
  from sklearn import decomposition

  features = np.asarray(features, np.float64)
  if features.ndim != 2 or not features.size or not np.all(np.isfinite(features)):
    raise ValueError(
      f'The features of a clusters partition are of shape {list(features.shape)} with '
      f'{int(np.sum(~np.isfinite(features)))} non-finite numbers; they must be finite '
      'numbers [examples, dimensions].'
    )
  clusters = config.num_sources
  distinct = len(np.unique(features, axis=0))
  if distinct < clusters:
    raise ValueError(
      f'A clusters partition of {clusters} clusters needs at least as many different '
      f'features, but the {len(features)} examples have {distinct}.'
    )
  seed = int(rng.integers(2**31))
  reduced = decomposition.PCA(
    min(config.components, *features.shape), random_state=seed, whiten=config.whiten
  ).fit_transform(features)
  kmeans = cluster.KMeans(clusters, n_init=_STARTS, random_state=seed).fit(reduced)
  source = kmeans.labels_
  if config.balanced:
    source = equal_kmeans.cluster(reduced, source, clusters)
  return mixed_sources.deal(config, source, rng, config.balanced)
