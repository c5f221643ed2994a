"""Data that are damaged, strange or not what their name says."""

import os
import pathlib
import tarfile

import numpy as np
from PIL import Image
import pyarrow as pa
from pyarrow import parquet

from tests.torture.cases import making

_LABEL = 'image,case_id,label\n'
_ALL = _LABEL + ''.join(f'{k}.png,c{k // 2},{"xy"[k // 4]}\n' for k in range(8))
# A program that Ghostscript would run.
POSTSCRIPT = (
  '%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 8\n%%EndComments\nshowpage\n'
)


def _cases(
  words: tuple[str, ...] | str,
  manifest: str = _ALL,
  *makes: making.Make,
  flags: str = '',
) -> making.Case:
  """Returns a case of eight images, a manifest, and something else."""

  def make(folder: pathlib.Path) -> None:
    for k in range(8):
      pixels = np.random.default_rng(k).integers(0, 256, (9, 9, 3)).astype(np.uint8)
      Image.fromarray(pixels).save(folder / f'{k}.png')
    (folder / 'manifest.csv').write_text(manifest)

  return _of_task('cases', '', words, make, *makes, flags=flags)


def _of_task(
  task: str,
  name: str,
  words: tuple[str, ...] | str,
  *makes: making.Make,
  flags: str = '',
) -> making.Case:
  """Returns a case of a task whose data are a file of this name, or all files."""
  place = f'{{d}}/{name}'.rstrip('/')
  line = f'--task={task} --data_dir={place} {making.RUN} {flags}'.strip()
  return making.case('dcco', line, words, *makes)


def _all(content: bytes) -> making.Make:
  """Returns a function that makes all images the same file."""
  return lambda folder: [path.write_bytes(content) for path in folder.glob('*.png')]


def _torn(folder: pathlib.Path) -> None:
  for path in folder.glob('*.png'):
    path.write_bytes(path.read_bytes()[:40])


def _as_folders(folder: pathlib.Path) -> None:
  for path in folder.glob('*.png'):
    path.unlink()
    path.mkdir()


def _linked(target: str) -> making.Make:
  return lambda folder: (folder / 'l.png').symlink_to(target)


def _pictures(*folders: str) -> making.Make:
  """Returns a function that makes two images in each of these folders of f."""

  def make(folder: pathlib.Path) -> None:
    for name in folders:
      (folder / 'f' / name).mkdir(parents=True)
      for k in range(2):
        Image.new('L', (8, 8), 100 * k).save(folder / 'f' / name / f'{k}.png')

  return make


def _archive(*names: str, kind: bytes = tarfile.REGTYPE) -> making.Make:
  """Returns a function that makes a.tar with entries of these names."""

  def make(folder: pathlib.Path) -> None:
    with tarfile.open(folder / 'a.tar', 'w') as tar:
      for name in names:
        entry = tarfile.TarInfo(name)
        entry.type, entry.linkname = kind, '/etc/passwd'
        tar.addfile(entry)

  return make


def _manifests() -> list[making.Case]:
  split, client = 'image,case_id,split\n', 'image,client_id,label'
  return [
    _cases(('line 2', 'case_id'), f'{_LABEL}0.png,,x\n'),
    _cases(('line 2', 'image'), f'{_LABEL},c,x\n'),
    _cases(('line 2', 'NA'), f'{_LABEL}0.png,NA,x\n'),
    _cases(('manifest.csv', 'case_id'), 'image,label\n0.png,x'),
    _cases(('manifest.csv', '0 images'), _LABEL),
    _cases('image', 'picture,case_id\n0.png,c\n'),
    _cases('manifest.csv', 'image,image,case_id\n0.png,1.png,c\n'),
    _cases('manifest.csv', 'image;case_id;label\n0.png;c;x\n'),
    _cases('manifest.csv', f'{_LABEL}"0.png,c,x\n'),
    _cases('manifest.csv', '\n\n\n'),
    _cases('manifest.csv', 'a' * 10**6),
    _cases('9.png', f'{_LABEL}9.png,c0,x\n'),
    _cases(('twice', '0.png'), f'{_LABEL}0.png,c,x\n0.png,c,x\n'),
    _cases(
      ('manifest.csv', 'more than one label', 'c (x, y)'),
      f'{_LABEL}0.png,c,x\n1.png,c,y\n2.png,d,x\n',
    ),
    _cases(('case in two splits', 'c'), f'{split}0.png,c,train\n1.png,c,test\n'),
    _cases(('split', 'fold'), f'{split}0.png,c,fold\n'),
    _cases(('split', 'Set'), 'image,case_id,Set\n0.png,c,train\n1.png,d,test\n'),
    _cases(('label', 'Class'), 'image,case_id,Class\n0.png,c,x\n'),
    _cases(
      'label',
      'image,case_id,label,split\n0.png,a,x,train\n1.png,b,,test\n2.png,c,y,train\n',
    ),
    _cases('client', 'image,client_id,case_id\n0.png,a,c\n1.png,b,c\n'),
    _cases(
      'client', f'{client},split\n0.png,a,x,train\n1.png,a,y,test\n2.png,b,x,test\n'
    ),
    _cases(
      ('classify', 'case_id'),
      f'{client}\n0.png,a,x\n1.png,b,y\n',
      flags='--data=classify=case',
    ),
    _cases('train', _ALL.replace('label', 'split').replace('x', 'test')),
    _cases(('columns', 'Photo'), flags='--columns=image=Photo'),
    _cases(
      ('strict', '8.png'), _ALL, making.text('8.png', ''), flags='--data=strict=true'
    ),
    _cases(('partition', 'source'), flags='--partition=source'),
    _cases('GiB', flags='--image_size=70000'),
    _cases(('image_size', 'GiB'), flags='--image_size=1000000'),
    _of_task('cases', '', 'no manifest.csv'),
    _of_task(
      'cases', '', ('manifest.csv', 'UTF-8'), making.text('manifest.csv', '\xff')
    ),
    _of_task('cases', 'no', '{d}/no'),
    making.case('dcco', f'--task=cases {making.RUN}', 'data_dir'),
    making.case(
      'dcco', f'--task=cases --data_dir=/dev/zero {making.RUN}', ('/dev/zero',)
    ),
  ]


