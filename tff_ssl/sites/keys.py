"""Who wrote a message: Ed25519 keys, made on the spot and exchanged once by people.

A folder of keys holds a party's own private key, `own.key`, and the public keys of all
that it hears from, `NAME.pub`, its own among them. Only `.pub` files are given away.
Both are PEM files, which `openssl pkey` reads.

Secure sums need a key that two sites share and nobody else knows. It follows from
their X25519 keys, each of which follows from the private key and the run (HKDF), so
that a site that begins again has the same.
"""

import os
import pathlib
from typing import Any

from cryptography import exceptions
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519
from cryptography.hazmat.primitives.asymmetric import x25519
from cryptography.hazmat.primitives.kdf import hkdf

from tff_ssl.storage import files

OWN, PUBLIC = 'own.key', '.pub'
COORDINATOR = 'coordinator'
SIGNATURE_BYTES = 64
_KEY_BYTES = 32
# PEM files of these keys have some 120 bytes.
_MOST_BYTES = 4096
_MOST_NAME = 40


def check_name(name: str) -> None:
  """Raises ValueError if a party cannot be called so: its name is that of a folder."""
  if not (name.isascii() and name.replace('-', '').replace('_', '').isalnum()):
    raise ValueError(
      f'The name of a site is {name!r}; it must have letters, digits, - and _ only.'
    )
  if len(name) > _MOST_NAME:
    raise ValueError(
      f'The name of a site has {len(name)} characters; it must have at most '
      f'{_MOST_NAME}.'
    )


