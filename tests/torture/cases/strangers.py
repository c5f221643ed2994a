"""Runs, networks and archives of strangers, and links that lead out."""

from collections.abc import Callable
import io
import json
import pathlib
import sqlite3
import struct
import tarfile
import zipfile

import numpy as np
from PIL import Image

from tests.torture.cases import data
from tests.torture.cases import making

_OF_RUN = '--run={d}/run'
_BEGIN = '--config={d}/run/config.json'
_OF_RUNS = '--runs={d}/run --out={d}/o'
_CONFIG, _METRICS = 'run/config.json', 'run/metrics.csv'
_CHECKPOINT = 'run/checkpoints/round_00000001.npz'
_WEIGHTS = 'state/global_model_weights/trainable/encoder/a.npy'
_LARGE = 2**40


def _configs() -> list[making.Case]:
  def case(words: tuple[str, ...] | str, *makes: making.Make) -> making.Case:
    return making.case('evaluate', _OF_RUN, words, *makes)

  return [
    case('{d}/run'),
    case('config.json', making.text('run/other', '')),
    case(('config.json', 'JSON'), making.text(_CONFIG, '[' * 10**5)),
    case('config.json', making.text(_CONFIG, '[]')),
    case('config.json', making.text(_CONFIG, '{"config": 1}')),
    case(('config.json', 'at most'), making.large(_CONFIG)),
    case('task=', making.run(task=['digits'])),
    case('seed=', making.run(seed={})),
    case(
      'evaluation.label_fractions=', making.run(evaluation={'label_fractions': 0.5})
    ),
    case('encoder.width=', making.run(encoder={'kind': 'resnet8', 'width': 'wide'})),
    case('cheese', making.run(cheese=1)),
    case(('method', 'cheese'), making.run(method={'kind': 'cheese'})),
    case(('method', 'an object'), making.run(method='dcco')),
    case(
      '.update_clip=', making.run(aggregation={'kind': 'private', 'update_clip': ''})
    ),
    case('clients', making.run(clients={'kind': 'adam'})),
    case(('--data_dir', 'not taken'), making.run(task='cases', data={'dir': '/etc'})),
    case(
      ('--data=partition_encoder', 'not taken'),
      making.run(data={'partition_encoder': '/x.keras'}),
    ),
    # What it asks to connect to, to read and to write is not in the way.
    case(
      'have changed since',
      making.run(
        runtime={'kind': 'hosts', 'addresses': ['192.0.2.1:1'], 'trust': True},
        init_from='/etc',
        run_dir='/etc',
        trackers=['wandb'],
      ),
    ),
    case('have changed since', making.run()),
    making.case('dcco', _BEGIN, '--run_dir is not given', making.run(run_dir='/etc')),
    making.case(
      'dcco',
      f'{_BEGIN} --run_dir={{d}}/new',
      ('init_from=/etc', 'not taken'),
      making.run(init_from='/etc'),
    ),
  ]


def _metrics() -> list[making.Case]:
  def case(words: tuple[str, ...] | str, *makes: making.Make) -> making.Case:
    return making.case('compare', _OF_RUNS, words, *makes)

  return [
    case('{d}/run'),
    case('metrics.csv', making.run()),
    case(('metrics.csv', 'round'), making.run(), making.text(_METRICS, 'loss\n1\n')),
    case(('metrics.csv', 'round'), making.run(), making.text(_METRICS, 'round\ninf\n')),
    case(('metrics.csv', 'at most'), making.run(), making.large(_METRICS)),
  ]


def _states(folder: pathlib.Path) -> None:
  """Makes client states without a run."""
  (folder / 'run').mkdir()
  connection = sqlite3.connect(folder / 'run' / 'client_states.sqlite')
  connection.execute('CREATE TABLE meta (name TEXT, value TEXT)')
  connection.close()


def _places() -> list[making.Case]:
  """Paths to write to, and to start from."""
  return [
    making.case('dcco', '--run_dir={d}/f/run', '{d}/f', making.text('f', 'a file')),
    making.case(
      'dcco',
      making.RUN,
      ('thesis.tex', 'config.json'),
      making.text('run/thesis.tex', ''),
    ),
    making.case('fedema', making.RUN, ('client_states.sqlite', 'config.json'), _states),
    making.case(
      'export', f'{_OF_RUN} --out={{d}}/run', ('out', 'not that'), making.run()
    ),
    making.case(
      'export', f'{_OF_RUN} --out={{d}}/f', ('out', '{d}/f'), making.text('f', '')
    ),
    making.case(
      'dcco',
      '--run_dir={d}/new --init_from={d}/run',
      ('{d}/run', 'encoder'),
      making.run(encoder={'kind': 'vit_tiny'}),
    ),
  ]


def _encoder(card: object) -> making.Make:
  """Returns a function that makes a run with a stranger's encoder, and an image."""

  def make(folder: pathlib.Path) -> None:
    making.run()(folder)
    making.text('run/encoder.json', json.dumps(card))(folder)
    with zipfile.ZipFile(folder / 'run' / 'encoder.keras', 'w') as archive:
      archive.writestr('config.json', '{}')
      archive.writestr('model.weights.h5', b'')
    Image.fromarray(np.zeros([4, 4], np.uint8)).save(folder / 'a.png')

  return make


