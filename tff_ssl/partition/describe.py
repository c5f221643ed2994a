"""Describes a partition: sizes, label histograms, distance from IID."""

from collections.abc import Sequence
import csv
import dataclasses
import os

import numpy as np

from tff_ssl.computing import inert
from tff_ssl.partition import flat
from tff_ssl.partition import partitions
from tff_ssl.storage import files

# Clients whose rows are computed at a time: a million at once would take a GB.
_ROWS = 2**16


@dataclasses.dataclass(frozen=True, eq=False)
class PartitionReport:
  """Sizes and label histograms of the clients.

  Attributes:
    client_ids: The clients.
    client_sizes: int64 [clients], examples of each.
    histograms: int64 [clients, classes], labelled examples of each class.
    global_histogram: int64 [classes], of all examples, including those that belong to
      no client.
    total_examples: Number of all examples.
  """

  client_ids: Sequence[str]
  client_sizes: np.ndarray
  histograms: np.ndarray
  global_histogram: np.ndarray
  total_examples: int

  @property
  def clients(self) -> int:
    """Number of clients."""
    return len(self.client_ids)

  @property
  def examples(self) -> int:
    """Number of examples that belong to a client."""
    return int(np.sum(self.client_sizes))

  @property
  def labelled_sizes(self) -> np.ndarray:
    """Examples of each client that have a label, int64 [clients]."""
    return np.sum(self.histograms, axis=1)

  @property
  def mean_emd(self) -> float:
    """Mean earth-mover distance of the clients' labels to the global labels.

    The distance of client k is sum_c |p_k(c) - p(c)|, from 0 (the same distribution)
    to 2 (disjoint), where p_k is over its labelled examples and p over all labelled
    examples. The mean is over the clients with a labelled example, with equal weights;
    NaN if no client has one.

    Source: Zhao et al., "Federated Learning with Non-IID Data" (2018), Section 3.
    """
    labelled = np.flatnonzero(self.labelled_sizes)
    if not len(labelled):
      return float('nan')
    overall = self.global_histogram / np.sum(self.global_histogram)
    distances = np.zeros(len(labelled))
    for start in range(0, len(labelled), _ROWS):
      counts = self.histograms[labelled[start : start + _ROWS]]
      local = counts / np.sum(counts, axis=1, keepdims=True)
      distances[start : start + _ROWS] = np.sum(np.abs(local - overall), axis=1)
    return float(np.mean(distances))

  def line(self) -> str:
    """The partition in one line."""
    sizes = self.client_sizes
    distance = self.mean_emd
    shown = 'unknown (no labels)' if np.isnan(distance) else f'{distance:.3f}'
    return (
      f'{self.clients:,} clients with {self.examples:,} of {self.total_examples:,} '
      f'examples, size min {np.min(sizes):,} median {np.median(sizes):,.12g} max '
      f'{np.max(sizes):,}, mean earth-mover distance to the global labels {shown}'
    )

  def write_csv(self, path: str | os.PathLike[str]) -> None:
    """Writes one row per client: client_id, size, label_0, label_1, ...

    Ids are written as cells (`inert.cell`), of which `inert.of_cell` makes ids again.

    Args:
      path: The file, replaced at once when it is complete.
    """
    classes = self.histograms.shape[1]
    with files.atomic(path) as aside, aside.open('w', newline='') as file:
      writer = csv.writer(file, lineterminator='\n')
      writer.writerow(['client_id', 'size', *(f'label_{c}' for c in range(classes))])
      for start in range(0, self.clients, _ROWS):
        rows = slice(start, start + _ROWS)
        for client, size, counts in zip(
          self.client_ids[rows],
          self.client_sizes[rows].tolist(),
          self.histograms[rows].tolist(),
          strict=True,
        ):
          writer.writerow([inert.cell(client), size, *counts])


def describe(
  partition: partitions.Partition, labels: np.ndarray, num_classes: int
) -> PartitionReport:
  """Counts the examples and labels of each client.

  Args:
    partition: The clients.
    labels: int [n], the label of each example, -1 for none.
    num_classes: Labels are below this.

  Returns:
    The report.

  Raises:
    ValueError: The partition has no clients, or a label is not below `num_classes`.
  """
  if not partition:
    raise ValueError('The partition has 0 clients; it must have at least 1.')
  if len(labels) and np.max(labels) >= num_classes:
    raise ValueError(
      f'Label {np.max(labels)} is not below num_classes, which is {num_classes}.'
    )
  held = flat.flatten(partition)
  held_labels = labels[held.together]
  # One count for all clients: many thousand separate counts took five times as long.
  # Column 0 counts the unlabelled.
  columns = num_classes + 1
  histograms = np.bincount(
    held.owners * columns + held_labels + 1, minlength=len(held) * columns
  ).reshape(len(held), columns)
  return PartitionReport(
    client_ids=held.client_ids,
    client_sizes=held.sizes,
    histograms=histograms[:, 1:],
    global_histogram=np.bincount(labels + 1, minlength=num_classes + 1)[1:],
    total_examples=len(labels),
  )
