"""Files and folders of strangers: large archives, links that lead out, settings."""

from collections.abc import Callable
import io
import json
import pathlib
import struct
import tarfile
import zipfile

import numpy as np

from binaries.torturing.cases import making

_CHECKPOINT = 'run/checkpoints/round_00000001.npz'
_WEIGHTS = 'state/global_model_weights/trainable/encoder/'
_OF_RUN = '--run={d}/run'
_OF_TAR = f'--task=cases --data_dir={{d}}/a.tar {making.RUN}'
_LARGE = 2**40


def _both(*makes: making.Make) -> making.Make:
  return lambda folder: [make(folder) for make in makes]


def _header(shape: tuple[int, ...]) -> bytes:
  """Returns the header of an array of bytes."""
  file = io.BytesIO()
  known = {'descr': '|u1', 'fortran_order': False, 'shape': shape}
  np.lib.format.write_array_header_1_0(file, known)
  return file.getvalue()


def _checkpoint(content: bytes, method: int = zipfile.ZIP_STORED) -> making.Make:
  """Returns a function that makes a run with a checkpoint of one array."""

  def make(folder: pathlib.Path) -> None:
    making.run(encoder='conv2')(folder)
    (folder / 'run' / 'checkpoints').mkdir()
    with zipfile.ZipFile(folder / _CHECKPOINT, 'w', method) as archive:
      archive.writestr(f'{_WEIGHTS}a.npy', content)

  return make


def _sparse(name: str) -> making.Make:
  """Returns a function that makes a file that is large and takes no room."""

  def make(folder: pathlib.Path) -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    with (folder / name).open('wb') as file:
      file.truncate(_LARGE)

  return make


def _link(name: str) -> making.Make:
  """Returns a function that links a file of a run to one out of it."""

  def make(folder: pathlib.Path) -> None:
    making.run()(folder)
    making.text('run/metrics.csv', 'round,loss\n1,2\n')(folder)
    (folder / 'victim').write_text('x')
    (folder / 'run' / name).parent.mkdir(exist_ok=True)
    (folder / 'run' / name).symlink_to(folder / 'victim')

  return make


def _tar(change: Callable[[tarfile.TarInfo], object], size: int = 0) -> making.Make:
  """Returns a function that makes a.tar of a header that a function changes."""

  def make(folder: pathlib.Path) -> None:
    member = tarfile.TarInfo('x.png')
    change(member)
    header = bytearray(member.tobuf(tarfile.GNU_FORMAT))
    if size:
      header[124:136] = b'\xff' * 4 + struct.pack('>q', size)
      header[148:156] = b' ' * 8
      header[148:156] = b'%06o\0 ' % sum(header[:512])
    (folder / 'a.tar').write_bytes(bytes(header) * 3000 + bytes(1024))

  return make


def _long_name(member: tarfile.TarInfo) -> None:
  member.type, member.size = tarfile.GNUTYPE_LONGNAME, 2**33


def _nested(member: tarfile.TarInfo) -> None:
  member.type = tarfile.XHDTYPE


def _postscript(folder: pathlib.Path) -> None:
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
  making.text(
    'img/google/sheets/32.png',
    '%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 8\n%%EndComments\nshowpage\n',
  )(folder)


def _archives() -> list[making.Case]:
  zeros = _header((2**20,)) + bytes(2**20)
  start = '--encoder=conv2 --run_dir={d}/new --init_from={d}/run'
  of_emoji = f'--task=emoji --data_dir={{d}} {making.RUN}'
  return [
    making.Case(
      'dcco',
      start,
      ('round_00000001.npz', 'is compressed'),
      _checkpoint(zeros, zipfile.ZIP_DEFLATED),
    ),
    making.Case(
      'dcco',
      start,
      ('round_00000001.npz', '1,099,511,627,776'),
      _checkpoint(_header((_LARGE,)) + b'x'),
    ),
    making.Case(
      'dcco',
      start,
      ('round_00000001.npz', 'version'),
      _checkpoint(b'\x93NUMPY\x02\x00' + struct.pack('<I', 2**31) + b' '),
    ),
    making.Case('dcco', _OF_TAR, ('a.tar', '-512'), _tar(lambda _: None, -512)),
    making.Case('dcco', _OF_TAR, ('a.tar', 'header'), _tar(_long_name)),
    making.Case('dcco', _OF_TAR, ('a.tar', 'nested'), _tar(_nested)),
    making.Case('dcco', making.OF_TABLE, ('t.csv', 'at most'), _sparse('t.csv')),
    making.Case('dcco', of_emoji, ('32.png', 'not a picture'), _postscript),
    making.Case(
      'dcco', of_emoji, ('emoji.json',), _both(_postscript, _sparse('emoji.json'))
    ),
    making.Case(
      'evaluate', _OF_RUN, ('config.json', 'at most'), _sparse('run/config.json')
    ),
    making.Case(
      'compare',
      '--runs={d}/run --out={d}/o',
      ('metrics.csv', 'at most'),
      _both(making.run(), _sparse('run/metrics.csv')),
    ),
  ]


def _links() -> list[making.Case]:
  out = ('victim', 'lead out of')
  lines = (
    ('evaluate', _OF_RUN),
    ('audit', _OF_RUN),
    ('export', f'{_OF_RUN} --out={{d}}/o'),
    ('embed', f'{_OF_RUN} --images={{d}} --out={{d}}/o'),
    ('compare', '--runs={d}/run --out={d}/o'),
    ('compare', '--runs={d}/run --out={d}/o'),
    ('dcco', f'--task=digits {making.RUN}'),
    ('sweep', '--methods=simclr --out={d}'),
  )
  # Each program, and each file that one of them reads or writes.
  names = (
    'checkpoints/round_00000001.npz',
    'encoder.keras',
    'evaluation.json',
    'lock',
    'client_states.sqlite',
    'privacy_ledger.jsonl',
    'clients.csv',
    'worker.log',
  )
  # What a sweep writes may lie in a folder that is a link.
  return [
    making.Case(program, line, out if program != 'sweep' else ('is a link',), make)
    for (program, line), name in zip(lines, names, strict=True)
    for make in [_link(name) if program != 'sweep' else _outer]
  ]


def _outer(folder: pathlib.Path) -> None:
  (folder / 'simclr').symlink_to('/etc')


def _configs() -> list[making.Case]:
  """Settings that are not taken from a run."""
  return [
    making.Case(
      'evaluate',
      _OF_RUN,
      ('--mask_dir', 'not taken'),
      making.run(mask_dir='/etc', evaluation_methods=['segmentation']),
    )
  ]


def cases() -> list[making.Case]:
  """Archives, links and settings of strangers."""
  return _archives() + _links() + _configs()
