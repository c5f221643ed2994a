"""Tests of graphs and their mixing matrices, against definitions and closed forms."""

import numpy as np
import pytest

from tff_ssl.algorithms.without_server import topology


def _of(name, nodes, seed=0):
  if name == 'random_graph':
    return topology.random_graph(nodes, 0.7, seed)
  return getattr(topology, name)(nodes)


_NAMES = ('star', 'ring', 'tree', 'complete', 'random_graph')


def test_edges_of_five_nodes():
  """Written out by hand."""
  assert topology.star(5).edges == ((0, 1), (0, 2), (0, 3), (0, 4))
  assert topology.ring(5).edges == ((0, 1), (0, 4), (1, 2), (2, 3), (3, 4))
  assert topology.tree(5).edges == ((0, 1), (0, 2), (1, 3), (1, 4))
  assert len(topology.complete(5).edges) == 10
  np.testing.assert_array_equal(topology.tree(5).degrees, [2, 3, 1, 1, 1])


@pytest.mark.parametrize('seed', range(25))
def test_mixing_is_symmetric_and_doubly_stochastic(seed):
  nodes = 1 + seed % 12
  graphs = [_of(name, nodes) for name in _NAMES if name != 'random_graph']
  graphs += [topology.random_graph(nodes, p, seed) for p in (0.4, 0.7)]
  for graph in graphs:
    mixing, adjacency = graph.mixing, graph.adjacency
    np.testing.assert_array_equal(mixing, mixing.T)
    np.testing.assert_allclose(mixing @ np.ones(nodes), 1, rtol=1e-12)
    assert np.all(mixing >= -1e-15)
    # Only neighbours are heard, and each of them.
    others = ~np.eye(nodes, dtype=bool)
    np.testing.assert_array_equal((mixing > 0)[others], (adjacency > 0)[others])
    degrees = np.sum(adjacency, axis=1)
    for i, j in graph.edges:
      assert mixing[i, j] == 1 / (1 + max(degrees[i], degrees[j]))
    # The second largest singular value, of the matrix without its mean.
    norm = np.linalg.norm(mixing - 1 / nodes, 2)
    assert graph.spectral_gap == pytest.approx(1 - norm, abs=1e-12)


def test_random_graphs_are_of_their_seed_and_probability():
  graphs = [topology.random_graph(20, 0.7, seed) for seed in range(25)]
  assert graphs[3] == topology.random_graph(20, 0.7, 3)
  assert len({graph.edges for graph in graphs}) == 25
  shares = [len(graph.edges) / 190 for graph in graphs]
  # Four standard errors of 25 x 190 draws.
  assert np.mean(shares) == pytest.approx(0.7, abs=4 * np.sqrt(0.21 / 4750))
  assert len(topology.random_graph(20, 1.0).edges) == 190


def test_a_sparse_draw_is_repeated_until_it_is_connected():
  """With p = 0.3 most graphs of four nodes are not; these all are, or they raise."""
  sizes = {len(topology.random_graph(4, 0.3, seed).edges) for seed in range(25)}
  assert min(sizes) == 3


def test_a_graph_is_read_as_it_was_written(tmp_path):
  graph = topology.tree(6)
  file = tmp_path / 'graph.csv'
  file.write_text(topology.text(graph))
  assert file.read_text().splitlines()[0] == '0,1,1,0,0,0'
  assert topology.read(file, 6).edges == graph.edges
  file.write_text('\n 0, 1\n\n1 ,0 \n')
  assert topology.read(file, 2).edges == ((0, 1),)


@pytest.mark.parametrize(
  ('text', 'message'),
  [
    ('\xff', 'cannot be read as CSV: '),
    ('0,1\n1\n', 'has 1 numbers in row 1 of 2 rows; it must be a square'),
    ('0,2\n2,0\n', "has '2' in row 0, column 1, counted from 0; it must be 0 or 1"),
    ('0,x\nx,0\n', "has 'x' in row 0"),
    ('0,1,0\n1,0,1\n0,1,0\n', 'has 3 nodes; it must have 2, as many as there are cl'),
    ('', 'has 0 nodes; it must have 2'),
    ('1,1\n1,0\n', 'has 1 in row 0, column 0, counted from 0; the diagonal must be 0'),
    ('0,1\n0,0\n', 'has 1 in row 0, column 1, counted from 0, and 0 in row 1, colum'),
    ('0,0\n0,0\n', 'has no path from node 0 to node 1; it must be connected'),
  ],
)
def test_a_bad_file_is_refused(tmp_path, text, message):
  file = tmp_path / 'graph.csv'
  file.write_bytes(text.encode('latin-1'))
  with pytest.raises(ValueError, match=message) as error:
    topology.read(file, 2)
  assert str(error.value).startswith(str(file))


@pytest.mark.parametrize(
  ('build', 'message'),
  [
    (lambda: topology.ring(0), 'ring has 0 nodes; there must be at least 1'),
    (lambda: topology.random_graph(5, 0.0), 'edge_probability is 0.0; it must be in'),
    (lambda: topology.random_graph(5, 1.5), 'edge_probability is 1.5; it must be in'),
    (lambda: topology.random_graph(40, 1e-3), 'none of 1000 graphs of 40 nodes was'),
    (lambda: topology.Topology('g', 2, ((0, 2),)), r'edge \(0, 2\); it must be \(i,'),
    (lambda: topology.Topology('g', 2, ((1, 0),)), r'edge \(1, 0\); it must be \(i,'),
    (lambda: topology.Topology('g', 2, ((0, 1), (0, 1))), 'g has an edge twice'),
  ],
)
def test_a_bad_graph_is_refused(build, message):
  with pytest.raises(ValueError, match=message):
    build()
