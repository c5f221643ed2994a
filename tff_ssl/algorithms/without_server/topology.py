"""Communication graphs of nodes without a server, and how neighbours average.

A graph of K nodes is undirected and connected. Its mixing matrix W has the Metropolis
weights. For an edge between nodes of degrees d_i and d_j they are

  W_ij = 1 / (1 + max(d_i, d_j)),    W_ii = 1 - sum_j W_ij,

and 0 elsewhere. A node computes its row from its own degree and its neighbours'. W is
symmetric and doubly stochastic: averaging with it keeps the mean of all nodes, and
multiplies their distance from the mean by at most 1 - spectral gap. For the complete
graph all weights are 1/K.

Source: Xiao, Boyd, Lall, "A Scheme for Robust Distributed Sensor Fusion Based on
Average Consensus", IPSN 2005, where these are called Metropolis weights.
"""

import collections
import csv
import dataclasses
import os
import pathlib

import numpy as np

STAR, RING, TREE, COMPLETE = 'star', 'ring', 'tree', 'complete graph'
# How many random graphs are drawn before giving up.
_MOST_DRAWS = 1000


@dataclasses.dataclass(frozen=True)
class Topology:
  """An undirected, connected graph.

  Attributes:
    name: For figures and errors.
    nodes: K, at least 1.
    edges: Pairs (i, j), i < j, of nodes in [0, K), each once.
  """

  name: str
  nodes: int
  edges: tuple[tuple[int, int], ...]

  def __post_init__(self):
    if self.nodes < 1:
      raise ValueError(f'{self.name} has {self.nodes} nodes; there must be at least 1.')
    if len(set(self.edges)) < len(self.edges):
      raise ValueError(f'{self.name} has an edge twice; each edge must occur once.')
    for edge in self.edges:
      if not 0 <= edge[0] < edge[1] < self.nodes:
        raise ValueError(
          f'{self.name} has the edge {edge}; it must be (i, j) with 0 <= i < j < '
          f'{self.nodes}.'
        )
    if (lost := self._unreached()) is not None:
      raise ValueError(
        f'{self.name} has no path from node 0 to node {lost}; it must be connected.'
      )

  @property
  def adjacency(self) -> np.ndarray:
    """A: int64 [K, K], 1 where two nodes are neighbours."""
    result = np.zeros((self.nodes, self.nodes), np.int64)
    for i, j in self.edges:
      result[i, j] = result[j, i] = 1
    return result

  @property
  def degrees(self) -> np.ndarray:
    """How many neighbours each node has, int64 [K]."""
    return np.sum(self.adjacency, axis=1)

  @property
  def mixing(self) -> np.ndarray:
    """W: the Metropolis weights, float64 [K, K]."""
    degrees = self.degrees
    largest = np.maximum(degrees[:, np.newaxis], degrees)
    weights = self.adjacency / (1.0 + largest)
    return weights + np.diag(1.0 - np.sum(weights, axis=1))

  @property
  def spectral_gap(self) -> float:
    """1 - |lambda_2|, with W's second largest eigenvalue in magnitude; in (0, 1].

    It is 1 if one averaging gives all nodes the mean.
    """
    magnitudes = np.sort(np.abs(np.linalg.eigvalsh(self.mixing)))
    return float(1.0 - magnitudes[-2]) if self.nodes > 1 else 1.0

  def _unreached(self) -> int | None:
    """Returns a node to which no path leads from node 0; None: there is none."""
    neighbours = collections.defaultdict(list)
    for i, j in self.edges:
      neighbours[i].append(j)
      neighbours[j].append(i)
    reached, ahead = {0}, [0]
    while ahead:
      for node in neighbours[ahead.pop()]:
        if node not in reached:
          reached.add(node)
          ahead.append(node)
    return next((node for node in range(self.nodes) if node not in reached), None)


def star(nodes: int) -> Topology:
  """Returns the graph in which node 0 is the neighbour of all others."""
  return Topology(STAR, nodes, tuple((0, k) for k in range(1, nodes)))


def ring(nodes: int) -> Topology:
  """Returns the cycle; for two nodes, their one edge."""
  around = {tuple(sorted((k, (k + 1) % nodes))) for k in range(nodes)}
  return Topology(RING, nodes, tuple(sorted((i, j) for i, j in around if i != j)))


