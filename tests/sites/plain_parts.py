"""A process in parts that needs no TensorFlow, its sites' rounds, and the round loop.

A round has two exchanges: of means, then of what moves the server. Each client keeps a
number that enters its sums, so that a site that goes back to a wrong round shows it.
All numbers are small integers: sums of float32 are exact.
"""

import collections
import pathlib
import threading
from types import SimpleNamespace
from typing import Any

import numpy as np
import tensorflow_federated as tff

from tff_ssl.federated import parts as parts_lib
from tff_ssl.runs import round_table
from tff_ssl.sites import participation
from tff_ssl.sites import site_rounds
from tff_ssl.storage import files

_NUMBER = tff.TensorType(np.float32)
_SUMS = tff.types.to_type(
  collections.OrderedDict(weight=_NUMBER, moved=tff.TensorType(np.float32, [2]))
)
STATE = 'state.json'


class _Computation:
  """A function with the type that those of TFF have."""

  def __init__(self, function, parameter, result):
    self._function = function
    self.type_signature = SimpleNamespace(parameter=parameter, result=result)

  def __call__(self, *arguments):
    return self._function(*arguments)


def _at(member):
  return SimpleNamespace(member=member)


def _type(*names):
  return tff.types.to_type(collections.OrderedDict((name, _NUMBER) for name in names))


def _broadcast(name):
  return _Computation(
    lambda state: collections.OrderedDict([(name, np.float32(state[name]))]),
    None,
    _at(_type(name)),
  )


def _partial(function, *names):
  def run(known, states, data):
    moved = [function(known, own, x) for own, x in zip(states, data, strict=True)]
    sums = collections.OrderedDict(
      weight=np.float32(len(data)), moved=np.sum(moved, 0, dtype=np.float32)
    )
    return parts_lib.Partial(sums, [own + 1 for own in states])

  return _Computation(
    run, (_at(_type(*names)), _at(_NUMBER), _at(_NUMBER)), (_at(_SUMS), _at(_NUMBER))
  )


def _receive(change):
  def receive(state, sums):
    (own,) = sums
    after = {name: int(value) for name, value in change(state, own).items()}
    metrics = collections.OrderedDict(clients=float(own['weight']))
    return {**state, **after}, collections.OrderedDict(client_work=metrics)

  return receive


def build() -> parts_lib.Parts:
  exchanges = collections.OrderedDict(
    mean=parts_lib.ExchangeParts(
      _broadcast('model'),
      _partial(lambda known, own, x: [x + known['model'], own], 'model'),
      _receive(lambda _, sums: {'mean': sums['moved'].sum() % 97}),
    ),
    train=parts_lib.ExchangeParts(
      _broadcast('mean'),
      _partial(
        lambda known, own, x: [x * known['mean'] + own, known['model']], 'model', 'mean'
      ),
      _receive(lambda state, sums: {'model': (state['model'] + sums['moved'][0]) % 89}),
    ),
  )
  return parts_lib.Parts(
    lambda: {'model': 1, 'mean': 0}, exchanges, lambda state: state, None, False
  )


# What each client of each site holds.
CLIENTS = {'east': [1.0, 2.0], 'north': [5.0], 'south': [7.0, 3.0, 4.0]}


def alone(rounds: int, who: Any = tuple(CLIENTS)) -> list[dict[str, int]]:
  """Returns the states after each round, of one process that has all clients.

  Args:
    rounds: How many.
    who: The sites, or a function of a round that returns them.
  """
  built = build()
  state, states = built.initialize(), []
  kept = {name: [0.0] * len(own) for name, own in CLIENTS.items()}
  for round in range(1, rounds + 1):
    known, names = {}, who(round) if callable(who) else who
    for exchange in built.exchanges.values():
      known.update(exchange.broadcast(state))
      own, data = (
        [each for name in names for each in of[name]] for of in (kept, CLIENTS)
      )
      state, _ = exchange.receive(state, [exchange.partial(known, own, data).sums])
      for name in names:
        kept[name] = [each + 1 for each in kept[name]]
    states.append(state)
  return states


class KeptRounds:
  """Rounds whose clients' states are in a file; as strict as `state_store`."""

  def __init__(self, process):
    self._process = process
    self._round = 0
    self._kept: dict[int, list[float]] = {}

  def next(self, state, cohort):
    own = self._kept[max(self._kept)] or [0.0] * len(cohort)
    output = self._process.next(state, own, cohort)
    self.skip(self._round + 2)
    self._kept[self._round] = output.client_states
    self._write()

  def resume(self, folder, round):
    self._path = pathlib.Path(folder) / 'kept.json'
    stored = {'0': []}
    if self._path.is_file():
      stored = files.read_json(self._path)
    self._kept = {int(each): own for each, own in stored.items()}
    if round not in self._kept:
      raise ValueError(f'There is no round {round}, but {[*self._kept]}.')
    self._kept = {each: own for each, own in self._kept.items() if each <= round}
    self._round = round

  def skip(self, round):
    while self._round < round - 1:
      self._round += 1
      self._kept[self._round] = self._kept[self._round - 1]

  def saved(self, oldest):
    self._kept = {each: own for each, own in self._kept.items() if each >= oldest}

  def _write(self):
    files.write_json(self._path, self._kept)


def take_part(ends, name, cohort_fn=None, watch=lambda _: None) -> None:
  """Runs a site to the end of the run."""
  ends.offer()
  process = participation.Answering(build(), ends)
  rounds = KeptRounds(process)
  clients = CLIENTS[name]
  participation.take_part(
    ends,
    process,
    rounds,
    cohort_fn or (lambda _: clients),
    {'clients': len(clients)},
    watch,
  )


def coordinate(ends, folder: pathlib.Path, rounds: int, each=None):
  """Runs or resumes the coordinator, which saves its state after each round.

  Args:
    ends: Its ends.
    folder: Its run folder.
    rounds: How many.
    each: Called before each round, with its number.

  Returns:
    The last state.
  """
  built = site_rounds.SiteRounds(build(), ends, {'rounds': rounds})
  saved = {'round': 0, 'state': built.initialize()}
  if (folder / STATE).is_file():
    saved = files.read_json(folder / STATE)
  state, done = saved['state'], saved['round']
  built.resume(folder, done)
  for round in range(done + 1, rounds + 1):
    if each is not None:
      each(round)
    state = built.next(state, round).state
    files.write_json(folder / STATE, {'round': round, 'state': state})
    # As the round loop, which keeps two checkpoints.
    built.saved(max(0, round - 1))
  built.finish()
  return state


def counted(folder: pathlib.Path) -> list[list[str]]:
  """Returns the sites that count in each round, as `sites.csv` says."""
  rows = round_table.Table(folder / site_rounds.SITES).rows()
  last = max(int(row['round']) for row in rows)
  return [
    [
      row['site']
      for row in rows
      if row['round'] == str(round) and row['counted'] == '1'
    ]
    for round in range(1, last + 1)
  ]


class Thread(threading.Thread):
  """A thread whose error is raised where it is joined."""

  def __init__(self, function, *arguments, name=None):
    super().__init__(daemon=True, name=name)
    self._function, self._arguments = function, arguments
    self.error: BaseException | None = None
    self.start()

  def run(self):
    try:
      self._function(*self._arguments)
    except BaseException as error:
      self.error = error

  def end(self, seconds: float = 60.0):
    self.join(seconds)
    assert not self.is_alive(), 'The thread has not ended.'
    if self.error is not None:
      raise self.error
