"""Dec-SSL's program without a server: a run with a graph, and what is refused."""

import csv

import pytest

from binaries import dec_ssl
from binaries.methods import choice
from tests.binaries import in_process
from tff_ssl.federated import topology

_FLAGS = (
  '--task=digits',
  '--encoder=conv2',
  '--encoder_width=0.125',
  '--projector=8,8',
  '--partition=iid:clients=4',
  '--examples_per_client_at_most=64',
  '--local_epochs=1',
  '--batch_size=32',
  '--rounds=2',
  '--evaluation_methods=knn',
)


def test_a_run_without_a_server(tmp_path):
  """Of a graph from a file; its folder has the graph, and each round its numbers."""
  file, folder = tmp_path / 'mine.csv', tmp_path / 'run'
  graph = topology.star(4)
  file.write_text(topology.text(graph))
  flags = (*_FLAGS, '--method=graph', f'--graph={file}', f'--run_dir={folder}')
  ended = in_process.run(dec_ssl, *flags, folder=folder)
  assert ended.status == 0, ended.stderr
  assert 'graph simclr' in ended.stdout
  assert (folder / 'graph.csv').read_text() == file.read_text()
  assert (folder / 'graph.png').exists()
  with (folder / 'metrics.csv').open(newline='') as rows:
    metrics = list(csv.DictReader(rows))
  assert len(metrics) == 2
  for row in metrics:
    assert int(row['client_work/clients']) == 4
    assert int(row['client_work/examples']) == 4 * 64
    assert int(row['finalizer/edges']) == 3
    assert float(row['finalizer/spectral_gap']) == pytest.approx(graph.spectral_gap)
    # Averaging brings the models nearer.
    after, before = (
      float(row[f'finalizer/{name}'])
      for name in ('consensus_distance', 'distance_before_averaging')
    )
    assert 0 < after <= (1 - graph.spectral_gap) * before * (1 + 1e-5)
  # The file has changed since: the run would go on with another graph.
  file.write_text(topology.text(topology.ring(4)))
  ended = in_process.run(dec_ssl, *flags, folder=folder)
  assert ended.status == 1
  assert 'graph.csv is another graph than the' in ended.stderr


@pytest.mark.parametrize(
  ('flags', 'message'),
  [
    (
      ('--method=ring', '--participation=0.5'),
      'participation is 0.5; without a server',
    ),
    (
      ('--method=ring', '--clients_per_round=3'),
      '--clients_per_round is given with --',
    ),
    (('--method=ring', '--server_learning_rate=1'), 'server_learning_rate is given w'),
    (
      ('--method=ring', '--weighting=uniform'),
      '--weighting is given with --method=rin',
    ),
    (('--method=ring', '--edge_probability=0.5'), 'it is for random_graph only'),
    (
      ('--method=random_graph', '--edge_probability=0'),
      'edge_probability is 0.0; it m',
    ),
    (('--method=graph',), '--graph is not given; with --method=graph it must name a'),
  ],
)
def test_flags_that_do_not_fit_are_refused(flags, message):
  with in_process.parsed(*flags), pytest.raises(ValueError, match=message):
    choice.read('dec_ssl')


def test_the_random_graph_is_of_the_seed():
  def drawn(*flags):
    with in_process.parsed('--method=random_graph', *flags):
      return choice.read('dec_ssl').algorithm.topology(12)

  assert drawn('--seed=3') == topology.random_graph(12, 0.7, 3)
  assert drawn('--seed=3') != drawn('--seed=4')
  assert len(drawn('--edge_probability=1').edges) == 66