def tree(nodes: int) -> Topology:
  """Returns the complete binary tree: the parent of node k is (k - 1) // 2."""
  return Topology(TREE, nodes, tuple(((k - 1) // 2, k) for k in range(1, nodes)))


def complete(nodes: int) -> Topology:
  """Returns the graph in which all are neighbours."""
  return Topology(COMPLETE, nodes, _pairs(nodes))


def random_graph(nodes: int, probability: float = 0.7, seed: int = 0) -> Topology:
  """Draws graphs of independent edges until one is connected.

  Args:
    nodes: K.
    probability: Probability of an edge, in (0, 1]; 0.7 in the Dec-SSL paper.
    seed: Seed of the draws.

  Raises:
    ValueError: If the probability is out of range, or too low for a connected graph.
  """
  if not 0 < probability <= 1:
    raise ValueError(f'edge_probability is {probability}; it must be in (0, 1].')
  rng, pairs = np.random.default_rng([nodes, seed]), _pairs(nodes)
  for _ in range(_MOST_DRAWS):
    drawn = rng.random(len(pairs)) < probability
    edges = tuple(pair for pair, there in zip(pairs, drawn, strict=True) if there)
    try:
      return Topology('random graph', nodes, edges)
    except ValueError:
      continue
  raise ValueError(
    f'edge_probability is {probability}; none of {_MOST_DRAWS} graphs of {nodes} '
    'nodes was connected, so it must be higher.'
  )


def read(path: str | os.PathLike[str], nodes: int) -> Topology:
  """Reads a graph from a CSV file: K lines of K numbers, its adjacency matrix.

  Args:
    path: Path of the file; blank lines are skipped.
    nodes: K, the number of all clients, in their order.

  Raises:
    ValueError: If it is not a square, symmetric matrix of 0 and 1, with 0 on the
      diagonal, of K nodes, or not connected.
    OSError: If there is no such file.
  """
  try:
    with pathlib.Path(path).open(newline='', encoding='utf-8-sig') as file:
      rows = [[cell.strip() for cell in row] for row in csv.reader(file)]
  except (UnicodeDecodeError, csv.Error) as error:
    raise ValueError(f'{path} cannot be read as CSV: {error}.') from error
  rows = [row for row in rows if any(row)]
  for i, row in enumerate(rows):
    if len(row) != len(rows):
      raise ValueError(
        f'{path} has {len(row)} numbers in row {i} of {len(rows)} rows; it must be a '
        'square adjacency matrix.'
      )
    for j, cell in enumerate(row):
      if cell not in ('0', '1'):
        raise ValueError(
          f'{path} has {cell!r} in row {i}, column {j}, counted from 0; it must be 0 '
          'or 1.'
        )
  if len(rows) != nodes:
    raise ValueError(
      f'{path} has {len(rows)} nodes; it must have {nodes}, as many as there are '
      'clients.'
    )
  matrix = np.array(rows, np.int64).reshape(nodes, nodes)
  if np.any(np.diag(matrix)):
    k = int(np.argmax(np.diag(matrix)))
    raise ValueError(
      f'{path} has 1 in row {k}, column {k}, counted from 0; the diagonal must be 0, '
      'because no node is its own neighbour.'
    )
  if np.any(matrix != matrix.T):
    i, j = (int(k) for k in np.argwhere(matrix != matrix.T)[0])
    raise ValueError(
      f'{path} has {matrix[i, j]} in row {i}, column {j}, counted from 0, and '
      f'{matrix[j, i]} in row {j}, column {i}; it must be symmetric.'
    )
  edges = tuple((i, j) for i, j in _pairs(nodes) if matrix[i, j])
  return Topology(str(path), nodes, edges)


def text(topology: Topology) -> str:
  """Returns the adjacency matrix as the CSV that `read` takes."""
  return ''.join(f'{",".join(map(str, row))}\n' for row in topology.adjacency)


def _pairs(nodes: int) -> tuple[tuple[int, int], ...]:
  return tuple((i, j) for i in range(nodes) for j in range(i + 1, nodes))
