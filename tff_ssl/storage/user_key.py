"""A key that only the user has: what was written with it was written by this user.

It is in the user's cache folder. A folder from a stranger may hold whatever this user's
programs write there, but for the codes that this key makes.
"""

import contextlib
import hmac
import os
import pathlib
import secrets
import tempfile

from absl import logging

from tff_ssl.storage import files

_KEY, _KEY_BYTES = 'key', 32
# In place of a key that cannot be stored.
_KEY_OF_PROCESS = secrets.token_bytes(_KEY_BYTES)


def code(*parts: bytes) -> hmac.HMAC:
  """Returns the code of some content, to which more may be added.

  Args:
    *parts: The content; how it is divided into parts counts.
  """
  return hmac.new(_key(home()), b''.join(part + b'\0' for part in parts), 'sha256')


def home() -> pathlib.Path:
  """The cache folder of the user ($XDG_CACHE_HOME, ~/.cache)."""
  base = os.environ.get('XDG_CACHE_HOME') or pathlib.Path('~/.cache').expanduser()
  return pathlib.Path(base) / 'tff_ssl'


def _key(home: pathlib.Path) -> bytes:
  """Returns the user's key, made when it is first needed."""
  path = home / _KEY
  try:
    if not path.exists():
      home.mkdir(parents=True, exist_ok=True)
      # Temporary files are private to their owner.
      with tempfile.NamedTemporaryFile(dir=home) as file:
        file.write(secrets.token_bytes(_KEY_BYTES))
        file.flush()
        # Another process may be faster.
        with contextlib.suppress(FileExistsError):
          path.hardlink_to(file.name)
    if len(key := files.read_bytes(path, _KEY_BYTES)) == _KEY_BYTES:
      return key
    error: Exception = ValueError(f'{path} is damaged; it must be removed')
  except (OSError, ValueError) as failed:
    error = failed
  logging.warning(
    'The next start makes cache entries, and runs in trackers, again: %s', error
  )
  return _KEY_OF_PROCESS
