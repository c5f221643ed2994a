"""Regimes and populations: their sizes, images, and the cohort of a round."""

import itertools

import numpy as np
import pytest

from binaries.benchmarking import experiments
from binaries.benchmarking import problems
from binaries.benchmarking import workloads
from tff_ssl.augment import configs
from tff_ssl.encoders import projector
from tff_ssl.encoders import resnet
from tff_ssl.federated import local_training
from tff_ssl.objectives import dual_encoder


@pytest.mark.parametrize(
  'name, clients, examples, batch_size',
  [('A', 128, 4, None), ('B', 5, 500, 50), ('C', 512, 1, None)],
)
def test_regime_of_equal_clients(name, clients, examples, batch_size):
  regime = workloads.REGIMES[name]
  assert regime.sizes(seed=0).tolist() == [examples] * clients
  assert regime.clients == clients
  assert regime.local == local_training.LocalPlan(1, batch_size)


def test_regime_of_cases():
  regime = workloads.REGIMES['D']
  sizes = regime.sizes(seed=0)
  assert len(sizes) == regime.clients == 256
  assert set(sizes) <= set(range(1, 7))
  assert len(set(sizes)) >= 3
  np.testing.assert_array_equal(sizes, regime.sizes(seed=0))
  assert (sizes != regime.sizes(seed=1)).any()


def test_cases_are_as_large_as_lesions_of_ham10000():
  # 10,015 photographs of 7,470 lesions, 1,956 of them with more than one and 43 with
  # more than three. Tolerances: five standard deviations of 20,000 draws.
  sizes = workloads.Workload(20_000, None).sizes(seed=3)
  assert np.mean(sizes) == pytest.approx(10_015 / 7_470, abs=0.023)
  assert np.mean(sizes > 1) == pytest.approx(1_956 / 7_470, abs=0.016)
  assert np.mean(sizes > 3) == pytest.approx(43 / 7_470, abs=0.003)


def test_images_that_fit_do_not_overlap():
  images = workloads.random_images(5, image_size=4, seed=0)
  assert (images.shape, images.dtype) == ((5, 4, 4, 3), np.uint8)
  low, high = np.byte_bounds(images)
  assert high - low == images.size


@pytest.mark.parametrize('pool_bytes', [500, 10])
def test_images_that_do_not_fit_differ_and_share_the_pool(pool_bytes):
  images = workloads.random_images(50, 4, seed=0, pool_bytes=pool_bytes)
  assert len(np.unique(images.reshape(50, -1), axis=0)) == 50
  low, high = np.byte_bounds(images)
  assert high - low <= max(pool_bytes, 50) + 4 * 4 * 3


def registered(**fields) -> workloads.Clients:
  workload = workloads.Workload(**fields)
  return workloads.register(workload, image_size=2, seed=0, num_packs=0)


def test_registered_clients_share_out_all_examples():
  clients = registered(clients=12, examples_per_client=None)
  sizes = workloads.Workload(12, None).sizes(seed=0)
  assert [clients.data.num_examples(k) for k in clients.data.client_ids] == [*sizes]
  positions = np.concatenate([*clients.partition.values()])
  assert positions.tolist() == list(range(sizes.sum()))
  # All of them are in the cohort.
  assert clients.cohorts(0) == clients.cohorts(1) == clients.data.client_ids


def flat(lists) -> list[int]:
  return [*itertools.chain(*lists)]


def test_both_sides_have_the_examples_of_the_cohort_that_is_drawn():
  clients = registered(clients=3, examples_per_client=2, population=40)
  encoder = resnet.build_encoder('resnet8', (8, 8, 3), width=0.25)
  model = dual_encoder.Siamese(
    encoder, projector.build_projector(encoder.output_dim, (8, 8)), configs.FLIP
  )
  problem = problems.Problem(
    model, clients, local_training.LocalPlan(epochs=2, batch_size=4), seed=0
  )
  seen = []
  for round in range(2):
    federated, centralized = (
      [[int(e['example_id']) for e in data] for data in sets(problem, round)]
      for sets in (
        experiments.federated_cohort,
        experiments.centralized_batches,
      )
    )
    assert [len(ids) for ids in federated] == [2, 2, 2]
    assert [len(ids) for ids in centralized] == [4, 2, 4, 2]
    assert flat(centralized) == flat(federated) * 2
    assert experiments.visited_examples(problem, round) == 12
    seen.append(federated)
  assert seen[0] != seen[1]
