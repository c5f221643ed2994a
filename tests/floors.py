"""The floors of the house: what a package may import.

Read by the generator of the BUILD files and by the tests that hold the tree to it.
"""

# Bottom first. A module imports from its own package and from floors below it;
# packages on one floor do not import each other.
FLOORS = (
  ('tff_ssl',),
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
  ('tff_ssl.algorithms',),
  ('tff_ssl.runtime',),
  ('tff_ssl.reporting',),
  ('tasks',),
  ('binaries.flags',),
  ('binaries.methods',),
  ('binaries.experiment', 'binaries.benchmarking'),
  ('binaries',),
  ('tests',),
)

# The packages of the library that may import TFF.
FEDERATED = frozenset(('tff_ssl.aggregators', 'tff_ssl.algorithms', 'tff_ssl.runtime'))


def floor_of(package: str) -> int:
  """Finds the floor of a package, or of the package it lies in.

  Args:
    package: Dotted name, such as 'tff_ssl.losses'.

  Returns:
    Index into `FLOORS`.

  Raises:
    ValueError: If the package is on no floor.
  """
  for index, packages in enumerate(FLOORS):
    if package in packages:
      return index
  # tff_ssl's own floor is for its own modules: a new package there must be placed.
  for index, packages in enumerate(FLOORS[1:], start=1):
    if any(package.startswith(f'{name}.') for name in packages):
      return index
  raise ValueError(
    f'Package {package} is on no floor: name it in FLOORS of tests/floors.py.'
  )
