"""Tests of whose the CPU time is that is measured."""

from binaries.benchmarking import measure


class FakeContext:
  """Counts CPU time as a round that takes 3 s in the worker and 1 s in the driver."""

  def __init__(self):
    self.driver = self.worker = 0.0

  def cpu_seconds(self):
    return {'driver': self.driver, 'worker': self.worker}


class FakeRunner:
  def __init__(self, execution):
    self.execution = execution
    self.rounds = []

  def federated_round(self, round):
    self.rounds.append(round)
    self.execution.driver += 1.0
    self.execution.worker += 2.5

  def centralized_round(self, round):
    self.rounds.append(round)
    self.execution.driver += 2.0
    # The worker still cleans up after the round.
    self.execution.worker += 0.5


class FakeContextInProcess(FakeContext):
  """Counts the same where there is no worker."""

  def cpu_seconds(self):
    return {'driver': self.driver + self.worker}


def test_without_a_worker_all_is_the_drivers():
  execution = FakeContextInProcess()
  result = measure.compare(execution, FakeRunner(execution), rounds=3)
  assert result['federated_driver_cpu_seconds'] == 3.5
  assert result['federated_worker_cpu_seconds'] == 0.0
  assert result['centralized_cpu_seconds'] == 2.5


def test_cpu_time_is_that_of_the_side_that_caused_it():
  execution = FakeContext()
  runner = FakeRunner(execution)
  result = measure.compare(execution, runner, rounds=3)
  assert result['federated_driver_cpu_seconds'] == 1.0
  assert result['federated_worker_cpu_seconds'] == 3.0
  assert result['centralized_cpu_seconds'] == 2.0
  assert result['cpu_ratio'] == 2.0
  # Both sides take every round, the one right after the other.
  assert runner.rounds == [k for k in range(6) for _ in range(2)]
