"""Leaves graphs as they were traced, which takes less time than a few small runs gain.

`python -m tests.quick PROGRAM FLAGS` is a program so, as a process: what is compared to
the byte with what `tests.binaries.in_process` runs. Graphs are optimized, as for users,
in the benchmark, a notebook, and the toy that is killed and resumed.
"""

import contextlib
import functools
import importlib
import runpy
import sys
from typing import Any

import tensorflow as tf

from tff_ssl.execution import contexts as contexts_lib


def leave_graphs_as_traced() -> None:
  """Has no function of TensorFlow's optimized in this process.

  Computations of TFF are optimized by their context: see `contexts`.
  """
  tf.config.optimizer.set_experimental_options({'disable_meta_optimizer': True})


def forget_places() -> None:
  """Has TensorFlow not note the lines of Python that each operation comes from.

  A twelfth of the time of tracing, for its errors alone: a person who looks for one
  runs the test in one process, where they are noted.
  """
  module = importlib.import_module('tensorflow.python.util.tf_stack')
  anywhere = module.extract_stack()
  module.extract_stack = lambda *_, **__: anywhere


def enter_contexts_as_they_are() -> None:
  """Has TensorFlow not describe a context manager each time that it enters one.

  It enters a graph's for every operation that is traced, and what the manager's
  function takes is looked up each time: a twentieth of the time of tracing.
  """
  module = importlib.import_module('tensorflow.python.util.tf_contextlib')
  module.contextmanager = contextlib.contextmanager


def remember_protocols() -> None:
  """Has Python look once at what a protocol has, as it does from 3.12 on.

  TensorFlow asks of each argument, and TFF of each type, whether it is of a protocol: a
  twentieth of the time of tracing.
  """
  module: Any = importlib.import_module('typing')
  module._get_protocol_attrs = functools.cache(module._get_protocol_attrs)


def name_types_in_errors_alone() -> None:
  """Has TensorFlow list the types that an operation takes when one is wrong.

  It makes that line for its error with each operation that is traced: a tenth of what
  Python does in building a process.
  """
  module: Any = importlib.import_module('tensorflow.python.framework.op_def_library')
  check = module._SatisfiesTypeConstraint

  def checked(dtype: Any, attr_def: Any, param_name: str) -> None:
    if dtype not in attr_def.allowed_values.list.type:
      check(dtype, attr_def, param_name)

  module._SatisfiesTypeConstraint = checked


def contexts() -> dict[str, functools.partial]:
  """Returns what opens contexts without optimized graphs, by its name in `context`."""
  return {
    name: functools.partial(getattr(contexts_lib, name), optimize_graphs=False)
    for name in ('in_process', 'local')
  }


if __name__ == '__main__':
  leave_graphs_as_traced()
  remember_protocols()
  name_types_in_errors_alone()
  for name, opened in contexts().items():
    setattr(contexts_lib, name, opened)
  program = sys.argv[1]
  del sys.argv[1]
  runpy.run_module(f'binaries.{program}', run_name='__main__', alter_sys=True)
