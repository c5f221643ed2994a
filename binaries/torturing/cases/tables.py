"""Tables of numbers."""

import numpy as np

from binaries.torturing.cases import making


def cases() -> list[making.Case]:
  """Tables of numbers."""
  return [
    making.Case('dcco', making.OF_TABLE, ('t.csv',)),
    making.Case('dcco', making.OF_TABLE, ('t.csv',), making.text('t.csv', '')),
    making.Case(
      'dcco', making.OF_TABLE, ('t.csv',), making.text('t.csv', '\x00\x01\xff')
    ),
    making.Case(
      'dcco', making.OF_TABLE, ('t.csv', 'label'), making.text('t.csv', 'a,b\n1,2\n')
    ),
    making.Case(
      'dcco',
      making.OF_TABLE,
      ('Line 2', 't.csv'),
      making.text('t.csv', 'a,label\nx,0\n'),
    ),
    making.Case(
      'dcco',
      making.OF_TABLE,
      ('finite',),
      making.text('t.csv', 'a,label\nnan,0\n1,0\n'),
    ),
    making.Case(
      'dcco', making.OF_TABLE, ('t.csv',), making.text('t.csv', 'a,label\n1\n')
    ),
    making.Case('dcco', making.OF_TABLE, ('t.csv',), lambda d: (d / 't.csv').mkdir()),
    making.Case('dcco', making.OF_NPZ, ('t.npz',), making.text('t.npz', 'PK\x03\x04')),
    making.Case('dcco', making.OF_NPZ, ('t.npz', 'features'), making.npz(label=[0, 1])),
    making.Case(
      'dcco',
      making.OF_NPZ,
      ('features',),
      making.npz(features=['a', 'b'], label=[0, 1]),
    ),
    making.Case(
      'dcco', making.OF_NPZ, ('t.npz',), making.npz(features=[{}, {}], label=[0, 1])
    ),
    making.Case(
      'dcco',
      making.OF_NPZ,
      ('label',),
      making.npz(features=np.eye(3), label=[0.5, 1, 2]),
    ),
    making.Case(
      'dcco', making.OF_NPZ, ('label',), making.npz(features=np.eye(3), label=[0, 1])
    ),
    making.Case(
      'dcco',
      making.OF_NPZ,
      ('label',),
      making.npz(features=np.eye(3), label=[10**12, 0, 0]),
    ),
    making.Case(
      'dcco',
      making.OF_NPZ,
      ('label',),
      making.npz(features=np.eye(3), label=[-2, 0, 0]),
    ),
  ]
