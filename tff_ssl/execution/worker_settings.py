"""Checks that a worker elsewhere has settings that give the same numbers as ours.

A sum over more threads is rounded differently: a worker that somebody else started
gives our workers' numbers only with the same settings. A computation reads them from
the worker's environment; nothing else of the environment leaves the worker.
"""

import os

import tensorflow as tf
import tensorflow_federated as tff

# Environment variables that TensorFlow reads.
_THREADS, _ONEDNN = 'TF_NUM_INTRAOP_THREADS', 'TF_ENABLE_ONEDNN_OPTS'
_NAMES = (_THREADS, _ONEDNN)
_UNSET = 'unset'


@tff.tensorflow.computation
def _settings():
  # Zero bytes separate the entries.
  text = tf.strings.join(['\0', tf.io.read_file('/proc/self/environ')])
  values = []
  for name in _NAMES:
    is_set = tf.strings.regex_full_match(text, f'(?s).*\\x00{name}=[^\\x00]*.*')
    value = tf.strings.regex_replace(
      text, f'(?s).*\\x00{name}=([^\\x00]*).*', r'\1', replace_global=False
    )
    values.append(tf.where(is_set, value, _UNSET))
  return tf.stack(values)


def check(address: str, intra_op_threads: int = 1) -> None:
  """Refuses a worker that would round differently from one of ours.

  Args:
    address: Address of the worker, TFF's default context, for the message.
    intra_op_threads: Threads per operation that the worker must have.

  Raises:
    ValueError: If a setting differs.
  """
  actual = [bytes(value).decode(errors='replace') for value in _settings()]
  expected = [str(intra_op_threads), os.environ.get(_ONEDNN, _UNSET)]
  for name, value, own in zip(_NAMES, actual, expected, strict=True):
    if value != own:
      raise ValueError(
        f'the TFF worker at {address} was started with {name} {value}; it must have '
        f'{own}, because the last digits of all numbers depend on it: start it with '
        '`python -m binaries.worker`'
      )