def _images() -> list[making.Case]:
  return [
    _cases('etc/passwd', f'{_LABEL}../../etc/passwd,c,x\n'),
    _cases('etc/passwd', f'{_LABEL}/etc/passwd,c,x\n'),
    *(
      _cases('l.png', f'{_LABEL}l.png,c9,x\n', _linked(target))
      for target in ('/dev/zero', '/etc/passwd', 'l.png')
    ),
    _cases('p.png', f'{_LABEL}p.png,c9,x\n', lambda d: os.mkfifo(d / 'p.png')),
    _cases('0 readable', _ALL, _torn),
    _cases('0 readable', _ALL, _all(b'')),
    _cases('0 readable', _ALL, _all(b'<svg/>')),
    _cases('0 readable', _ALL, _all(POSTSCRIPT.encode())),
    # A picture of 35 TB, of which there is only the header.
    _cases('0 readable', _ALL, _all(b'P6 3400000 3400000 255\n')),
    _cases('cannot be found', _ALL, _as_folders),
    _of_task('cases', 'a.tar', ('a.tar', 'manifest.csv'), _archive('x.png')),
    _of_task('cases', 'a.tar', 'a.tar', _archive()),
    _of_task('cases', 'a.tar', 'a.tar', _archive('manifest.csv', kind=tarfile.SYMTYPE)),
    _of_task('cases', 'a.tar', 'manifest.csv', _archive('../manifest.csv')),
    _of_task('ham10000', 'a.tar', 'a.tar', _archive('x.png')),
    _of_task('ham10000', '', 'HAM10000_metadata'),
    _of_task('ham10000_records', '', '{d}'),
    _of_task('cifar10', 'no', '{d}/no', flags='--data=download=false'),
    _of_task(
      'stl10', 'f', '{d}/f', making.text('f', ''), flags='--data=download=false'
    ),
  ]


def _folders() -> list[making.Case]:
  def case(words: tuple[str, ...] | str, *makes: making.Make) -> making.Case:
    return _of_task('folder', 'f', words, *makes, flags='--data=folders=class')

  return [
    case('{d}/f'),
    case('{d}/f', making.text('f', 'a file')),
    case('{d}/f', lambda folder: (folder / 'f').mkdir()),
    case('{d}/f', making.text('f/notes.txt', 'no image')),
    case('{d}/f', making.text('f/a/b.png', 'no image')),
    case(('docs', 'train'), _pictures('train/a', 'test/a', 'docs')),
    case(('train', 'in a'), _pictures('a/train', 'a/test', 'b')),
    _of_task('folder', 'f.zip', ('f.zip', 'unpack'), making.text('f.zip', 'PK')),
    making.case('dcco', f'--task=folder {making.RUN}', 'data_dir'),
  ]


def _npy(folder: pathlib.Path) -> None:
  """Makes a .npy file that is named like a .npz."""
  with (folder / 't.npz').open('wb') as file:
    np.save(file, np.eye(3))


