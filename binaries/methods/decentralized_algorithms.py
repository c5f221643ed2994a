"""Learning without a server, built from flags: one algorithm for each graph."""

import collections
from collections.abc import Callable, Mapping
import functools
from typing import Any

from binaries.flags import common
from binaries.flags import methods
from binaries.flags import own_encoders
from binaries.flags import privacy
from binaries.flags import training
from binaries.methods import algorithms
from tff_ssl.algorithms.without_server import decentralized
from tff_ssl.algorithms.without_server import topology
from tff_ssl.encoders import network
from tff_ssl.federated import phases
from tff_ssl.objectives import base
from tff_ssl.runs import personal_models
from tff_ssl.simulation import client_data

# Number of nodes -> their graph.
Build = Callable[[int], topology.Topology]


def _random_graph(nodes: int) -> topology.Topology:
  return topology.random_graph(nodes, methods.EDGE_PROBABILITY.value, common.SEED.value)


def _graph(nodes: int) -> topology.Topology:
  return topology.read(methods.GRAPH.value, nodes)


def _decentralized(graph: Build, objective: Any, nodes: int) -> phases.Algorithm:
  config = decentralized.DecentralizedConfig(graph(nodes), training.client_config())
  return decentralized.decentralized(objective, config)


def of_nodes(state: Any) -> dict[str, Any]:
  """Returns the nodes' offsets from their mean, under separate names."""
  offsets = state.extra[decentralized.OFFSETS]
  return {f'{decentralized.OFFSETS}/{name}': each for name, each in offsets.items()}


def node_model(
  process: Any, objective: Any, data: client_data.ArrayClientData
) -> personal_models.PersonalModel:
  """Returns what makes a node's model from the weights with those of `of_nodes`."""
  del process, objective
  numbers = {client_id: k for k, client_id in enumerate(data.client_ids)}

  def of_client(weights: base.Params, client_id: str) -> base.Params:
    offsets = network.select(weights, decentralized.OFFSETS)
    node = numbers[client_id]
    return collections.OrderedDict(
      (name, weights[name] + each[node]) for name, each in offsets.items()
    )

  return of_client


def _check() -> None:
  if common.PARTICIPATION.value < 1:
    raise ValueError(
      f'participation is {common.PARTICIPATION.value}; without a server it must be 1, '
      'because the weights of the averages are those of the whole graph: if nodes were '
      'absent, their neighbours would use other weights and not preserve the mean.'
    )
  training.client_config()


def _check_random_graph() -> None:
  _check()
  # With one node, because the number of nodes is only known with the data.
  topology.random_graph(1, methods.EDGE_PROBABILITY.value)


def _check_graph() -> None:
  _check()
  if not methods.GRAPH.value:
    raise ValueError(
      '--graph is not given; with --method=graph it must name a CSV file, the '
      'adjacency matrix of the clients.'
    )


def _algorithm(
  graph: Build, *takes: str, check: Callable[[], None] = _check
) -> algorithms.Algorithm:
  """Returns the algorithm of a graph.

  Args:
    graph: Builds the graph.
    *takes: Flags that the algorithm reads.
    check: Checks its flags.
  """
  return algorithms.Algorithm(
    functools.partial(_decentralized, graph),
    (*_TAKES, *takes),
    {common.PARTICIPATION.name: 1.0},
    check=check,
    numbered=True,
    personal=node_model,
    topology=graph,
    of_clients=of_nodes,
  )


# There is no server optimizer, no client weight and no cohort size. There are no sums
# at a server either, because neighbours see each other's models.
_NOT = {*training.OF_SERVER, 'weighting', 'clients_per_round', *privacy.NAMES}
_TAKES = (
  *(name for name in algorithms.FEDAVG if name not in _NOT),
  *own_encoders.NAMES,
)

ALGORITHMS: Mapping[str, algorithms.Algorithm] = {
  'star': _algorithm(topology.star),
  'ring': _algorithm(topology.ring),
  'tree': _algorithm(topology.tree),
  'complete': _algorithm(topology.complete),
  'random_graph': _algorithm(
    _random_graph, 'edge_probability', check=_check_random_graph
  ),
  'graph': _algorithm(_graph, 'graph', check=_check_graph),
}