def make(folder: str | os.PathLike[str], name: str) -> pathlib.Path:
  """Makes a pair of keys; returns the file of the public one.

  Args:
    folder: The folder of keys, which is made if it is missing.
    name: Of the site, or `COORDINATOR`.

  Raises:
    ValueError: If there is a key already, or the name cannot be one.
    OSError: If nothing can be written there.
  """
  check_name(name)
  folder = pathlib.Path(folder)
  if (own := folder / OWN).exists():
    raise ValueError(f'{own} exists; it must be removed by hand before a new key.')
  folder.mkdir(parents=True, exist_ok=True)
  private = ed25519.Ed25519PrivateKey.generate()
  public = folder / f'{name}{PUBLIC}'
  files.write(
    public,
    private.public_key().public_bytes(
      serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    ),
  )
  content = private.private_bytes(
    serialization.Encoding.PEM,
    serialization.PrivateFormat.PKCS8,
    serialization.NoEncryption(),
  )
  # Never readable by others, not even while it is written.
  descriptor = os.open(own, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
  with os.fdopen(descriptor, 'wb') as file:
    file.write(content)
    file.flush()
    os.fsync(file.fileno())
  return public


class Keys:
  """The keys of a party.

  Attributes:
    names: All whose public keys are there, its own among them, sorted.
  """

  def __init__(self, folder: str | os.PathLike[str]):
    """Reads all keys of a folder.

    Raises:
      ValueError: If there is no private key, or a file is no key.
      OSError: If a file cannot be read.
    """
    self._folder = folder = pathlib.Path(folder)
    if not (own := folder / OWN).is_file():
      raise ValueError(
        f'{own} is missing; it must be made by `python -m binaries.site --new_key '
        f'--name=NAME --keys={folder}`.'
      )
    self._private = _private(own)
    self._public = {
      path.name.removesuffix(PUBLIC): _public(path)
      for path in sorted(folder.glob(f'*{PUBLIC}'))
    }
    self.names = tuple(self._public)

  def check_own(self, name: str) -> None:
    """Raises ValueError unless the private key is that of a name.

    Args:
      name: The party's.
    """
    if self.public(name) != self._private.public_key().public_bytes_raw().hex():
      raise ValueError(f'{OWN} is not the key of {name}{PUBLIC}; it must be.')

  def public(self, name: str) -> str:
    """Returns a public key, as hexadecimal digits.

    Args:
      name: Whose.

    Raises:
      ValueError: If it is not there.
    """
    if name not in self._public:
      raise ValueError(
        f'There is no key {name}{PUBLIC} of {name} in {self._folder}; it must be there.'
      )
    return self._public[name].public_bytes_raw().hex()

  def sign(self, content: bytes) -> bytes:
    """Returns the signature of some content, `SIGNATURE_BYTES` long."""
    return self._private.sign(content)

  def is_signed(self, name: str, signature: bytes, content: bytes) -> bool:
    """Returns whether a party has signed some content.

    Args:
      name: The party.
      signature: The signature.
      content: The content.
    """
    if name not in self._public:
      return False
    try:
      self._public[name].verify(signature, content)
    except exceptions.InvalidSignature:
      return False
    return True

  def mask_key(self, run: str, name: str) -> list[str]:
    """Returns this party's public X25519 key in a run, and its signature of it.

    Args:
      run: The run.
      name: The party's.
    """
    key = self._mask_key(run).public_key().public_bytes_raw().hex()
    return [key, self.sign(_proved(run, name, key)).hex()]

  def shared(self, run: str, name: str, other: Any, about: str) -> bytes:
    """Returns 32 bytes that only this party and another one can compute.

    Args:
      run: The run.
      name: The other's.
      other: Its `mask_key` in the run, perhaps of a stranger.
      about: What they are for; other bytes for each.

    Raises:
      ValueError: If the key is not one, or not signed by the other.
    """
    is_text = isinstance(other, list) and all(isinstance(each, str) for each in other)
    try:
      key, proof = other if is_text else ('', '')
      if self.is_signed(name, bytes.fromhex(proof), _proved(run, name, key)):
        public = x25519.X25519PublicKey.from_public_bytes(bytes.fromhex(key))
        return _derived(self._mask_key(run).exchange(public), about)
    except ValueError:
      # No hexadecimal digits, another number of them, or a key that shares nothing.
      pass
    raise ValueError(
      f'The key of {name} for masks is not one that {name} has signed; it must be, by '
      f'the key {name}{PUBLIC}.'
    )

  def secret(self, about: str) -> int:
    """Returns a number of 63 bits that only this party knows.

    Args:
      about: What it is for; another number for each.
    """
    drawn = _derived(self._private.private_bytes_raw(), f'tff_ssl secret {about}')
    return int.from_bytes(drawn[:8], 'little') >> 1

  def _mask_key(self, run: str) -> x25519.X25519PrivateKey:
    secret = _derived(self._private.private_bytes_raw(), f'tff_ssl mask {run}')
    return x25519.X25519PrivateKey.from_private_bytes(secret)


def _proved(run: str, name: str, key: str) -> bytes:
  return f'tff_ssl mask {run} {name} {key}'.encode()


def _derived(secret: bytes, about: str) -> bytes:
  return hkdf.HKDF(hashes.SHA256(), _KEY_BYTES, None, about.encode()).derive(secret)


def _private(path: pathlib.Path) -> ed25519.Ed25519PrivateKey:
  content = files.read_bytes(path, _MOST_BYTES)
  try:
    key = serialization.load_pem_private_key(content, None)
  except (ValueError, TypeError, exceptions.UnsupportedAlgorithm) as error:
    raise ValueError(f'{path} is no private key: {error}') from error
  if not isinstance(key, ed25519.Ed25519PrivateKey):
    raise ValueError(f'{path} is a {type(key).__name__}; it must be of Ed25519.')
  return key


def _public(path: pathlib.Path) -> ed25519.Ed25519PublicKey:
  content = files.read_bytes(path, _MOST_BYTES)
  try:
    key = serialization.load_pem_public_key(content)
  except (ValueError, exceptions.UnsupportedAlgorithm) as error:
    raise ValueError(f'{path} is no public key: {error}') from error
  if not isinstance(key, ed25519.Ed25519PublicKey):
    raise ValueError(f'{path} is a {type(key).__name__}; it must be of Ed25519.')
  return key
