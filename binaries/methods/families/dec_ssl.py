"""Rows of `binaries.dec_ssl`: Dec-SSL, FeatARC and learning without a server."""

from binaries.methods import decentralized_algorithms
from binaries.methods import row
from binaries.methods.families import fedavg_ssl

# Appendix C.1: SGD for these two. It names no momentum; 0.9 is from SimSiam.
_SGD = {
  'client_optimizer': 'sgd',
  'client_learning_rate': 0.03,
  'client_momentum': 0.9,
}
# Appendix C.1: AdamW, without further details; the rest is from MAE (He et al. 2022,
# Table 8).
_MAE = {
  'client_optimizer': 'adamw',
  'client_weight_decay': 0.05,
  'client_beta_2': 0.95,
}
# The objectives that have predictions for FeatARC to align.
_ALIGNED = ('simclr', 'simsiam', 'byol', 'cco', 'vicreg', 'uniformity')
_OF_DEC_SSL = {'simsiam': _SGD, 'byol': _SGD, 'mae': _MAE}
# Appendix C.1: five sources of equal size, all in every round, five local epochs, Adam
# at 1e-3 on batches of 256, SimCLR. The partition is the one that separates classes.
# Deviations: group norm, where the paper leaves batch norm on the clients (FedBN), so
# that one model can be evaluated; a constant rate, because the paper does not name the
# steps of its schedule; and the views of the other programs (--augmentation).
PROGRAM = row.Program(
  'dec_ssl',
  ('method', 'objective'),
  'featarc simclr',
  {
    f'{algorithm} {objective}': row.Method(
      algorithm, objective, _OF_DEC_SSL.get(objective, {})
    )
    for algorithm, objectives_of_it in (
      ('featarc', _ALIGNED),
      ('align_only', _ALIGNED),
      ('cluster_only', fedavg_ssl.OBJECTIVES),
    )
    for objective in objectives_of_it
  }
  | {
    f'fedavg {objective}': row.as_in_fedavg_ssl(
      'fedavg', objective, **_OF_DEC_SSL.get(objective, {})
    )
    for objective in fedavg_ssl.OBJECTIVES
  }
  | {
    f'{graph} {objective}': row.Method(graph, objective, _OF_DEC_SSL.get(objective, {}))
    for graph in decentralized_algorithms.ALGORITHMS
    for objective in fedavg_ssl.OBJECTIVES
  },
  defaults={
    'partition': 'skew:beta=0,clients=5',
    'clients_per_round': 5,
    'local_epochs': 5,
    'batch_size': 256,
    'client_optimizer': 'adam',
    'client_learning_rate': 1e-3,
  },
)
