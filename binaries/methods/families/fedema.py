"""Rows of `binaries.fedema`: FedEMA, FedU and the methods that they compare with."""

from binaries.methods import row

# In the authors' code the key network starts each round as the global one, with this
# momentum.
_FED_MOCO = {'encoder_norm': 'batch', 'target_momentum': 0.99, 'reset_target': True}
# All networks of the FedEMA paper have batch norm, whatever the objective.
PROGRAM = row.Program(
  'fedema',
  ('method',),
  'fedema',
  {
    'fed_simclr': row.as_in_fedavg_ssl('fedavg', 'simclr', encoder_norm='batch'),
    'fed_simsiam': row.as_in_fedavg_ssl('fedavg', 'simsiam'),
    'fed_moco_v1': row.as_in_fedavg_ssl('fed_ssl', 'moco_v1', **_FED_MOCO),
    'fed_moco_v2': row.as_in_fedavg_ssl('fed_ssl', 'moco_v2', **_FED_MOCO),
    # With separate flags for the networks that are shared.
    'fed_byol': row.Method('fed_byol', 'byol'),
    'fedu': row.Method('fedu', 'byol'),
    'fedema': row.Method('fedema', 'byol'),
    'fedca': row.Method('fedca', 'fedca', {'encoder_norm': 'batch'}),
  },
  # Section 5.1 and appendix A: five clients of two classes each, all in every round.
  defaults={
    'partition': 'classes:per_client=2,clients=5',
    'clients_per_round': 5,
    'local_epochs': 5,
    'batch_size': 128,
    'client_learning_rate': 0.032,
    'client_momentum': 0.9,
    'client_weight_decay': 5e-4,
    'client_schedule': 'cosine',
  },
)
