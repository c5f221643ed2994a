"""Parts of rounds in actors, which die with or without their machine."""

import importlib.util
import socket

import numpy as np
import pytest
import ray
from ray import cluster_utils
import tensorflow as tf
import tensorflow_federated as tff

from tests.execution import in_actors
from tff_ssl.execution import contexts
from tff_ssl.execution import ray_parts


@pytest.fixture(scope='module')
def run():
  return in_actors.Run()


@pytest.fixture
def expected(run, tff_context, tmp_path):
  """What an undisturbed run in this process tells."""
  return run.metrics(tmp_path / 'here', 5)


# tests/torture/actors_test kills an actor in each round.
@pytest.mark.long
def test_a_run_is_undisturbed_by_a_machine_that_dies(run, expected, tmp_path):
  cluster = cluster_utils.Cluster(
    initialize_head=True, head_node_args={'num_cpus': 1, 'include_dashboard': False}
  )
  other = cluster.add_node(num_cpus=1)
  try:
    with contexts.ray(cluster.address, optimize_graphs=False) as execution:
      homes = {node['NodeID'] for node in ray.nodes()}
      assert len(homes) == len(execution.tff_context._actors) == 2
      happens = {3: lambda: cluster.remove_node(other, allow_graceful=False)}
      got = run.metrics(tmp_path / 'actors', 5, happens)
  finally:
    cluster.shutdown()
  assert got == expected
  assert in_actors.of_ray() == []


def test_a_context_of_this_machine_leaves_nothing(run, tff_context):
  state = run.initialize()
  expected = run.process.next(state, run.cohort)
  with contexts.ray(actors=1, optimize_graphs=False):
    got = run.process.next(run.initialize(), run.cohort)
    tf.nest.map_structure(np.testing.assert_array_equal, got, expected)
    assert len(in_actors.actors()) == 1
    # An error in an actor is the driver's, and the actor goes on.
    with pytest.raises(IndexError, match='index 99 is out of bounds'):
      run.process.next(state, [run.cohort[0]._replace(positions=np.array([99]))])
    with pytest.raises(ValueError, match='they must be rows of arrays'):
      run.process.next(state, [tf.data.Dataset.range(3)] * 3)
    again = run.process.next(state, run.cohort)
    tf.nest.map_structure(np.testing.assert_array_equal, again, expected)
  assert in_actors.of_ray() == []
  assert not ray.is_initialized()
  assert tff.framework.get_context_stack().current is tff_context.tff_context


def test_rows_are_the_values_of_clients(run, tff_context):
  whole = in_actors.Run(as_rows=False)
  for rows, data in zip(run.cohort, whole.cohort, strict=True):
    got, expected = (
      each.get_single_element() for each in (rows.dataset(in_actors.DATA.held), data)
    )
    tf.nest.map_structure(np.testing.assert_array_equal, got, expected)


def test_a_file_stays_where_it_is(tmp_path):
  array = np.arange(12, dtype=np.int64).reshape(4, 3)
  np.save(tmp_path / 'a.npy', array)
  mapped = np.load(tmp_path / 'a.npy', mmap_mode='r')
  sent = ray_parts._portable({'file': mapped, 'rows': mapped[1:], 'array': array})
  assert isinstance(sent['file'], ray_parts._File)
  for name, own in (('file', array), ('rows', array[1:]), ('array', array)):
    np.testing.assert_array_equal(ray_parts._opened(sent[name]), own)
  (tmp_path / 'a.npy').unlink()
  with pytest.raises(ValueError, match=f'a.npy is not on {socket.gethostname()}; the'):
    ray_parts._opened(sent['file'])


@pytest.mark.parametrize(
  ('actors', 'cpus', 'gpus', 'expected'),
  [
    (None, 1, 0, 'aaab'),
    (None, 2, 0, 'ab'),
    (2, 1, 0, 'aa'),
    (6, 2, 0, 'ababab'),
    (None, 1, 0.5, 'bbbb'),
  ],
)
def test_machines_of_actors(monkeypatch, actors, cpus, gpus, expected):
  resources = {'a': {'CPU': 3.0}, 'b': {'CPU': 1.0, 'GPU': 2.0}, 'head': {}}
  nodes = [
    {'NodeID': name, 'Alive': True, 'Resources': own} for name, own in resources.items()
  ]
  gone = {'NodeID': 'gone', 'Alive': False, 'Resources': {'CPU': 9.0}}
  monkeypatch.setattr(ray, 'nodes', lambda: [*nodes, gone])
  settings = ray_parts.Settings(cpus, gpus, False)
  assert ''.join(ray_parts._places(actors, settings)) == expected


def test_a_machine_that_differs_is_named(monkeypatch, caplog, tff_context):
  driver = {**ray_parts._machine(), 'TensorFlow': '1.0'}
  with contexts.in_process('cpu'):
    ray_parts._Actor(ray_parts.Settings(1, 0, False), driver)._context.close()
  (said,) = (record.getMessage() for record in caplog.records)
  assert f'{socket.gethostname()} has TensorFlow {tf.__version__}, the driv' in said


@pytest.mark.parametrize(
  ('arguments', 'message'),
  [
    ({'cpus': 0}, 'cpus is 0; it must be at least 1'),
    ({'gpus': -1}, 'gpus is -1; it must be at least 0'),
    ({'actors': 0}, 'actors is 0; it must be at least 1'),
    ({'address': 'a'}, "The address of Ray is 'a'; it must be auto, or host:port"),
    (
      {'missing': True},
      r'Ray is not installed; it must be, by `pip inst',
    ),
  ],
)
def test_bad_input(monkeypatch, arguments, message):
  if arguments.pop('missing', False):
    monkeypatch.setattr(importlib.util, 'find_spec', lambda _: None)
  with pytest.raises(ValueError, match=message):
    contexts.ray(**arguments)


def test_no_cluster_is_an_error_of_the_machine():
  with socket.socket() as free:
    free.bind(('localhost', 0))
    port = free.getsockname()[1]
    with pytest.raises(ConnectionError, match=f'No Ray answers at localhost:{port}: '):
      contexts.ray(f'localhost:{port}')
  assert not ray.is_initialized()


def test_a_token_that_the_cluster_refuses_is_said(monkeypatch):
  def refuse(*_, **__):
    cause = RuntimeError('RPC error: InvalidAuthToken: token is missing or incorrect.')
    raise ConnectionError('Failed to connect to Ray cluster at a:1') from cause

  monkeypatch.setattr(ray, 'init', refuse)
  with pytest.raises(ConnectionError, match='at a:1 refuses this token; RAY_AUTH_MODE'):
    ray_parts.start('a:1')
