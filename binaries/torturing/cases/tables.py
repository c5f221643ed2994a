"""Tables of numbers."""

import pathlib

import numpy as np

from binaries.torturing.cases import making


def _npy(folder: pathlib.Path) -> None:
  """Makes a .npy file that is named like a .npz."""
  with (folder / 't.npz').open('wb') as file:
    np.save(file, np.eye(3))


def _damaged(folder: pathlib.Path) -> None:
  """Makes a compressed .npz with zeros in the middle of its first array."""
  np.savez_compressed(folder / 't.npz', features=np.eye(30), label=np.arange(30) % 2)
  content = bytearray((folder / 't.npz').read_bytes())
  content[100:120] = bytes(20)
  (folder / 't.npz').write_bytes(content)


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
    making.Case('dcco', making.OF_NPZ, ('t.npz', 'single array'), _npy),
    making.Case('dcco', making.OF_NPZ, ('t.npz', 'cannot be read'), _damaged),
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
