"""Rows of `binaries.dcco`: DCCO and the methods its paper compares it with."""

import dataclasses

from binaries.flags import common
from binaries.methods import row

_EPOCHS = {'local_steps': 'local_epochs'}


def _check_norm() -> None:
  if common.NORM.value == 'batch':
    raise ValueError(
      'encoder_norm is batch; it must be group for DCCO and the methods compared with '
      'it, because their layers must not depend on the batch. binaries.fedavg_ssl '
      'takes both.'
    )


# The DCCO paper's server (section 4), and its projectors on CIFAR-100, but a quarter as
# wide, for small encoders.
PROGRAM = row.Program(
  'dcco',
  ('algorithm',),
  'dcco',
  {
    'dcco': row.Method('dcco', 'cco'),
    # At DCCO's rate the previous round's matrices are too old: encodings collapse.
    'fedsc': row.Method('fedsc', 'spectral', {'server_learning_rate': 3e-4}),
    'fedavg_cco': dataclasses.replace(
      row.as_in_fedavg_ssl('fedavg', 'cco'), renamed=_EPOCHS
    ),
    'fedavg_nt_xent': dataclasses.replace(
      row.as_in_fedavg_ssl('fedavg', 'simclr', temperature=0.1), renamed=_EPOCHS
    ),
    'centralized_cco': row.Method('centralized_steps', 'cco'),
    'centralized_supervised': row.Method(
      'centralized_steps', 'supervised', takes=('supervised_labels',)
    ),
  },
  {'supervised': 'centralized_supervised'},
  {
    'server_optimizer': 'adam',
    'server_learning_rate': 2e-3,
    'server_schedule': 'cosine',
    'client_learning_rate': 1.0,
    'encoder_norm': 'group',
  },
  check=_check_norm,
)
