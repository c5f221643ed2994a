"""Rows of `binaries.fedsup`: FedSup and others with labels at the server."""

from binaries.methods import row

# The thesis's heads of 512 are for ResNet-18; here they are a quarter as wide, for
# small encoders. Its ResNet-18 has batch norm: all compared methods have this one norm,
# except those of two papers.
_HEADS = {'projector': ['128', '128'], 'predictor_width': 128}
PROGRAM = row.Program(
  'fedsup',
  ('method',),
  'fedsup',
  {
    'fedsup': row.Method('fedsup', 'fedsup'),
    'fixmatch': row.Method('server_finetuned', 'fixmatch'),
    'finetuned_simclr': row.Method('server_finetuned', 'simclr', _HEADS),
    'finetuned_simsiam': row.Method('server_finetuned', 'simsiam', _HEADS),
    'finetuned_byol': row.Method('server_finetuned', 'byol', _HEADS),
    # FedRGD itself recommends group norm.
    'fedrgd': row.Method('fedrgd', 'fixmatch', {'encoder_norm': 'group'}),
    # From the published program: SGD at 1e-3, and a network without batch norm.
    'fedmatch': row.Method(
      'fedmatch', 'fedmatch', {'encoder_norm': 'group', 'client_optimizer': 'sgd'}
    ),
    'finetuned_supervised': row.Method('server_finetuned', 'supervised'),
    # Its clients do nothing, but partition.csv describes them.
    'labelled_only': row.Method(
      'labelled_only', 'supervised', {'partition': 'iid:clients=100'}
    ),
  },
  {
    'simclr': 'finetuned_simclr',
    'simsiam': 'finetuned_simsiam',
    'byol': 'finetuned_byol',
    'supervised': 'finetuned_supervised',
  },
  {
    'partition': 'iid:clients=100',
    'clients_per_round': 5,
    'local_epochs': 5,
    'batch_size': 128,
    'client_optimizer': 'adam',
    'client_learning_rate': 1e-3,
    'encoder_norm': 'batch',
    'evaluation_methods': ['knn', 'logistic', 'finetune'],
    'label_fractions': ['1'],
  },
)
