"""The table of methods: name -> algorithm, objective and values of flags.

A method is an algorithm (`algorithms`, `decentralized_algorithms`,
`personal_algorithms`, `server_algorithms`) with an objective (`objectives`), and takes
the flags of both. Each program offers its part of the table, one family of experiments.
If the command line does not give a flag, its value is the first one found in: the
defaults of the method's row, of its program, of the objective and of the algorithm,
`DEFAULTS`, the flag's own default.
"""

from collections.abc import Collection, Mapping
from typing import Any

from binaries.flags import common
from binaries.flags import evaluation
from binaries.methods import row
from binaries.methods.families import dcco
from binaries.methods.families import dec_ssl
from binaries.methods.families import fedavg_ssl
from binaries.methods.families import fedema
from binaries.methods.families import fedsup
from binaries.methods.families import ssfl

ALGORITHMS = row.ALGORITHMS
OBJECTIVES = row.OBJECTIVES
Method = row.Method
Program = row.Program

# For every method. The server adds the unscaled mean update, like FedAvg.
DEFAULTS: Mapping[str, Any] = {
  **common.DEFAULTS,
  **evaluation.DEFAULTS,
  'server_optimizer': 'sgd',
  'server_learning_rate': 1.0,
  'server_schedule': 'constant',
  'client_learning_rate': 0.03,
  'local_epochs': 1,
  'client_optimizer': 'sgd',
  'personal_methods': [],
}

PROGRAMS: Mapping[str, Program] = {
  family.PROGRAM.name: family.PROGRAM
  for family in (dcco, fedavg_ssl, fedema, ssfl, dec_ssl, fedsup)
}


def values(program: Program, method: Method) -> dict[str, Any]:
  """Returns the values of a method's flags that the command line does not give.

  Args:
    program: The program that offers it.
    method: One of its rows.

  Returns:
    Value by name, for flags that have a value in the table.
  """
  return {
    **DEFAULTS,
    **ALGORITHMS[method.algorithm].defaults,
    **OBJECTIVES[method.objective].defaults,
    **program.defaults,
    **method.defaults,
  }


def fixed(method: Method) -> Collection[str]:
  """Returns the flags that a method does not take, but that have a fixed value."""
  own = {
    **ALGORITHMS[method.algorithm].defaults,
    **OBJECTIVES[method.objective].defaults,
    **method.defaults,
  }
  return own.keys() - method.flags()
