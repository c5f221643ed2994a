"""A partition as one word, as in `dirichlet:alpha=0.1,examples=4`.

  iid:examples=4            clients of 4 examples, IID
  iid:clients=5             5 clients of equal size, IID
  dirichlet:alpha=0,examples=4   clients of 4 examples, of one class each
  shares:alpha=0.1,clients=5     5 clients, each with its share of every class
  case                      each case is a client
  case:max_examples=6       the same, of 6 examples at most

The fields are those of the configuration that a kind names.
"""

import dataclasses
from typing import TypeAlias

import numpy as np

from tff_ssl.partition import cases as cases_lib
from tff_ssl.partition import clients as clients_lib
from tff_ssl.partition import dirichlet
from tff_ssl.partition import iid
from tff_ssl.partition import shares

PartitionConfig: TypeAlias = (
  iid.IidConfig | dirichlet.DirichletConfig | shares.SharesConfig | cases_lib.CaseConfig
)

_CONFIGS: dict[str, type[PartitionConfig]] = {
  'iid': iid.IidConfig,
  'dirichlet': dirichlet.DirichletConfig,
  'shares': shares.SharesConfig,
  'case': cases_lib.CaseConfig,
}
KINDS = tuple(_CONFIGS)


def parse(text: str) -> PartitionConfig:
  """Reads the specification of a partition.

  Args:
    text: `kind` or `kind:field=value,...`, see the module.

  Returns:
    The configuration.

  Raises:
    ValueError: The kind, a field or a value is not an allowed one, a field is
      missing or given twice.
  """
  kind, colon, rest = text.strip().partition(':')
  if kind not in _CONFIGS:
    raise ValueError(
      f'The partition {text!r} is of unknown kind {kind!r}; allowed are '
      f'{", ".join(KINDS)}.'
    )
  fields = {field.name: field for field in dataclasses.fields(_CONFIGS[kind])}
  values: dict[str, int | float] = {}
  for item in rest.split(',') if colon else []:
    name, equals, value = (part.strip() for part in item.partition('='))
    if name not in fields or not equals:
      raise ValueError(
        f'The partition {text!r} has {item!r}; allowed are '
        f'{", ".join(f"{field}=NUMBER" for field in fields)}.'
      )
    if name in values:
      raise ValueError(f'The partition {text!r} gives {name!r} twice.')
    number = float if fields[name].type is float else int
    try:
      values[name] = number(value)
    except ValueError:
      kind_of_number = 'number' if number is float else 'whole number'
      raise ValueError(
        f'The partition {text!r} has {name}={value!r}, which must be a '
        f'{kind_of_number}.'
      ) from None
  for name, field in fields.items():
    if field.default is dataclasses.MISSING and name not in values:
      raise ValueError(f'The partition {text!r} lacks {name}=NUMBER.')
  return _CONFIGS[kind](**values)  # type: ignore[arg-type]


def build(
  config: str | PartitionConfig, labels: np.ndarray, cases: np.ndarray, seed: int
) -> clients_lib.Partition:
  """Deals the training examples to clients.

  Args:
    config: A configuration, or its specification as text.
    labels: int [n], the label of each example, -1 where it has none.
    cases: int [n], the case of each example.
    seed: The same seed, configuration and arrays give the same partition.

  Returns:
    The partition: no example belongs to two clients.

  Raises:
    ValueError: The configuration does not fit the examples.
  """
  if labels.ndim != 1 or labels.shape != cases.shape:
    raise ValueError(
      f'labels of shape {labels.shape} and cases of shape {cases.shape} must be two '
      'vectors of the same length.'
    )
  config = parse(config) if isinstance(config, str) else config
  rng = np.random.default_rng(seed)
  match config:
    case iid.IidConfig():
      return iid.build(config, len(labels), rng)
    case dirichlet.DirichletConfig():
      return dirichlet.build(config, labels, rng)
    case shares.SharesConfig():
      return shares.build(config, labels, rng)
    case cases_lib.CaseConfig():
      return cases_lib.build(config, cases, rng)
  raise ValueError(f'{config!r} is not a configuration of a partition.')
