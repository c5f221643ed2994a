"""The graph of a run without a server: a figure of it, and its adjacency matrix."""

import os
import pathlib

from matplotlib import axes as axes_lib
from matplotlib import figure as figure_lib
import numpy as np

from tff_ssl.algorithms.without_server import topology as topology_lib
from tff_ssl.reporting import look
from tff_ssl.storage import files

PICTURE, MATRIX = 'graph.png', 'graph.csv'
_NODE = '#332288'
_EDGE = '#88ccee'
_INCHES = 5.2
# Width of an edge, in points: at the largest weight, 1/2, and at least.
_WIDEST, _THINNEST = 7.0, 0.6
# Diameter of a node, in points, with few nodes and with many.
_NODE_POINTS = (26.0, 5.0)
_FEW, _MANY = 10, 100
_NUMBERED_NODES = 40


def write(topology: topology_lib.Topology, folder: str | os.PathLike[str]) -> None:
  """Writes a run's graph into its folder, as `MATRIX` and `PICTURE`.

  Args:
    topology: The graph.
    folder: The run folder.

  Raises:
    ValueError: If the run has begun with another graph.
  """
  path, text = pathlib.Path(folder) / MATRIX, topology_lib.text(topology)
  if path.exists() and path.read_text() != text:
    raise ValueError(
      f'{path} is a different graph from the {topology.name}; a run must resume with '
      'the graph that it started with.'
    )
  files.write(path, text)
  look.save(draw(topology), path.with_name(PICTURE))


def draw(topology: topology_lib.Topology) -> figure_lib.Figure:
  """Draws a graph.

  Args:
    topology: The graph.

  Returns:
    The figure: a line for each edge, as wide as the weight that two neighbours give
    each other's models, and a circle for each node with the client's number.
  """
  figure = look.new(_INCHES, _INCHES)
  plot = figure.add_subplot()
  places, mixing = _places(topology), topology.mixing
  for i, j in topology.edges:
    x, y = places[[i, j]].T
    width = max(_THINNEST, 2 * _WIDEST * mixing[i, j])
    plot.plot(x, y, color=_EDGE, lw=width, solid_capstyle='butt', zorder=1)
  _draw_nodes(plot, places)
  plot.set_axis_off()
  clients = f'{topology.nodes} client{"" if topology.nodes == 1 else "s"}'
  look.title(figure, f'{topology.name} of {clients}', _note(topology))
  return figure


def _note(topology: topology_lib.Topology) -> str:
  """Returns the note below the figure."""
  gap, count = topology.spectral_gap, len(topology.edges)
  note = f'{count} edge{"" if count == 1 else "s"}; spectral gap {gap:.3f}'
  if not count:
    return note
  weights = [topology.mixing[i, j] for i, j in topology.edges]
  least, most = min(weights), max(weights)
  shown = f'{most:.3f}' if most - least < 1e-9 else f'{least:.3f} to {most:.3f}'
  return f"{note}; a line's width is a neighbour's weight, {shown}"


def _draw_nodes(plot: axes_lib.Axes, places: np.ndarray) -> None:
  count = len(places)
  size = float(np.interp(count, (_FEW, _MANY), _NODE_POINTS))
  # The size of a marker is its area.
  x, y = places.T
  plot.scatter(x, y, s=size**2, color=_NODE, edgecolor='white', zorder=2)
  if count > _NUMBERED_NODES:
    return
  for node, (x, y) in enumerate(places):
    plot.annotate(
      str(node), (x, y), color='white', fontsize=0.42 * size, ha='center', va='center'
    )


def _places(topology: topology_lib.Topology) -> np.ndarray:
  """Returns the places of the nodes, [K, 2]."""
  nodes = topology.nodes
  if topology.name == topology_lib.TREE:
    return _levels(nodes)
  if topology.name == topology_lib.STAR:
    return np.concatenate([np.zeros((1, 2)), _circle(nodes - 1)])
  return _circle(nodes)


def _circle(nodes: int) -> np.ndarray:
  """Returns places on a circle, clockwise from the top."""
  angles = 2 * np.pi * np.arange(nodes) / max(nodes, 1)
  return np.stack([np.sin(angles), np.cos(angles)], axis=1)


def _levels(nodes: int) -> np.ndarray:
  """Returns the places of a complete binary tree: each parent above its children."""
  places = []
  for k in range(1, nodes + 1):
    depth = k.bit_length() - 1
    places.append(((k - 2**depth + 0.5) / 2**depth, -float(depth)))
  return np.array(places)
