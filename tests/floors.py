"""The floors of the house: what a package may import.

Read by the tests that hold the imports (floors_test.py) and the BUILD files
(build_test.py) to it.
"""

# Bottom first. A module imports from its own package and from floors below it;
# packages on one floor do not import each other. What lies in a package and is not
# named here belongs to that package. A package may be named before it exists.
FLOORS = (
  ('tff_ssl',),
  ('tff_ssl.computing', 'tff_ssl.storage'),
  ('tff_ssl.settings',),
  (
    'tff_ssl.augment',
    'tff_ssl.encoders',
    'tff_ssl.losses',
    'tff_ssl.optimization',
    'tff_ssl.partition',
  ),
  ('tff_ssl.evaluation',),
  ('tff_ssl.objectives',),
  ('tff_ssl.aggregators',),
  ('tff_ssl.federated',),
  ('tff_ssl.algorithms',),
  ('tff_ssl.execution', 'tff_ssl.simulation'),
  ('tff_ssl.runs',),
  ('tff_ssl.export', 'tff_ssl.reporting', 'tff_ssl.sites'),
  ('tasks',),
  ('binaries.config',),
  ('binaries.building', 'binaries.launching'),
  ('binaries.experiment',),
  ('binaries',),
  ('carriers', 'docs'),
  ('tests',),
)

# The packages of the library that may import TFF.
IMPORT_TFF = frozenset(
  (
    'tff_ssl.aggregators',
    'tff_ssl.federated',
    'tff_ssl.algorithms',
    'tff_ssl.execution',
    'tff_ssl.simulation',
  )
)

# The files that explain all others, in the order in which CONTRIBUTING.md reads them.
SPINE = (
  'encoders.network',
  'objectives.base',
  'objectives.dual_encoder',
  'aggregators.combine',
  'federated.client_functions',
  'federated.phases',
  'algorithms.fedavg',
  'algorithms.statistics.dcco',
  'federated.phase_graph',
  'federated.processes',
  'runs.loop',
  'runs.run_folder',
)
# What else of tff_ssl they import, by package: details behind a name that says enough.
SPINE_IMPORTS = {
  'aggregators': 'aggregations communication',
  'algorithms.statistics': 'full_batch messages per_client_statistics stale_statistics',
  'augment': 'multiview',
  'computing': 'checks kinds',
  'encoders': (
    'checks frozen_layers interpreters keras_archive lora network_ops '
    'parameter_names parameters per_client_gradients projector'
  ),
  'encoders.operations': 'convolution',
  'execution': 'contexts',
  'federated': (
    'client_states clients local_training noise round_metrics server steps '
    'update_lengths vectorized_clients'
  ),
  'losses': 'statistics_loss',
  'objectives': 'batch_norm_statistics collapse separable statistics',
  'optimization': 'schedules',
  'runs': (
    'alarms checkpoints flat_metrics interruption meter number_trackers '
    'progress_display round_algorithms round_table run_config '
    'saved_rows'
  ),
  'settings': 'learning methods',
  'simulation': 'prefetch',
  'storage': 'files',
}
MOST_SPINE_LINES = 3_000


def placed(package: str) -> str:
  """Finds the package of `FLOORS` that a package is, or that it lies in.

  Args:
    package: Dotted name, such as 'tff_ssl.losses'.

  Returns:
    The innermost package of `FLOORS`: 'tff_ssl.losses' for 'tff_ssl.losses.deeper'.

  Raises:
    ValueError: If the package is on no floor.
  """
  names = {name for floor in FLOORS for name in floor}
  if package in names:
    return package
  # tff_ssl's own floor is for its own modules: a new package there must be placed.
  outer = [n for n in names if package.startswith(f'{n}.') and n != 'tff_ssl']
  if not outer:
    raise ValueError(
      f'Package {package} is on no floor: name it in FLOORS of tests/floors.py.'
    )
  return max(outer, key=len)


def floor_of(package: str) -> int:
  """Finds the floor of a package, or of the package it lies in.

  Args:
    package: Dotted name, such as 'tff_ssl.losses'.

  Returns:
    Index into `FLOORS`.

  Raises:
    ValueError: If the package is on no floor.
  """
  name = placed(package)
  return next(index for index, floor in enumerate(FLOORS) if name in floor)
