"""Dec-SSL's program without a server: a run with a graph, and what is refused."""

import types

import numpy as np
import pytest
import tensorflow as tf

from binaries import dec_ssl
from binaries.building import algorithms
from binaries.building import without_server
from tests.binaries import in_process
from tests.binaries import launch
from tff_ssl.algorithms.without_server import topology

_FLAGS = (
  launch.APART,
  '--task=digits',
  '--encoder=conv2',
  launch.FLIP,
  '--encoder=width=0.125',
  '--objective=projector=8/8',
  '--partition=iid:clients=4',
  '--data=at_most=64',
  '--clients=epochs=1,batch_size=32',
  '--rounds=2',
  '--evaluation=methods=knn',
)


# Its rounds are in tests/algorithms, the graph of a folder in tests/reporting.
@pytest.mark.long
def test_a_run_without_a_server(tmp_path):
  """Of a graph from a file; its folder has the graph, and each round its numbers.

  Each node's own encoder is evaluated, and one is exported.
  """
  file, folder = tmp_path / 'mine.csv', tmp_path / 'run'
  graph = topology.star(4)
  file.write_text(topology.text(graph))
  flags = (
    *_FLAGS,
    f'--method=graph:path={file}',
    '--evaluation=export_clients=client_2',
    f'--run_dir={folder}',
  )
  ended = in_process.finished(dec_ssl, *flags)
  assert 'graph simclr' in ended.stdout
  assert (folder / 'graph.csv').read_text() == file.read_text()
  assert (folder / 'graph.png').exists()
  # How near averaging brings the models is in tests/algorithms.
  assert [row['finalizer/edges'] for row in launch.table(folder)] == ['3', '3']
  clients = [row['client'] for row in launch.table(folder, 'clients.csv')]
  assert clients == [f'client_{k}' for k in range(4)]
  mean, own = (
    tf.keras.models.load_model(path, compile=False).get_weights()
    for path in (folder / 'encoder.keras', folder / 'clients/client_2/encoder.keras')
  )
  assert max(np.abs(a - b).max() for a, b in zip(mean, own, strict=True)) > 1e-4
  # The file has changed since: the run would go on with another graph.
  file.write_text(topology.text(topology.ring(4)))
  ended = in_process.run(dec_ssl, *flags)
  assert ended.status == 1
  assert 'graph.csv is a different graph from the' in ended.stderr


def test_the_model_of_a_node_is_the_mean_and_its_offset():
  state = types.SimpleNamespace(
    extra={'offsets': {'w': np.array([[1.0, 0.0], [-1.0, 2.0]]), 'b': np.array([3, 4])}}
  )
  weights = {'w': np.array([10.0, 20.0]), 'b': np.array(5)}
  data = types.SimpleNamespace(client_ids=['alice', 'bob'])
  of_client = without_server.node_model(None, None, None, data)
  own = of_client({**weights, **without_server.of_nodes(state)}, 'bob')
  assert own.keys() == weights.keys()
  np.testing.assert_array_equal(own['w'], [9.0, 22.0])
  assert own['b'] == 9


def test_the_random_graph_is_of_the_seed():
  def drawn(*flags):
    line = ' '.join(('--method=random_graph', *flags))
    config = in_process.checked('dec_ssl', line)
    return algorithms.of(config).topology(config, 12)

  assert drawn('--seed=3') == topology.random_graph(12, 0.7, 3)
  assert drawn('--seed=3') != drawn('--seed=4')
  assert len(drawn('--method=edge_probability=1').edges) == 66
