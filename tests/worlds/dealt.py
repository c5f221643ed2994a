"""Examples dealt to clients by a rule, and how many of each class each client has."""

import collections

import numpy as np

from tff_ssl.partition import spec


def build(
  rule: str, labels: np.ndarray, seed: int = 0
) -> collections.OrderedDict[str, np.ndarray]:
  """Deals examples by a rule such as 'skew:beta=0.5,clients=3'; each is a case."""
  return spec.build(rule, np.asarray(labels), np.arange(len(labels)), seed)


def histograms(rule: str, labels: np.ndarray, seed: int = 0) -> np.ndarray:
  """Returns the examples of each client in each class, [clients, classes]."""
  labels = np.asarray(labels)
  classes = np.max(labels) + 1
  held = build(rule, labels, seed).values()
  return np.stack([np.bincount(labels[own], minlength=classes) for own in held])
