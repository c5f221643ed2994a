"""Leaves graphs as they were traced, which takes less time than a few small runs gain.

`python -m tests.quick PROGRAM FLAGS` is a program so, as a process: what is compared to
the byte with what `tests.binaries.in_process` runs. Graphs are optimized, as for users,
in the benchmark, a notebook, and the toy that is killed and resumed.
"""

import functools
import runpy
import sys

import tensorflow as tf

from tff_ssl.execution import contexts as contexts_lib


def leave_graphs_as_traced() -> None:
  """Has no function of TensorFlow's optimized in this process.

  Computations of TFF are optimized by their context: see `contexts`.
  """
  tf.config.optimizer.set_experimental_options({'disable_meta_optimizer': True})


def without_signals(*_: object) -> None:
  """In place of `quality.build`: to trace two views and an encoder takes a second.

  tests/binaries/quality_test.py has runs with signals.
  """


def contexts() -> dict[str, functools.partial]:
  """Returns what opens contexts without optimized graphs, by its name in `context`."""
  return {
    name: functools.partial(getattr(contexts_lib, name), optimize_graphs=False)
    for name in ('in_process', 'local', 'ray')
  }


if __name__ == '__main__':
  leave_graphs_as_traced()
  for name, opened in contexts().items():
    setattr(contexts_lib, name, opened)
  # Only here: programs are run with less.
  from binaries.experiment import quality

  quality.build = without_signals
  program = sys.argv[1]
  del sys.argv[1]
  runpy.run_module(f'binaries.{program}', run_name='__main__', alter_sys=True)
