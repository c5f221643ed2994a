"""The work of a measured round: regimes, and clients with random images."""

import collections
from collections.abc import Mapping
import dataclasses
import time
from typing import NamedTuple

import numpy as np

from tff_ssl.partition import partitions
from tff_ssl.settings import learning
from tff_ssl.simulation import client_data
from tff_ssl.simulation import cohort_sampling
from tff_ssl.simulation import simulated_clients

# Lesions of HAM10000 with 1, 2, ..., 6 photographs: 7,470 lesions, 10,015 photographs.
_LESIONS_BY_IMAGES = (5514, 1423, 490, 34, 5, 4)
# The most random bytes that are made. All workloads but the largest populations need
# fewer: 100,000 clients with 4 images of 32 x 32 x 3 would need 1.2 GB.
_POOL_BYTES = 2**26


@dataclasses.dataclass(frozen=True)
class Workload:
  """The cohort of a round.

  Attributes:
    clients: Number of clients in a cohort.
    examples_per_client: Examples of each client; None: 1 to 6, drawn from the
      numbers of photographs of HAM10000's lesions.
    local: Epochs and batch size, for the algorithms that have them.
    population: Registered clients, from which a cohort is drawn each round; None: the
      cohort is all of them.
  """

  clients: int
  examples_per_client: int | None
  local: learning.AnyClients = dataclasses.field(default_factory=learning.SgdClients)
  population: int | None = None

  def sizes(self, seed: int) -> np.ndarray:
    """Returns the number of examples of each registered client, int64 [population]."""
    count = self.clients if self.population is None else self.population
    if self.examples_per_client is not None:
      return np.full(count, self.examples_per_client, np.int64)
    lesions = np.asarray(_LESIONS_BY_IMAGES)
    drawn = np.random.default_rng(seed).choice(
      len(lesions), count, p=lesions / lesions.sum()
    )
    return drawn.astype(np.int64) + 1


# A and C: tiny clients that take one step. B: a few clients that train locally. D: the
# cases of a clinic.
REGIMES: Mapping[str, Workload] = collections.OrderedDict(
  A=Workload(128, 4),
  B=Workload(5, 500, learning.SgdClients(batch_size=50)),
  C=Workload(512, 1),
  D=Workload(256, None),
)


class Clients(NamedTuple):
  """Registered clients, ready for rounds.

  Attributes:
    data: Their examples.
    simulation: The clients in the form that TFF takes.
    partition: The positions of each client's examples in `data`.
    cohorts: Round -> the ids of its clients.
    register_seconds: Seconds to make this from sizes and images.
  """

  data: client_data.ArrayClientData
  simulation: simulated_clients.Clients
  partition: partitions.Partition
  cohorts: cohort_sampling.Cohorts
  register_seconds: float


def register(
  images: np.ndarray,
  sizes: np.ndarray,
  cohort: int,
  seed: int,
  num_packs: int | None = None,
  label: np.ndarray | None = None,
) -> Clients:
  """Makes clients of images that follow each other.

  Args:
    images: uint8 [n, height, width, 3].
    sizes: The number of images of each client.
    cohort: Number of clients of a round.
    seed: Seed of the cohorts.
    num_packs: See `simulated_clients.Clients`.
    label: int32 [n]; None: clients have none.
  """
  started = time.perf_counter()
  example_ids = np.arange(len(images), dtype=np.int64)
  partition = partitions.from_sizes(example_ids, sizes)
  data = client_data.ArrayClientData(images, example_ids, partition, label)
  cohorts = cohort_sampling.Cohorts(data.ids, cohort, seed)
  simulated = simulated_clients.Clients(data, num_packs=num_packs)
  return Clients(data, simulated, partition, cohorts, time.perf_counter() - started)


def random_images(
  count: int, image_size: int, seed: int, pool_bytes: int = _POOL_BYTES
) -> np.ndarray:
  """Makes random RGB images: the time of a round does not depend on what they show.

  If `pool_bytes` cannot hold them all, the images overlap: each begins before the
  previous one ends. All differ, and together they take no more than the pool.

  Args:
    count: At least 1.
    image_size: Height and width, in pixels.
    seed: Seed of the pixels.
    pool_bytes: About how many bytes they may take.

  Returns:
    uint8 [count, image_size, image_size, 3], a view that is not to be written to.
  """
  size = image_size * image_size * 3
  step = min(size, max(1, pool_bytes // count))
  pool = np.random.default_rng(seed).bytes((count - 1) * step + size)
  windows = np.lib.stride_tricks.sliding_window_view(
    np.frombuffer(pool, np.uint8), size
  )
  return windows[::step].reshape(count, image_size, image_size, 3)
