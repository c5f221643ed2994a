"""The threads that compute clients: order, errors, and what they leave behind."""

import gc
import threading
import time
import weakref

import pytest

from tff_ssl.execution import client_threads

_SECONDS = 60


@pytest.fixture
def opened():
  """Returns (devices, threads per device) -> threads, which end with the test."""
  all_threads = []

  def start(num_devices, threads_per_device):
    all_threads.append(client_threads.ClientThreads(num_devices, threads_per_device))
    return all_threads[-1]

  yield start
  for threads in all_threads:
    threads.stop()


def test_client_k_is_on_device_k_modulo_their_number(opened):
  got = opened(3, 2).map(lambda value, device: (value, device), range(8))
  assert got == [(k, k % 3) for k in range(8)]
  assert opened(3, 2).map(lambda value, _: value, []) == []


def test_results_are_in_the_order_of_clients_not_of_completion(opened):
  last = threading.Event()

  def compute(value, device):
    del device
    if value == 3:
      last.set()
    else:
      assert last.wait(_SECONDS)
    return value

  assert opened(2, 2).map(compute, range(4)) == [0, 1, 2, 3]


def test_error_of_the_first_failed_client_is_raised(opened):
  together = threading.Barrier(4)

  def compute(value, device):
    del device
    together.wait(_SECONDS)
    if value == 1:
      # Later than the error of client 3.
      time.sleep(0.1)
    if value % 2:
      raise KeyError(value)
    return value

  threads = opened(1, 4)
  with pytest.raises(KeyError, match='1'):
    threads.map(compute, range(4))
  # The threads go on.
  assert threads.map(lambda value, _: 2 * value, range(3)) == [0, 2, 4]


def test_clients_that_have_not_begun_when_one_fails_are_not_computed(opened):
  begun = []

  def compute(value, device):
    del device
    begun.append(value)
    if value == 2:
      raise SystemExit(value)

  with pytest.raises(SystemExit):
    opened(1, 1).map(compute, range(6))
  assert begun == [0, 1, 2]


def test_stop_ends_all_threads_after_their_work():
  before = set(threading.enumerate())
  threads = client_threads.ClientThreads(2, 3)
  own = set(threading.enumerate()) - before
  assert len(own) == 6
  assert all(thread.daemon for thread in own)
  threads.stop()
  for thread in own:
    thread.join(_SECONDS)
    assert not thread.is_alive()


def test_waiting_threads_hold_no_client(opened):
  class Client:
    """A value that can be referred to weakly."""

  client = Client()
  reference = weakref.ref(client)
  assert opened(1, 1).map(lambda value, _: type(value), [client]) == [Client]
  del client
  gc.collect()
  assert reference() is None
