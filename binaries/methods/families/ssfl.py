"""Rows of `binaries.ssfl`: SSFL and its personalised methods."""

import dataclasses

from binaries.flags import own_encoders
from binaries.methods import personal_algorithms
from binaries.methods import row

# The paper's: ten clients per round of Dirichlet 0.1, SGD with momentum and one of four
# rates, steps of 8 batches of 32. It does not give the number of clients; here it is
# ten. Nor does it say which rate was best: of 0.03, 0.1 and 0.3 the last is, in 20
# rounds of CIFAR-10 (docs/stateful_clients.md).
PROGRAM = row.Program(
  'ssfl',
  ('method',),
  'per',
  {
    'global': dataclasses.replace(
      row.as_in_fedavg_ssl('fedavg', 'simsiam'),
      takes=own_encoders.NAMES,
      personal=personal_algorithms.shared_model,
    ),
    'la': row.Method('la', 'simsiam'),
    'maml': row.Method('maml', 'simsiam'),
    'bilevel': row.Method('bilevel', 'simsiam'),
    # Its lambda is one of the paper's {10, 1, 0.1, 0.01, 0.001}, which does not say
    # which was best.
    'per': row.Method('per', 'simsiam'),
  },
  defaults={
    'partition': 'shares:alpha=0.1,clients=10',
    'clients_per_round': 10,
    'batch_size': 32,
    'accumulate': 8,
    'client_learning_rate': 0.3,
    'client_momentum': 0.9,
    'client_schedule': 'cosine',
    'personal_methods': ['logistic'],
  },
  title='{} ssfl',
  personal=True,
)
