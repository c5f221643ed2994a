"""Keys of parties, against `cryptography` and the standards that they name."""

import hashlib
import hmac
import stat

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric import x25519
import pytest

from tests.sites import parties
from tff_ssl.sites import keys as keys_lib

_ABOUT = 'question 7'


def _derived(secret, about):
  """HKDF of RFC 5869 for 32 bytes: one block, and no salt."""
  key = hmac.digest(bytes(32), secret, hashlib.sha256)
  return hmac.digest(key, about.encode() + b'\x01', hashlib.sha256)


def _private(folder):
  return serialization.load_pem_private_key((folder / 'own.key').read_bytes(), None)


def test_a_signature_is_that_of_the_key_in_the_file(tmp_path):
  public = keys_lib.make(tmp_path, 'north')
  keys = keys_lib.Keys(tmp_path)
  signature = keys.sign(b'content')
  assert len(signature) == keys_lib.SIGNATURE_BYTES
  loaded = serialization.load_pem_public_key(public.read_bytes())
  loaded.verify(signature, b'content')
  assert keys.is_signed('north', signature, b'content')
  assert keys.public('north') == loaded.public_bytes_raw().hex()
  keys.check_own('north')
  for name, signed, content in [
    ('north', signature, b'contents'),
    ('north', signature[:-1], b'content'),
    ('north', b'', b''),
    ('south', signature, b'content'),
  ]:
    assert not keys.is_signed(name, signed, content)


def test_the_private_key_is_for_its_owner_alone(tmp_path):
  keys_lib.make(tmp_path / 'keys', 'north')
  own = tmp_path / 'keys' / 'own.key'
  assert stat.S_IMODE(own.stat().st_mode) == 0o600
  before = own.read_bytes()
  with pytest.raises(ValueError, match=r'own\.key exists; it must be removed by hand'):
    keys_lib.make(tmp_path / 'keys', 'south')
  assert own.read_bytes() == before
  assert {path.name for path in own.parent.iterdir()} == {'own.key', 'north.pub'}


def test_two_parties_share_what_x25519_and_hkdf_say(tmp_path):
  parties.exchange_keys(tmp_path, ['north', 'south', 'west'])
  keys = {name: keys_lib.Keys(tmp_path / name) for name in ('north', 'south', 'west')}
  told = {name: own.mask_key('run', name) for name, own in keys.items()}
  got = keys['north'].shared('run', 'south', told['south'], _ABOUT)
  # From the private key of the other: RFC 7748 by `cryptography`, RFC 5869 by hand.
  secret = _derived(
    _private(tmp_path / 'south').private_bytes_raw(), 'tff_ssl mask run'
  )
  other = x25519.X25519PrivateKey.from_private_bytes(secret)
  assert told['south'][0] == other.public_key().public_bytes_raw().hex()
  known = x25519.X25519PublicKey.from_public_bytes(bytes.fromhex(told['north'][0]))
  assert got == _derived(other.exchange(known), _ABOUT)
  assert got == keys['south'].shared('run', 'north', told['north'], _ABOUT)
  others = [
    keys['north'].shared('run', 'south', told['south'], 'question 8'),
    keys['north'].shared('run', 'west', told['west'], _ABOUT),
    keys['south'].shared('run', 'west', told['west'], _ABOUT),
  ]
  assert len({got, *others}) == 4
  assert keys['north'].mask_key('another run', 'north')[0] != told['north'][0]


@pytest.mark.parametrize(
  'change',
  [
    lambda *_: None,
    lambda key, _: [key],
    lambda key, _: [key, 7],
    lambda key, _: [key, 'xy'],
    lambda key, proof: [key[:-2], proof],
    # Signed by nobody.
    lambda key, proof: [key[:-1] + ('0' if key[-1] != '0' else '1'), proof],
    lambda key, proof: [key, proof[2:] + proof[:2]],
  ],
  ids=['none', 'one', 'number', 'text', 'short', 'other', 'forged'],
)
def test_a_key_for_masks_that_is_none_is_refused(tmp_path, change):
  parties.exchange_keys(tmp_path, ['north', 'south'])
  given = change(*keys_lib.Keys(tmp_path / 'south').mask_key('run', 'south'))
  with pytest.raises(ValueError, match='The key of south for masks is not one that'):
    keys_lib.Keys(tmp_path / 'north').shared('run', 'south', given, _ABOUT)


