"""Inputs of programs that read runs, folders and networks."""

from collections.abc import Mapping
import json
import pathlib
import zipfile

import numpy as np
from PIL import Image

from binaries.torturing.cases import making

_LEDGER = 'run/privacy_ledger.jsonl'
_TERMS = {
  'ledger': 1,
  'population': 359,
  'cohort': 4,
  'multipliers': {'train/update': 2.0},
  'delta': 1e-4,
  'amplified': True,
}
_PRIVATE = {
  'aggregation': 'private',
  'privacy_noise_multiplier': 2.0,
  'privacy_update_clip': 1.0,
  'rounds': 3,
}
# What the message must name, by command line.
_LINES: Mapping[str, Mapping[str, tuple[str, ...]]] = {
  'evaluate': {
    '--run=': ('--run is not given',),
    '--run={d}/no': ('{d}/no',),
    '--run={d} --rounds=3': ('{d}',),
    '--cheese': ('--cheese',),
  },
  'compare': {
    '--runs=': ('runs',),
    '--runs={d}/nothing*': ('{d}/nothing*',),
    '--runs={d} --metric=loss': ('{d}',),
    '--runs={d} --curves=cheese': ('curves', 'cheese'),
    '--runs={d} --formats=docx': ('formats', 'docx'),
    '--runs={d} --over=cheese --out={d}/o': ('{d}',),
    '--run={d}': ('--runs is not given',),
    '--runz={d}': ('--runz', 'did you mean --run'),
  },
  'sweep': {
    '': ('--methods is not given',),
    '--methods=cheese': ('cheese',),
    '--methods=fedema,fedema': ('fedema', 'the same method'),
    '--methods=nobody/fedema': ('nobody/fedema',),
    '--methods=fedema/cheese': ('fedema/cheese',),
    '--methods=fedema --seeds=a': ('seeds', "'a'"),
    '--methods=fedema --seeds=1,1': ('seeds', '1,1'),
    '--methods=fedema --seeds=-1': ('seeds', '-1'),
    '--methods=fedema --jobs=0': ('--jobs=0',),
    '--methods=fedema --run_dir={d}/x --out={d}/o': ('--run_dir',),
    '--methods=dcco --tau=0.5 --out={d}/o': ('--tau',),
    '--methods=dcco --rounds=0 --out={d}/o': ('--rounds=0',),
    '--methods=dcco --curves=cheese --out={d}/o': ('cheese',),
  },
  'export': {
    '': ('--run is not given',),
    '--run={d}/no --out={d}/o': ('{d}/no',),
    '--run={d}/no': ('--out is not given',),
    '--run={d}/no --out={d}/o --to=docx': ('to has', 'docx'),
    '--run={d}/no --out={d}/o --to=tflite_training --classifier': ('--classifier',),
    '--run={d}/no --out={d}/o --give_away --classifier': ('--classifier',),
    '--run={d}/no --out={d}/o --unprotected': ('--unprotected',),
    '--run={d}/no --out={d}/o --task=digits': ('--task',),
  },
  'embed': {
    '': ('--run is not given',),
    '--run={d}/no': ('--images is not given',),
    '--run={d}/no --images={d}': ('--out is not given',),
    '--run={d}/no --images={d} --out={d}/o': ('{d}/no',),
    '--run={d}/no --images={d} --out={d}/o --to=docx': ('to has', 'docx'),
    '--run={d}/no --images={d} --out={d}/o --map_images=1': ('--map_images=1',),
    '--run={d}/no --images={d} --out={d}/o --seed=1': ('--seed',),
  },
  'audit': {
    '': ('--run is not given',),
    '--run={d}/no': ('{d}/no',),
    '--run={d}/no --canaries=1': ('--canaries=1',),
    '--run={d}/no --canary_rounds=0': ('--canary_rounds=0',),
    '--run={d}/no --rounds=3': ('--rounds',),
  },
  'worker': {
    '--port=0 --i_trust_this_network': ('--port=0',),
    '--port=99999 --i_trust_this_network': ('--port=99999',),
    '--port=any --i_trust_this_network': ('--port=any',),
    '--port=7001 --concurrency=0 --i_trust_this_network': ('--concurrency=0',),
    '--port=7001 --intra_op_threads=0 --i_trust_this_network': (
      '--intra_op_threads=0',
    ),
    '--port=7001 --i_trust_this_network --log_path={d}/no/log': ('{d}/no/log',),
  },
  'partition': {
    '--max_clients=0': ('--max_clients=0',),
    '--rounds=3': ('--rounds',),
    '--plot={d}/x.txt': ('--plot', '.png'),
    '--plot={d}/no/x.png': ('{d}/no',),
    '--csv={d}/x.png': ('--csv', '.csv'),
    '--task=cifar100 --nodownload --data_dir={d}': ('{d}', 'not prepared'),
  },
  'benchmark': {
    '--experiment=cheese': ('--experiment=cheese',),
    '--regime=E': ('--regime=E',),
    '--clients=0': ('--clients', '0'),
    '--clients=8,4': ('--clients', '8,4'),
    '--population=2': ('--population', '2'),
    '--format=xml': ('--format=xml',),
  },
  'kill_campaign': {
    '--workers=2': ('--workers=2',),
    '--kill_rounds=0': ('--kill_rounds=0',),
    '--frozen_rounds=200': ('frozen_rounds is 200',),
  },
  'torture': {
    '--groups=cheese': ('cheese',),
    '--kinds=cheese': ('cheese',),
    '--enough=kills': ("enough has 'kills'",),
    '--again=kills': ("again is 'kills'",),
    '--minutes=-1': ('--minutes=-1',),
  },
}


