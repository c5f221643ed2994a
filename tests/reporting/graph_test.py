"""Tests of the figure of a run's graph, and of the graph that its folder keeps."""

import numpy as np
import pytest

from tff_ssl.algorithms.without_server import topology
from tff_ssl.reporting import graph


def _drawn(one):
  """Returns the places of the nodes, and the ends and the width of each line."""
  (plot,) = graph.draw(one).axes
  (nodes,) = plot.collections
  lines = [(line.get_xydata(), line.get_linewidth()) for line in plot.lines]
  return plot, np.asarray(nodes.get_offsets()), lines


@pytest.mark.parametrize(
  'one',
  [topology.star(6), topology.ring(6), topology.tree(6), topology.random_graph(6)],
  ids=lambda one: one.name,
)
def test_each_edge_is_a_line_between_its_nodes(one):
  plot, places, lines = _drawn(one)
  assert places.shape == (6, 2)
  assert len(np.unique(np.round(places, 6), axis=0)) == 6
  assert [text.get_text() for text in plot.texts] == list('012345')
  for (i, j), (ends, _) in zip(one.edges, lines, strict=True):
    np.testing.assert_allclose(ends, places[[i, j]])


def test_lines_are_as_wide_as_the_weights():
  """A triangle with a tail: of degree 3 and 2, of 2 and 2, of 3 and 1."""
  one = topology.Topology('triangle', 4, ((0, 1), (0, 2), (0, 3), (1, 2)))
  _, _, lines = _drawn(one)
  widths = np.array([width for _, width in lines])
  np.testing.assert_allclose(widths / widths[3], np.array([3, 3, 3, 4]) / 4)


def test_a_tree_has_parents_over_their_children():
  _, places, _ = _drawn(topology.tree(7))
  np.testing.assert_array_equal(places[:, 1], [0, -1, -1, -2, -2, -2, -2])
  for parent in range(3):
    children = places[[2 * parent + 1, 2 * parent + 2], 0]
    assert places[parent, 0] == pytest.approx(np.mean(children))


def test_the_note_tells_edges_gap_and_weights():
  assert graph.draw(topology.star(5)).get_supxlabel() == (
    "4 edges; spectral gap 0.200; a line's width is a neighbour's weight, 0.200"
  )
  assert graph.draw(topology.ring(1)).get_supxlabel() == '0 edges; spectral gap 1.000'


def test_a_folder_keeps_the_graph_that_it_began_with(tmp_path):
  for _ in range(2):
    graph.write(topology.ring(4), tmp_path)
  assert (tmp_path / 'graph.png').read_bytes()[1:4] == b'PNG'
  assert topology.read(tmp_path / 'graph.csv', 4).edges == topology.ring(4).edges
  with pytest.raises(ValueError, match='is a different graph from the tree; a run'):
    graph.write(topology.tree(4), tmp_path)