def test_a_key_for_masks_is_of_its_run_its_party_and_shares_something(tmp_path):
  parties.exchange_keys(tmp_path, ['north', 'south'])
  north, south = (keys_lib.Keys(tmp_path / name) for name in ('north', 'south'))
  # All of them are signed, but the point of the last one is of small order.
  proof = south.sign(f'tff_ssl mask run south {"00" * 32}'.encode()).hex()
  for name, given in [
    ('south', south.mask_key('another run', 'south')),
    ('south', south.mask_key('run', 'north')),
    ('north', south.mask_key('run', 'south')),
    ('south', ['00' * 32, proof]),
  ]:
    with pytest.raises(ValueError, match='for masks is not one that'):
      north.shared('run', name, given, _ABOUT)


@pytest.mark.parametrize('name', ['', '.', '../a', 'a b', 'ä', 'a/b', '-', 'x' * 41])
def test_a_name_that_is_no_folder_of_the_mailbox_is_refused(tmp_path, name):
  with pytest.raises(ValueError, match='The name of a site'):
    keys_lib.make(tmp_path / 'keys', name)
  assert not (tmp_path / 'keys').exists()


def test_a_missing_key_is_named(tmp_path):
  with pytest.raises(ValueError, match=r'own\.key is missing; it must be made by'):
    keys_lib.Keys(tmp_path)
  keys_lib.make(tmp_path, 'north')
  keys = keys_lib.Keys(tmp_path)
  with pytest.raises(ValueError, match=r'There is no key south\.pub of south in'):
    keys.public('south')
  other = keys_lib.make(tmp_path / 'other', 'south')
  other.rename(tmp_path / 'south.pub')
  again = keys_lib.Keys(tmp_path)
  assert again.names == ('north', 'south')
  with pytest.raises(ValueError, match=r'own\.key is not the key of south\.pub'):
    again.check_own('south')


_RSA = rsa.generate_private_key(65537, 1024)


def _pem(key, password=None):
  private = serialization.PrivateFormat.PKCS8
  hidden = serialization.NoEncryption()
  if password:
    hidden = serialization.BestAvailableEncryption(password)
  return key.private_bytes(serialization.Encoding.PEM, private, hidden)


@pytest.mark.parametrize(
  ('name', 'content', 'said'),
  [
    ('own.key', b'', 'is no private key'),
    ('own.key', b'\xff' * 100, 'is no private key'),
    ('own.key', _pem(ed25519.Ed25519PrivateKey.generate(), b'x'), 'is no private key'),
    ('own.key', _pem(_RSA), 'it must be of Ed25519'),
    ('own.key', b' ' * 4097, '4,097 bytes: it must have at most 4,096'),
    ('south.pub', b' ' * 4097, '4,097 bytes: it must have at most 4,096'),
    ('south.pub', b'-----BEGIN PUBLIC KEY-----\nAA\n', 'is no public key'),
    ('south.pub', _pem(_RSA), 'is no public key'),
    (
      'south.pub',
      _RSA.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
      ),
      'it must be of Ed25519',
    ),
  ],
  ids=['empty', 'bytes', 'locked', 'rsa', 'large', 'public-large', 'cut', 'private']
  + ['public-rsa'],
)
def test_a_file_that_is_no_key_is_named(tmp_path, name, content, said):
  keys_lib.make(tmp_path, 'north')
  (tmp_path / name).write_bytes(content)
  with pytest.raises(ValueError, match=rf'{name} .*{said}'):
    keys_lib.Keys(tmp_path)
