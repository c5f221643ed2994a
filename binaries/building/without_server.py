"""FeatARC's cluster models, and learning without a server."""

import collections
from collections.abc import Callable
import functools
import pathlib
from typing import Any

from binaries.building import algorithms
from binaries.building import training
from binaries.config import run_config
from tff_ssl.algorithms.featarc import cluster_models
from tff_ssl.algorithms.featarc import featarc
from tff_ssl.algorithms.without_server import decentralized
from tff_ssl.algorithms.without_server import topology
from tff_ssl.encoders import parameter_names
from tff_ssl.federated import phases
from tff_ssl.objectives import base
from tff_ssl.runs import personal_models
from tff_ssl.settings import personal
from tff_ssl.simulation import client_data

# (the run, number of nodes) -> their graph.
_Build = Callable[[run_config.RunConfig, int], topology.Topology]


def _check_featarc(config: run_config.RunConfig) -> None:
  training.refuse_noise(config, 'the clients of a cluster are counted in the clear')


def _random_graph(config: run_config.RunConfig, nodes: int) -> topology.Topology:
  return topology.random_graph(
    nodes, config.method.edge_probability, config.random_seed
  )


def _graph(config: run_config.RunConfig, nodes: int) -> topology.Topology:
  return topology.read(config.method.path, nodes)


def _decentralized(
  graph: _Build, config: run_config.RunConfig, objective: Any, nodes: int
) -> phases.Algorithm:
  return decentralized.decentralized(
    objective, graph(config, nodes), training.of_clients(config)
  )


def of_nodes(state: Any) -> dict[str, Any]:
  """Returns the nodes' offsets from their mean, under separate names."""
  offsets = state.extra[decentralized.OFFSETS]
  return {f'{decentralized.OFFSETS}/{name}': each for name, each in offsets.items()}


def node_model(
  config: run_config.RunConfig,
  process: Any,
  objective: Any,
  data: client_data.ArrayClientData,
) -> personal_models.PersonalModel:
  """Returns what makes a node's model from the weights with those of `of_nodes`."""
  del config, process, objective
  numbers = {client_id: k for k, client_id in enumerate(data.client_ids)}

  def of_client(weights: base.Params, client_id: str) -> base.Params:
    offsets = parameter_names.select(weights, decentralized.OFFSETS)
    node = numbers[client_id]
    return collections.OrderedDict(
      (name, weights[name] + each[node]) for name, each in offsets.items()
    )

  return of_client


def _check(config: run_config.RunConfig) -> None:
  if (config.participation or 0) < 1:
    raise ValueError(
      f'participation is {config.participation}; without a server it must be 1, '
      'because the weights of the averages are those of the whole graph: if nodes were '
      'absent, their neighbours would use other weights and not preserve the mean.'
    )
  if config.method.kind == 'graph' and not config.method.path:
    raise ValueError(
      'path of --method=graph is not given; it must name a CSV file, the adjacency '
      'matrix of the clients.'
    )
  if config.method.kind == 'graph' and not pathlib.Path(config.method.path).is_file():
    raise ValueError(
      f'path of --method=graph is {config.method.path}, which is no file; it must name '
      'a CSV file, the adjacency matrix of the clients.'
    )
  training.of_clients(config)


def _without_server(graph: _Build) -> algorithms.Algorithm:
  """Returns the algorithm of a graph.

  Args:
    graph: Builds the graph.
  """
  return algorithms.Algorithm(
    functools.partial(_decentralized, graph),
    _check,
    numbered=True,
    personal=node_model,
    topology=graph,
    of_clients=of_nodes,
  )


_FEATARC = algorithms.with_server(
  featarc.featarc,
  _check_featarc,
  personal=algorithms.of_states,
  models=cluster_models.models,
)

_ALGORITHMS = {
  personal.Featarc: _FEATARC,
  personal.AlignOnly: _FEATARC,
  personal.ClusterOnly: _FEATARC,
  personal.Star: _without_server(lambda _, nodes: topology.star(nodes)),
  personal.Ring: _without_server(lambda _, nodes: topology.ring(nodes)),
  personal.Tree: _without_server(lambda _, nodes: topology.tree(nodes)),
  personal.Complete: _without_server(lambda _, nodes: topology.complete(nodes)),
  personal.RandomGraph: _without_server(_random_graph),
  personal.Graph: _without_server(_graph),
}
algorithms.register(_ALGORITHMS)
