"""Libraries that programs import late, when the command line has been checked."""

import importlib
import sys


def import_tff() -> None:
  """Imports TFF without its default context, unless it is imported already.

  That context would leave a worker behind if a program ends without having opened one
  of ours. Whoever has imported TFF before decides about the context.
  """
  if 'tensorflow_federated' not in sys.modules:
    contexts = importlib.import_module('tff_ssl.execution.contexts')
    contexts.remove_default()
