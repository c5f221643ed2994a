"""The page that a person agrees to: sizes from shapes, in each direction."""

import collections
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow_federated as tff

from tff_ssl.sites import page


def _computation(result):
  return SimpleNamespace(type_signature=SimpleNamespace(result=result))


def _at(value):
  return SimpleNamespace(member=tff.types.to_type(collections.OrderedDict(value)))


def _exchange():
  kernel = tff.TensorType(np.float32, [100, 30])
  return SimpleNamespace(
    broadcast=_computation(_at({'model': [('kernel', kernel), ('bias', kernel)]})),
    partial=_computation(
      (
        _at(
          {
            'update': [('kernel', kernel), ('bias', kernel)],
            'weight': tff.TensorType(np.float32),
            'counts': tff.TensorType(np.int64, [50]),
          }
        ),
      )
    ),
  )


def _text(masked):
  return page.text(
    'north',
    'ab' * 32,
    {'method': 'dcco'},
    {'train': _exchange()},
    clients=1234,
    examples=56789,
    clients_per_round=8,
    masked=masked,
    judged={'judging sums': {'mean': (3,), 'second': (3, 4)}} if masked else {},
  )


@pytest.mark.parametrize(
  ('masked', 'up'),
  # 2 x 3000 and 1 numbers of 4 bytes, and 50 of 8; masked all have 8.
  [(False, '24.4 kB leave: sums over'), (True, '48.4 kB leave: masked sums')],
  ids=['plain', 'masked'],
)
def test_the_page_says_what_comes_and_what_leaves(masked, up):
  lines = _text(masked).splitlines()
  assert lines[0] == 'Offer abababababab to north'
  assert any(line.split() == ['method', 'dcco'] for line in lines)
  assert 'Of this site: 1,234 clients with 56,789 examples.' in lines
  assert '8 of the clients take part in a round.' in lines
  (exchange,) = (line for line in lines if line.startswith("In exchange 'train'"))
  assert f'of each round come 24.0 kB, and {up}' in exchange
  leaving = [line.split(maxsplit=1) for line in lines if line.endswith('s')]
  for name, numbers in [
    ('update', '6,000 numbers in 2 arrays'),
    ('weight', '1 numbers'),
    ('counts', '50 numbers'),
  ]:
    assert [name, numbers] in leaving
  judged = ['judging', 'sums', '15', 'numbers']
  assert any(line.split()[:4] == judged for line in lines) == masked
  assert ('The encoder is not judged here.' in lines) != masked
  assert lines[-1].startswith('What never leaves: pictures, the label of any, names of')
