"""Messages between sites and their coordinator: one signed file each, in a chain.

A file is an Ed25519 signature (64 bytes) and a `.safetensors` file, whose one text
`message` says in JSON who sends what: run, number, the digest of the sender's message
before, the digest of the message that it answers, its kind and some numbers. Nothing of
a file is parsed before its signature holds, and nothing in it is a program.

So a message that is forged, changed, cut, of another run, sent twice, left out or out
of order is told from the one that is due, and named.
"""

from collections.abc import Mapping
import dataclasses
import hashlib
import json
from typing import Any

import numpy as np

from tff_ssl.sites import keys as keys_lib
from tff_ssl.storage import files
from tff_ssl.storage import safetensors

# Kinds. The coordinator offers a run, gives the values of an exchange, asks for sums by
# which to judge, and ends the run; a site joins or refuses, and answers.
OFFER, VALUES, JUDGE, END = 'offer', 'values', 'judge', 'end'
JOIN, REFUSE, SUMS = 'join', 'refuse', 'sums'
_TEXT = 'message'


class MessageError(ValueError):
  """A message that is not the one that is due; the sentence names it, and why."""


@dataclasses.dataclass(frozen=True)
class Message:
  """A message.

  Attributes:
    sender: Name of the party.
    number: Its place among the sender's messages, from 1.
    kind: See this module.
    run: Digest of the run's offer; '' of the offer itself.
    before: Digest of the sender's message before; '' of the first.
    answers: Digest of the message that it answers; '' if none.
    oldest: Number of the sender's oldest message that is still kept.
    body: JSON values by name.
    arrays: Arrays by name.
  """

  sender: str
  number: int
  kind: str
  run: str = ''
  before: str = ''
  answers: str = ''
  oldest: int = 1
  body: Mapping[str, Any] = dataclasses.field(default_factory=dict)
  arrays: Mapping[str, np.ndarray] = dataclasses.field(default_factory=dict)

  def encode(self, keys: keys_lib.Keys) -> bytes:
    """Returns the signed file.

    Args:
      keys: The sender's.
    """
    fields = {name: getattr(self, name) for name in _HEADER}
    text = json.dumps(fields, sort_keys=True)
    content = safetensors.as_bytes(self.arrays, {_TEXT: text})
    return keys.sign(content) + content


# What the text of a message has.
_HEADER = {
  each.name: each.type for each in dataclasses.fields(Message) if each.name != 'arrays'
}
_TYPES = {'number': int, 'oldest': int, 'body': dict}


def digest(content: bytes) -> str:
  """Returns what identifies a file: SHA-256 in hexadecimal digits."""
  return hashlib.sha256(content).hexdigest()


def decode(content: bytes, sender: str, number: int, keys: keys_lib.Keys) -> Message:
  """Returns the message of a file.

  Args:
    content: The file, perhaps of a stranger.
    sender: Who must have sent it.
    number: Which of the sender's messages it must be.
    keys: The reader's.

  Raises:
    MessageError: If it is another message, or none.
  """
  name = f'Message {number} of {sender}'
  signature = content[: keys_lib.SIGNATURE_BYTES]
  content = content[keys_lib.SIGNATURE_BYTES :]
  if not keys.is_signed(sender, signature, content):
    raise MessageError(f'{name} is not signed by {sender}; it must be.')
  try:
    arrays, about = safetensors.from_bytes(content)
    fields = files.parse_json(about.get(_TEXT, '').encode(), 'its text')
  except ValueError as error:
    raise MessageError(f'{name} {error}.') from error
  if not isinstance(fields, dict) or fields.keys() != _HEADER.keys():
    raise MessageError(f'{name} has a wrong text; it must have {", ".join(_HEADER)}.')
  for each, value in fields.items():
    if type(value) is not _TYPES.get(each, str):
      raise MessageError(f'{name} has {each}={value!r}, which is of a wrong type.')
  message = Message(**fields, arrays=arrays)
  if (message.sender, message.number) != (sender, number):
    raise MessageError(
      f'{name} is message {message.number} of {message.sender}; it was moved there.'
    )
  return message