def _encoders() -> list[making.Case]:
  export = f'{_OF_RUN} --out={{d}}/o --formats=keras'
  cards = (
    {},
    [],
    {'encoder': 'cheese'},
    {'encoder': 'conv2', 'width': 'wide'},
    {'encoder': 'conv2', 'width': 1e12, 'input': [8, 8, 1]},
  )
  return [
    *(making.case('export', export, 'encoder.json', _encoder(c)) for c in cards),
    making.case('export', export, 'encoder', making.run()),
    making.case(
      'embed',
      f'{_OF_RUN} --images={{d}}/a.png --out={{d}}/o',
      'encoder',
      _encoder({}),
    ),
    making.case(
      'embed',
      '--run={d}/e.keras --beside={d}/no --images={d} --out={d}/o',
      'e.keras',
      making.text('e.keras', 'cheese'),
    ),
    making.case(
      'partition',
      '--partition=clusters:clients=2 --data=partition_encoder={d}/encoder.keras',
      'encoder.keras',
    ),
    making.case('dcco', f'{making.RUN} --init_from={{d}}/e.keras', 'e.keras'),
  ]


def _header(shape: tuple[int, ...]) -> bytes:
  """Returns the header of an array of bytes."""
  file = io.BytesIO()
  known = {'descr': '|u1', 'fortran_order': False, 'shape': shape}
  np.lib.format.write_array_header_1_0(file, known)
  return file.getvalue()


def _checkpoint(
  word: str, content: bytes, method: int = zipfile.ZIP_STORED
) -> making.Case:
  """Returns a case of a run with a checkpoint of one array."""

  def make(folder: pathlib.Path) -> None:
    making.run(encoder={'kind': 'conv2'})(folder)
    (folder / 'run' / 'checkpoints').mkdir()
    with zipfile.ZipFile(folder / _CHECKPOINT, 'w', method) as archive:
      archive.writestr(_WEIGHTS, content)

  start = '--encoder=conv2 --run_dir={d}/new --init_from={d}/run'
  return making.case('dcco', start, ('round_00000001.npz', word), make)


def _tar(
  word: str, change: Callable[[tarfile.TarInfo], object], size: int = 0
) -> making.Case:
  """Returns a case of a.tar with a header that a function changes."""

  def make(folder: pathlib.Path) -> None:
    member = tarfile.TarInfo('x.png')
    change(member)
    header = bytearray(member.tobuf(tarfile.GNU_FORMAT))
    if size:
      header[124:136] = b'\xff' * 4 + struct.pack('>q', size)
      header[148:156] = b' ' * 8
      header[148:156] = b'%06o\0 ' % sum(header[:512])
    (folder / 'a.tar').write_bytes(bytes(header) * 3000 + bytes(1024))

  line = f'--task=cases --data_dir={{d}}/a.tar {making.RUN}'
  return making.case('dcco', line, ('a.tar', word), make)


def _long_name(member: tarfile.TarInfo) -> None:
  member.type, member.size = tarfile.GNUTYPE_LONGNAME, 2**33


def _nested(member: tarfile.TarInfo) -> None:
  member.type = tarfile.XHDTYPE


def _emoji(folder: pathlib.Path) -> None:
  """Makes the folder of emoji-datasource, whose sheet is a program for Ghostscript."""
  entry = {
    'name': 'x',
    'short_names': ['x'],
    'unified': '1F600',
    'category': 'c',
    'subcategory': 's',
    'sheet_x': 0,
    'sheet_y': 0,
    'has_img_google': True,
  }
  making.text('emoji.json', json.dumps([entry]))(folder)
  making.text('img/google/sheets/32.png', data.POSTSCRIPT)(folder)


def _archives() -> list[making.Case]:
  of_emoji = f'--task=emoji --data_dir={{d}} {making.RUN}'
  zeros = _header((2**20,)) + bytes(2**20)
  return [
    _checkpoint('is compressed', zeros, zipfile.ZIP_DEFLATED),
    _checkpoint('1,099,511,627,776', _header((_LARGE,)) + b'x'),
    _checkpoint('version', b'\x93NUMPY\x02\x00' + struct.pack('<I', 2**31) + b' '),
    _tar('-512', lambda _: None, -512),
    _tar('header', _long_name),
    _tar('nested', _nested),
    making.case('dcco', of_emoji, ('32.png', 'not a picture'), _emoji),
    making.case(
      'dcco',
      of_emoji,
      'emoji.json',
      _emoji,
      making.large('emoji.json'),
    ),
  ]


def _link(name: str) -> making.Make:
  """Returns a function that links a file of a run to one out of it."""

  def make(folder: pathlib.Path) -> None:
    making.run()(folder)
    making.text(_METRICS, 'round,loss\n1,2\n')(folder)
    (folder / 'victim').write_text('x')
    (folder / 'run' / name).parent.mkdir(exist_ok=True)
    (folder / 'run' / name).symlink_to(folder / 'victim')

  return make


def _links() -> list[making.Case]:
  # Each program, with a file that one of them reads or writes.
  lines = (
    ('evaluate', _OF_RUN, 'checkpoints/round_00000001.npz'),
    ('evaluate', _OF_RUN, 'encoder.keras'),
    ('export', f'{_OF_RUN} --out={{d}}/o', 'evaluation.json'),
    ('embed', f'{_OF_RUN} --images={{d}} --out={{d}}/o', 'lock'),
    ('compare', _OF_RUNS, 'client_states.sqlite'),
    ('compare', _OF_RUNS, 'privacy_ledger.jsonl'),
    ('dcco', f'--task=digits {making.RUN}', 'clients.csv'),
  )
  return [
    *(
      making.case(program, line, ('victim', 'lead out of'), _link(name))
      for program, line, name in lines
    ),
    # What a sweep writes may lie in a folder that is a link.
    making.case(
      'sweep',
      '--methods=simclr --out={d}',
      'is a link',
      lambda folder: (folder / 'simclr').symlink_to('/etc'),
    ),
  ]


def cases() -> list[making.Case]:
  """Runs, networks, archives and links."""
  return [
    *_configs(),
    *_metrics(),
    *_places(),
    *_encoders(),
    *_archives(),
    *_links(),
  ]
