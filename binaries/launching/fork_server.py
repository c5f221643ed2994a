"""What the fork server imports before it forks: only libraries, see `forks`."""

import gc
import importlib
import signal

# Third-party libraries that programs import and that take time.
for _name in (
  'tensorflow',
  'tensorflow_privacy',
  'tensorflow_datasets',
  'sklearn.linear_model',
  'matplotlib.pyplot',
):
  importlib.import_module(_name)
# TFF's default context has a thread, which a fork would not have.
importlib.import_module('tensorflow_federated').test.set_no_default_context()
gc.freeze()
# A signal that comes before a program handles it waits, instead of being lost.
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT, signal.SIGTERM])