def _encoder(card: object) -> making.Make:
  """Returns a function that makes a run with a stranger's encoder."""

  def make(folder: pathlib.Path) -> None:
    making.run()(folder)
    making.text('run/encoder.json', json.dumps(card))(folder)
    with zipfile.ZipFile(folder / 'run' / 'encoder.keras', 'w') as archive:
      archive.writestr('config.json', '{}')
      archive.writestr('model.weights.h5', b'')

  return make


def _ledger(*lines: object, **flags: object) -> making.Make:
  """Returns a function that makes a private run with a ledger."""

  def make(folder: pathlib.Path) -> None:
    making.run(**{**_PRIVATE, **flags})(folder)
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    if texts:
      making.text(_LEDGER, '\n'.join(texts) + '\n')(folder)

  return make


def _with_picture(folder: pathlib.Path) -> None:
  _encoder({})(folder)
  Image.fromarray(np.zeros([4, 4], np.uint8)).save(folder / 'a.png')


def _audits() -> list[making.Case]:
  """Ledgers from strangers."""

  def case(words: tuple[str, ...], make: making.Make) -> making.Case:
    return making.Case('audit', '--run={d}/run', words, make)

  def without(name: str) -> dict[str, object]:
    return {key: value for key, value in _TERMS.items() if key != name}

  ledger = ('privacy_ledger.jsonl',)
  return [
    case(('aggregation=plain',), making.run()),
    case(('aggregation=secure',), making.run(aggregation='secure')),
    case(ledger, _ledger()),
    case(('damaged', *ledger), _ledger('')),
    case(('damaged', *ledger), _ledger('{"ledger": 1')),
    case(('damaged', *ledger), _ledger([1, 2])),
    case(('damaged', *ledger), _ledger({**_TERMS, 'ledger': 2})),
    case(('damaged', *ledger), _ledger('\x00' * 64)),
    case(ledger, _ledger(without('multipliers'))),
    case(ledger, _ledger(without('delta'))),
    case(ledger, _ledger(without('population'))),
    case(ledger, _ledger({**_TERMS, 'multipliers': {}})),
    case(ledger, _ledger({**_TERMS, 'multipliers': [2.0]})),
    case(ledger, _ledger({**_TERMS, 'multipliers': {'train/update': 0}})),
    case(ledger, _ledger({**_TERMS, 'multipliers': {'train/update': 'x'}})),
    case(ledger, _ledger({**_TERMS, 'delta': 0})),
    case(ledger, _ledger({**_TERMS, 'delta': 'small'})),
    case(ledger, _ledger({**_TERMS, 'population': -3})),
    case(('memory',), _ledger({**_TERMS, 'population': 10**15, 'delta': 1e-20})),
    case(ledger, _ledger({**_TERMS, 'population': 'all'})),
    case(
      ('privacy_clip_quantile',),
      _ledger(_TERMS, privacy_clip_quantile=0.5),
    ),
    case(('--privacy_update_clip',), _ledger(_TERMS, privacy_update_clip='wide')),
    case(('clip',), _ledger(_TERMS, privacy_update_clip=-1.0)),
    case(('clip',), _ledger(_TERMS, privacy_update_clip=None)),
  ]


def _encoders() -> list[making.Case]:
  """Networks from strangers."""
  found = []
  export = '--run={d}/run --out={d}/o --to=keras'
  embed = '--run={d}/run --images={d}/a.png --out={d}/o'
  cards: tuple[tuple[object, tuple[str, ...]], ...] = (
    ({}, ('encoder.json',)),
    ([], ('encoder.json',)),
    ({'encoder': 'cheese'}, ('encoder.json',)),
    ({'encoder': 'conv2', 'width': 'wide'}, ('encoder.json',)),
    ({'encoder': 'conv2', 'width': 1e12, 'input': [8, 8, 1]}, ('encoder.json',)),
  )
  for card, words in cards:
    found.append(making.Case('export', export, words, _encoder(card)))
  return found + [
    making.Case('export', export, ('encoder',), making.run()),
    making.Case(
      'embed',
      embed,
      ('encoder',),
      _with_picture,
    ),
    making.Case(
      'embed',
      '--run={d}/e.h5 --images={d} --out={d}/o',
      ('e.h5',),
      making.text('e.h5', '\x89HDF\r\n\x1a\n'),
    ),
    making.Case(
      'embed',
      '--run={d}/e.keras --images={d} --out={d}/o',
      ('e.keras',),
      making.text('e.keras', ''),
    ),
    making.Case(
      'embed',
      '--run={d}/e.keras --beside={d}/no --images={d} --out={d}/o',
      ('e.keras',),
      making.text('e.keras', 'cheese'),
    ),
  ]


def _places() -> list[making.Case]:
  """Paths to write to, and to start from."""
  return [
    making.Case(
      'export', '--run={d}/run --out={d}/run', ('out', 'not that'), making.run()
    ),
    making.Case(
      'export', '--run={d}/run --out={d}/f', ('out', '{d}/f'), making.text('f', '')
    ),
    making.Case(
      'dcco', f'{making.RUN} --init_from={{d}}/e.keras', ('e.keras',), making.nothing
    ),
    making.Case(
      'dcco',
      f'{making.RUN} --init_from={{d}}/e.keras',
      ('e.keras',),
      making.text('e.keras', 'PK\x03\x04'),
    ),
    making.Case(
      'dcco',
      '--run_dir={d}/new --init_from={d}/run',
      ('{d}/run', 'encoder'),
      making.run(encoder='vit_tiny'),
    ),
  ]


def cases() -> list[making.Case]:
  """Command lines of programs that do not train, ledgers and networks."""
  lines = [
    making.Case(program, given, words)
    for program, of_program in _LINES.items()
    for given, words in of_program.items()
  ]
  return lines + _audits() + _encoders() + _places()
