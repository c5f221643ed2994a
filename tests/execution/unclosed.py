"""A process that ends and does not close its context, whose worker has to go."""

import tensorflow_federated as tff

from tff_ssl.execution import contexts

if __name__ == '__main__':
  execution = contexts.local(concurrency=1)
  assert tff.federated_computation(lambda: tff.federated_value(3, tff.SERVER))() == 3
  print(execution.worker_pid)