def _damaged(folder: pathlib.Path) -> None:
  """Makes a compressed .npz with zeros in the middle of its first array."""
  np.savez_compressed(folder / 't.npz', features=np.eye(30), label=np.arange(30) % 2)
  content = bytearray((folder / 't.npz').read_bytes())
  content[100:120] = bytes(20)
  (folder / 't.npz').write_bytes(content)


def _tables() -> list[making.Case]:
  def csv(words: tuple[str, ...] | str, content: str) -> making.Case:
    return _of_task('features', 't.csv', words, making.text('t.csv', content))

  def npz(words: tuple[str, ...] | str, **arrays: object) -> making.Case:
    def make(folder: pathlib.Path) -> None:
      np.savez(folder / 't.npz', **{k: np.asarray(v) for k, v in arrays.items()})

    return _of_task('features', 't.npz', words, make)

  def columns(words: tuple[str, ...] | str, **columns: object) -> making.Case:
    def make(folder: pathlib.Path) -> None:
      parquet.write_table(pa.table(columns), folder / 't.parquet')

    return _of_task('features', 't.parquet', words, make)

  return [
    _of_task('features', 't.xls', 't.xls'),
    _of_task('features', 't.csv', 't.csv'),
    _of_task('features', 't.csv', 't.csv', lambda folder: (folder / 't.csv').mkdir()),
    _of_task('features', 't.csv', ('t.csv', 'at most'), making.large('t.csv')),
    csv(('t.csv', 'rows'), 'a,b\n1,2\n'),
    csv(('t.csv', 'label'), 'label,label,a\n0,1,2\n'),
    csv(('Line 2', 't.csv'), 'a,label\nx,0\n'),
    csv('finite', 'a,label\nnan,0\n1,0\n'),
    csv('t.csv', 'a,label\n1\n'),
    csv('t.csv', 'a,label\n'),
    csv('t.csv', 'a,a,label\n1,2,0\n3,4,1\n'),
    csv('line 3', 'a,label\n1,0\n2,0,7\n'),
    csv('t.csv', 'label\n0\n1\n'),
    csv('t.csv', 'a,label,split\n1,0,fold\n2,1,train\n'),
    _of_task('features', 't.npz', ('t.npz', 'single array'), _npy),
    _of_task('features', 't.npz', ('t.npz', 'cannot be read'), _damaged),
    npz(('t.npz', 'features'), label=[0, 1]),
    npz('features', features=['a', 'b'], label=[0, 1]),
    npz('t.npz', features=[{}, {}], label=[0, 1]),
    npz('features', features=np.zeros(3), label=[0, 1, 2]),
    npz('features', features=np.zeros([0, 3]), label=np.zeros(0, int)),
    npz('features', features=np.zeros([3, 0]), label=[0, 1, 2]),
    npz('finite', features=np.full([3, 2], np.nan), label=[0, 1, 2]),
    npz('features', features=np.eye(3) * 1j, label=[0, 1, 2]),
    npz('label', features=np.eye(3), label=[[0], [1], [2]]),
    npz('label', features=np.eye(3), label=[0.5, 1, 2]),
    npz('label', features=np.eye(3), label=[0, 1]),
    npz('label', features=np.eye(3), label=[10**12, 0, 0]),
    npz('label', features=np.eye(3), label=[-2, 0, 0]),
    _of_task('features', 't.parquet', 't.parquet'),
    columns('t.parquet', label=[0, 1]),
    columns(('t.parquet', 'a'), a=['x', 'y'], label=[0, 1]),
    columns(('t.parquet', 'a'), a=[[1], [2]], label=[0, 1]),
    columns('needs 4 examples', a=[1.0, 2.0], label=[0.5, 1.5]),
    columns('finite', a=[1.0, float('inf')], label=[0, 1]),
    columns('t.parquet', a=[], label=[]),
  ]


def _graphs() -> list[making.Case]:
  contents = (
    '',
    '0,1\n1,0\n',
    '0,1,1\n1,0,1\n1,1\n',
    '0,1,0\n0,0,1\n0,1,0\n',
    '1,1,1\n1,0,1\n1,1,0\n',
    '0,2,1\n2,0,1\n1,1,0\n',
    '0,-1,1\n-1,0,1\n1,1,0\n',
    '0,nan,1\nnan,0,1\n1,1,0\n',
    '0,1,0\n1,0,0\n0,0,0\n',
    '0,2,1\n2,x,1\n1,1,0\n',
  )
  line = f'{making.RUN} --method=graph:path={{d}}/g.csv --partition=iid:clients=3'
  return [
    making.case('dec_ssl', line, 'g.csv', making.text('g.csv', content))
    for content in contents
  ]


def cases() -> list[making.Case]:
  """Manifests, images, folders, tables and graphs."""
  return _manifests() + _images() + _folders() + _tables() + _graphs()
