"""Rows of `binaries.fedavg_ssl`: every plain algorithm with every objective."""

from binaries.methods import row

# The objectives of methods that are a product of algorithm and objective.
OBJECTIVES = (
  'simclr',
  'moco_v1',
  'moco_v2',
  'simsiam',
  'byol',
  'swav',
  'dino',
  'cco',
  'vicreg',
  'spectral',
  'uniformity',
  'mae',
  'supervised',
)
# A tenth of these rates is too low for objectives with a predictor: SimSiam is then no
# better than an untrained encoder after a hundred epochs of digits
# (docs/stateful_clients.md).
_WITH_PREDICTOR = ('simsiam', 'byol')


def _defaults(algorithm: str, objective: str) -> dict[str, float]:
  predicts = objective in _WITH_PREDICTOR
  if algorithm == 'scaffold':
    return {'client_learning_rate': 1.0 if predicts else 0.1, 'client_momentum': 0.0}
  return {'client_learning_rate': 0.3} if predicts else {}


# Five clients that differ, as in Dec-SSL. Its Adam at 1e-3 suits SimCLR; the papers on
# the other objectives and algorithms use SGD with momentum.
PROGRAM = row.Program(
  'fedavg_ssl',
  ('algorithm', 'objective'),
  'fedavg simsiam',
  {
    f'{algorithm} {objective}': row.Method(
      algorithm, objective, _defaults(algorithm, objective)
    )
    for algorithm in (
      'fedavg',
      'fedprox',
      'fedbn',
      'fed_ssl',
      'scaffold',
      'l_dawa',
      'centralized',
    )
    for objective in OBJECTIVES
  },
  defaults={
    'partition': 'shares:alpha=0.1,clients=5',
    'clients_per_round': 5,
    'batch_size': 128,
    'client_learning_rate': 0.03,
    'client_momentum': 0.9,
  },
)
