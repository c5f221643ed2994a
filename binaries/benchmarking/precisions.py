"""The centralized step in each precision, by turns, in one process."""

import collections
from collections.abc import Mapping
import dataclasses
import statistics
import time
from typing import Any

from binaries.benchmarking import experiments
from binaries.benchmarking import measure
from binaries.benchmarking import objectives
from binaries.benchmarking import problems
from tff_ssl.encoders import network
from tff_ssl.encoders import precision as precision_lib
from tff_ssl.runs import flat_metrics

# The name of the experiment.
NAME = 'precision'


def compare(problem: problems.Problem, rounds: int) -> measure.Numbers:
  """Measures the steps of each round in both precisions, one after the other.

  Both start from the same weights and see the same views, so their losses show
  whether they train equally well.

  Args:
    problem: The problem whose clients' examples are pooled.
    rounds: Number of rounds; at least 1.

  Returns:
    For each precision: seconds and CPU seconds of a round's steps (medians), images per
    second and per CPU second, and the last loss. `ratio` and `cpu_ratio` divide the
    time of bfloat16 by the time of float32.

  Raises:
    ValueError: If this machine cannot compute in bfloat16.
  """
  precision_lib.check(network.BFLOAT16)
  steps = {each: _Steps(problem, each) for each in network.PRECISIONS}
  for round in range(measure.WARM_UP_ROUNDS + rounds):
    # The order alternates, so that neither always comes second.
    order = network.PRECISIONS if round % 2 else network.PRECISIONS[::-1]
    for each in order:
      steps[each].take(round)
  result: measure.Numbers = collections.OrderedDict()
  for each, own in steps.items():
    for name, taken in (('seconds', own.seconds), ('cpu_seconds', own.cpu_seconds)):
      median = statistics.median(taken[measure.WARM_UP_ROUNDS :])
      images = experiments.visited_examples(problem, round=0)
      result[f'{each}_{name}'] = median
      # CPU time comes in ticks of 10 ms: a tiny step may have taken zero.
      result[f'{each}_samples_per_{name[:-1]}'] = (
        images / median if median else float('nan')
      )
    result[f'{each}_loss'] = own.loss
  for name in ('seconds', 'cpu_seconds'):
    half, full = (result[f'{each}_{name}'] for each in network.PRECISIONS[::-1])
    ratio = half / full if full else float('nan')
    result[name.replace('seconds', 'ratio')] = ratio
  return result


def line(result: Mapping[str, Any]) -> str:
  """Returns a result in two lines."""
  first = '{experiment} {regime} {clients} x {examples_per_client:.4g} {objective}'
  lines = [first.format(**{**result, 'regime': result['regime'] or ''})]
  for each in network.PRECISIONS:
    lines.append(
      '  {:8s} {:7.3f} s  CPU {:7.3f} s  {:6.0f} images/s  {:6.0f} images/CPU s'
      '  loss {:.4f}'.format(
        each,
        *(
          result[f'{each}_{name}']
          for name in (
            'seconds',
            'cpu_seconds',
            'samples_per_second',
            'samples_per_cpu_second',
            'loss',
          )
        ),
      )
    )
  lines.append('  ratio {ratio:.2f}  CPU ratio {cpu_ratio:.2f}'.format(**result))
  return '\n'.join(lines)


class _Steps:
  """Centralized training in one precision, and the time it takes."""

  def __init__(self, problem: problems.Problem, precision: str):
    """Starts from the initial weights.

    Args:
      problem: What is trained.
      precision: Precision of the encoder.
    """
    encoder = problem.model.encoder.with_precision(precision)
    model = dataclasses.replace(problem.model, encoder=encoder)
    objective = objectives.OBJECTIVES[problem.objective](model)
    self._problem = problem
    self._process = problems.centralized(objective, problem)
    self._state: Any = self._process.initialize()
    self.seconds: list[float] = []
    self.cpu_seconds: list[float] = []
    self.loss = float('nan')

  def take(self, round: int) -> None:
    """Takes the steps of a round, from drawing its examples to reading its metrics."""
    cpu, started = time.process_time(), time.perf_counter()
    for batch in experiments.centralized_batches(self._problem, round):
      output: Any = self._process.next(self._state, [batch])
      self._state = output.state
    self.loss = flat_metrics.flatten(output.metrics['client_work'])['loss']
    self.seconds.append(time.perf_counter() - started)
    self.cpu_seconds.append(time.process_time() - cpu)
