"""Messages as files: their bytes, and what others write in their place."""

import dataclasses
import json
import re

import hypothesis
from hypothesis import strategies
import numpy as np
import pytest
from safetensors import safe_open

from tests.sites import parties
from tff_ssl.sites import keys as keys_lib
from tff_ssl.sites import messages
from tff_ssl.storage import safetensors

_SETTINGS = hypothesis.settings(
  max_examples=100, derandomize=True, deadline=None, database=None
)
_MESSAGE = messages.Message(
  'north',
  3,
  messages.SUMS,
  'ab' * 32,
  'cd' * 32,
  'ef' * 32,
  2,
  {'round': 5, 'exchange': 'train'},
  {'model/0': np.arange(6, dtype='f4').reshape(2, 3), 'rows': np.array(7)},
)
_HEADER = dataclasses.asdict(_MESSAGE)
del _HEADER['arrays']


@pytest.fixture(scope='module')
def keys(tmp_path_factory):
  folder = tmp_path_factory.mktemp('keys')
  parties.exchange_keys(folder, ['north', 'south'])
  return {name: keys_lib.Keys(folder / name) for name in ('north', 'south')}


def _signed(keys, text, own='message'):
  header = json.dumps({'__metadata__': {own: text}}).encode()
  content = len(header).to_bytes(8, 'little') + header
  return keys['north'].sign(content) + content


def _decode(keys, content):
  return messages.decode(content, 'north', 3, keys['south'])


def _assert_refused(keys, content, said):
  with pytest.raises(messages.MessageError, match=said) as raised:
    _decode(keys, content)
  assert str(raised.value).startswith('Message 3 of north ')


def test_a_message_is_a_signature_and_a_file_that_others_read(keys, tmp_path):
  content = _MESSAGE.encode(keys['north'])
  assert keys['south'].is_signed('north', content[:64], content[64:])
  (tmp_path / 'a.safetensors').write_bytes(content[64:])
  with safe_open(tmp_path / 'a.safetensors', 'numpy') as file:
    assert json.loads(file.metadata()['message']) == _HEADER
    np.testing.assert_array_equal(file.get_tensor('rows'), 7)
  got = _decode(keys, content)
  assert dataclasses.replace(got, arrays={}) == dataclasses.replace(_MESSAGE, arrays={})
  assert got.arrays.keys() == _MESSAGE.arrays.keys()
  for name, array in _MESSAGE.arrays.items():
    np.testing.assert_array_equal(got.arrays[name], array)
    assert got.arrays[name].dtype == array.dtype


def test_the_same_message_has_the_same_bytes(keys):
  # So a party that sends again what it has sent is not two parties.
  assert _MESSAGE.encode(keys['north']) == _MESSAGE.encode(keys['north'])


@pytest.mark.parametrize(
  ('change', 'said'),
  [
    ({'number': True}, 'has number=True, which is of a wrong type'),
    ({'number': 3.0}, r'has number=3\.0, which is of a wrong type'),
    ({'oldest': '2'}, "has oldest='2', which is of a wrong type"),
    ({'kind': None}, 'has kind=None, which is of a wrong type'),
    ({'before': 5}, 'has before=5, which is of a wrong type'),
    ({'body': []}, r'has body=\[\], which is of a wrong type'),
  ],
  ids=lambda value: '-'.join(value) if isinstance(value, dict) else None,
)
def test_a_text_of_another_form_is_refused_though_it_is_signed(keys, change, said):
  _assert_refused(keys, _signed(keys, json.dumps({**_HEADER, **change})), said)


def test_a_text_without_a_field_or_without_json_is_refused(keys):
  for name in _HEADER:
    rest = {each: value for each, value in _HEADER.items() if each != name}
    _assert_refused(keys, _signed(keys, json.dumps(rest)), 'has a wrong text')
  text = json.dumps(_HEADER)
  _assert_refused(keys, _signed(keys, text, own='massage'), 'its text is not JSON')
  _assert_refused(keys, _signed(keys, text[:-1]), 'its text is not JSON')
  _assert_refused(keys, _signed(keys, f'{text[:-1]}, "number": 3}}'), 'there twice')
  _assert_refused(keys, _signed(keys, '[' * 10**5), 'its text')
  _assert_refused(keys, _signed(keys, '\ud800'), 'unexpected end of hex escape')


@_SETTINGS
@hypothesis.given(
  strategies.recursive(
    strategies.none()
    | strategies.booleans()
    | strategies.integers()
    | strategies.floats()
    | strategies.text(max_size=5),
    lambda inner: (
      strategies.lists(inner, max_size=3)
      | strategies.dictionaries(strategies.sampled_from([*_HEADER]), inner, max_size=9)
    ),
    max_leaves=12,
  )
)
def test_any_json_is_a_message_or_refused(keys, value):
  try:
    got = _decode(keys, _signed(keys, json.dumps(value)))
  except messages.MessageError as error:
    assert re.match(r'Message 3 of north .*\.$', str(error), re.DOTALL)
  else:
    assert {each: getattr(got, each) for each in _HEADER} == value


@_SETTINGS
@hypothesis.given(
  strategies.binary(max_size=200)
  | strategies.tuples(
    strategies.dictionaries(
      strategies.text(max_size=3),
      strategies.fixed_dictionaries(
        {
          'dtype': strategies.sampled_from(['F32', 'U64', 'BF16', 'BOOL', 'F8', 4]),
          'shape': strategies.lists(strategies.sampled_from([0, 1, 2, 2**62, 2**63])),
          'data_offsets': strategies.lists(strategies.integers(0, 9), max_size=3),
        }
      ),
    ),
    strategies.binary(max_size=9),
  ).map(
    lambda pair: (
      len(json.dumps(pair[0])).to_bytes(8, 'little')
      + json.dumps(pair[0]).encode()
      + pair[1]
    )
  )
)
def test_any_bytes_that_a_party_signs_are_refused(keys, content):
  _assert_refused(keys, keys['north'].sign(content) + content, '.')


def test_nothing_is_parsed_that_is_not_signed(keys, monkeypatch):
  content = _MESSAGE.encode(keys['south'])

  def parse(*arguments):
    raise AssertionError('It was parsed.')

  monkeypatch.setattr(safetensors, 'from_bytes', parse)
  for forged in (content, b'', content[:63], content[64:]):
    _assert_refused(keys, forged, 'is not signed by north; it must be')
