"""A thousand files in the place of a message: none is taken, and each is named.

They are made of valid files of the same sender, of another site, of another run and of
another version, by what carriers and strangers can do to files.
"""

import dataclasses
import json

import numpy as np
import pytest

from tests.sites import parties
from tff_ssl.sites import keys as keys_lib
from tff_ssl.sites import messages
from tff_ssl.storage import safetensors

_FILES, _SEED = 1000, 68
_RUN, _OTHER_RUN = 'ab' * 32, 'cd' * 32
_NAME = 'Message 3 of north'
_UNSIGNED = f'{_NAME} is not signed by north; it must be.'
_DUE = 3
# What the text of a message has.
_HEADER = [each.name for each in dataclasses.fields(messages.Message)][:-1]


class _Forger:
  """Makes files that are not message 3 of north, and says how each must be named."""

  def __init__(self, path, generator):
    self.world = parties.World(path, ['north', 'south', 'west'])
    self._random = generator
    self.valid = {name: self._send(name, _RUN) for name in ('north', 'south')}
    self._due = messages.decode(
      self.valid['north'][_DUE], 'north', _DUE, self.world.keys('west')
    )
    # Somebody who calls itself north, with a key of its own.
    keys_lib.make(path / 'stranger', 'north')
    self._stranger = keys_lib.Keys(path / 'stranger')
    self._own = self.world.keys('north')

  def _send(self, name, run):
    outbox = self.world.outbox(name)
    for round in range(1, 7):
      arrays = {'x': self._random.normal(size=[5]).astype('f4')}
      outbox.send(run, messages.SUMS, {'round': round}, arrays, f'question {round}')
    return {number: self.world.box.get(name, number) for number in range(1, 7)}

  def _signed(self, keys=None, **changes):
    return dataclasses.replace(self._due, **changes).encode(keys or self._own)

  def flipped(self):
    content = bytearray(self.valid['north'][_DUE])
    content[self._random.integers(len(content))] ^= 1 << self._random.integers(8)
    return bytes(content), _UNSIGNED

  def cut(self):
    content = self.valid['north'][_DUE]
    start, end = sorted(self._random.integers(0, len(content), 2))
    return (
      content[:end] if self._random.integers(2) else content[start:end]
    ), _UNSIGNED

  def grown(self):
    return self.valid['north'][_DUE] + self._random.bytes(
      1 + self._random.integers(99)
    ), _UNSIGNED

  def random(self):
    return self._random.bytes(self._random.integers(2000)), _UNSIGNED

  def swapped(self):
    content, other = self.valid['north'][_DUE], self._some('north', [1, 2, 4, 5, 6])
    # The signature of one file before the content of another.
    return other[:64] + content[64:], _UNSIGNED

  def forged(self):
    return self._signed(self._stranger, number=_DUE), _UNSIGNED

  def of_another_site(self):
    return self._some('south', [1, 2, 3, 4, 5, 6]), _UNSIGNED

  def moved(self):
    # Of earlier messages, as if they were sent again, and of later ones.
    number = int(self._random.choice([1, 2, 4, 5, 6]))
    return (
      self.valid['north'][number],
      f'{_NAME} is message {number} of north; it was moved there.',
    )

  def of_another_run(self):
    # North signs for another run too, even with the same message before.
    return (
      self._signed(run=_OTHER_RUN, answers=self._random.bytes(8).hex()),
      f'{_NAME} is of another run; it must be of abababababab.',
    )

  def of_another_chain(self):
    return (
      self._signed(before=self._random.bytes(32).hex()),
      f'{_NAME} does not follow message 2, as it was read; it must.',
    )

  def of_another_sender(self):
    return (
      self._signed(sender='south'),
      f'{_NAME} is message 3 of south; it was moved there.',
    )

  def of_another_version(self):
    header = {name: getattr(self._due, name) for name in _HEADER}
    text = json.dumps({**header, 'version': int(self._random.integers(99))})
    content = safetensors.as_bytes(self._due.arrays, {'message': text})
    return (
      self._own.sign(content) + content,
      f'{_NAME} has a wrong text; it must have {", ".join(_HEADER)}.',
    )

  def _some(self, name, numbers):
    return self.valid[name][int(self._random.choice(numbers))]


_WAYS = [name for name in vars(_Forger) if not name.startswith('_')]


def test_none_of_a_thousand_is_taken_and_each_is_named(tmp_path):
  forger = _Forger(tmp_path, np.random.default_rng(_SEED))
  world, valid = forger.world, forger.valid['north']
  inbox = world.inbox('west')
  for _ in range(_DUE - 1):
    link = inbox.take('north', _RUN).link
  inbox.remember()
  place = {n: world.box.path / 'north' / f'{n:08d}.message' for n in valid}
  for number in (4, 5, 6):
    place[number].unlink()
  refused = 0
  for k in range(_FILES):
    way = _WAYS[k % len(_WAYS)]
    content, said = getattr(forger, way)()
    place[_DUE].write_bytes(content)
    if k % 3 == 0:
      # The reader begins again: what it knows is on its disk.
      inbox = world.inbox('west')
    with pytest.raises(messages.MessageError) as raised:
      inbox.take('north', _RUN)
    assert str(raised.value) == said, way
    assert inbox.position('north') == link
    refused += 1
  assert refused == 1000
  # Without any of them, the right ones are taken.
  for number in (3, 4, 5, 6):
    place[number].write_bytes(valid[number])
    assert inbox.take('north', _RUN).digest == messages.digest(valid[number])
