"""FedAvg of the docstring of `phases` is FedAvg."""

import inspect
import itertools
import textwrap

import numpy as np

from tests.algorithms import harness
from tests.algorithms.divergence_aware import follower
from tff_ssl.algorithms import fedavg
from tff_ssl.federated import optimizers
from tff_ssl.federated import phases
from tff_ssl.federated import processes
from tff_ssl.federated import server


def test_the_example_is_fedavg(tff_context):
  behind = inspect.getdoc(phases).partition('::\n')[2].splitlines()
  block = itertools.takewhile(lambda line: not line or line[0] == ' ', behind)
  config = fedavg.Training(seed=harness.SEED)
  objective = follower.Follower()
  names = {
    'phases': phases,
    'server': server,
    'config': config,
    'seed': config.seed,
    'objective': objective,
    'optimizer': optimizers.build_optimizer(harness.ADAM),
    'client': fedavg.client_function(objective, config),
  }
  exec(textwrap.dedent('\n'.join(block)), names)
  written = processes.build(names['algorithm'], harness.ELEMENT)
  expected = harness.build_fedavg(objective, harness.ADAM, config)
  cohort = harness.cohort(harness.split([2, 1, 3]))
  ends = []
  for process in (written, expected):
    states, _ = harness.rounds_of(process, [cohort, cohort])
    ends.append(harness.weights(process, states[-1]))
  np.testing.assert_array_equal(*ends)
