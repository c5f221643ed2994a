"""Specifications of partitions, and the encoder for one."""

from binaries.torturing.cases import making


def cases() -> list[making.Case]:
  """Specifications of partitions."""
  wrong = (
    ('iid', ('iid',)),
    ('iid:', ('iid',)),
    ('iid:examples', ('examples',)),
    ('iid:examples=0', ('examples',)),
    ('iid:examples=4,examples=5', ('examples',)),
    ('iid:clients=99999', ('99999',)),
    ('dirichlet:alpha=-1,examples=4', ('alpha',)),
    ('dirichlet:alpha=nan,examples=4', ('alpha',)),
    ('dirichlet:examples=4', ('alpha',)),
    ('shares:alpha=1e999,clients=5', ('alpha',)),
    ('skew:beta=2,clients=5', ('beta',)),
    ('classes:per_client=11,clients=5', ('per_client',)),
    ('quantity:clients=5', ('quantity',)),
    ('clusters:clients=5', ('--partition_encoder',)),
    ('rotation:clients=0', ('clients',)),
    ('case:max_examples=0', ('max_examples',)),
    ('cheese:clients=5', ('cheese',)),
    (':=,', ('partition',)),
    ('iid:examples=four', ('examples', 'four')),
    ('iid:examples=4.5', ('examples', '4.5')),
    ('iid:clients=-1', ('clients', '-1')),
    ('iid:examples=4,cheese=1', ('cheese',)),
    ('iid:examples=99999', ('99999',)),
    ('dirichlet:alpha=1,examples=0', ('examples',)),
    ('dirichlet:alpha=inf,examples=4', ('alpha',)),
    ('shares:alpha=1,clients=5,balanced=maybe', ('balanced', 'maybe')),
    ('skew:beta=-0.5,clients=5', ('beta',)),
    ('skew:beta=0.5', ('clients',)),
    ('classes:per_client=0,clients=5', ('per_client',)),
    ('quantity:alpha=1,power=2,clients=5', ('quantity',)),
    ('quantity:power=-1,clients=5', ('power',)),
    ('clusters:clients=0', ('clients',)),
    ('rotation:clients=5,sources=0', ('sources',)),
    ('style:clients=99999', ('99999',)),
    ('case:max_examples=-1', ('max_examples', '-1')),
    ('IID:examples=4', ('IID',)),
  )
  return [
    making.Case('partition', f'--partition={text}', words) for text, words in wrong
  ] + [
    making.Case(
      'partition',
      '--partition=clusters:clients=2 --partition_encoder={d}/encoder.keras',
      ('encoder.keras',),
      make,
    )
    for make in (making.nothing, making.text('encoder.keras', 'PK\x03\x04'))
  ]
