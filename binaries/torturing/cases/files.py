"""Files of data that are damaged, strange or not what their name says."""

import pathlib
import tarfile

import numpy as np
from PIL import Image
import pyarrow as pa
from pyarrow import parquet

from binaries.torturing.cases import making

_LABEL = 'image,case_id,label\n'
_OF_PARQUET = f'--task=features --data_dir={{d}}/t.parquet {making.RUN}'
_OF_FOLDER = f'--task=folder --folders=class --data_dir={{d}}/f {making.RUN}'
_OF_GRAPH = f'{making.RUN} --method=graph --graph={{d}}/g.csv --partition=iid:clients=3'


def _torn(name: str) -> making.Make:
  """Returns a function that keeps only the first part of each file that matches."""

  def make(folder: pathlib.Path) -> None:
    for path in folder.glob(name):
      path.write_bytes(path.read_bytes()[:40])

  return make


def _as_folders(folder: pathlib.Path) -> None:
  for path in folder.glob('*.png'):
    path.unlink()
    path.mkdir()


def _pictures(*folders: str) -> making.Make:
  """Returns a function that makes two images in each of these folders of f."""

  def make(folder: pathlib.Path) -> None:
    for name in folders:
      (folder / 'f' / name).mkdir(parents=True)
      for k in range(2):
        Image.new('L', (8, 8), 100 * k).save(folder / 'f' / name / f'{k}.png')

  return make


def _parquet(**columns: object) -> making.Make:
  return lambda folder: parquet.write_table(pa.table(columns), folder / 't.parquet')


def _archive(*names: str, kind: bytes = tarfile.REGTYPE) -> making.Make:
  """Returns a function that makes a.tar with entries of these names."""

  def make(folder: pathlib.Path) -> None:
    with tarfile.open(folder / 'a.tar', 'w') as tar:
      for name in names:
        entry = tarfile.TarInfo(name)
        entry.type, entry.linkname = kind, '/etc/passwd'
        tar.addfile(entry)

  return make


def _of_cases(
  words: tuple[str, ...],
  manifest: str,
  then: making.Make = making.nothing,
  flags: str = '',
) -> making.Case:
  made = making.cases(manifest, then)
  return making.Case('dcco', f'{making.OF_CASES} {flags}'.strip(), words, made)


def _manifests() -> list[making.Case]:
  everything = making.ALL
  return [
    _of_cases(('line 2', 'case_id'), f'{_LABEL}0.png,,x\n'),
    _of_cases(('line 2', 'image'), f'{_LABEL},c,x\n'),
    _of_cases(('split', 'fold'), 'image,case_id,split\n0.png,c,fold\n'),
    _of_cases(('split', 'Set'), 'image,case_id,Set\n0.png,c,train\n1.png,d,test\n'),
    _of_cases(('label', 'Class'), 'image,case_id,Class\n0.png,c,x\n'),
    _of_cases(('line 2', 'NA'), f'{_LABEL}0.png,NA,x\n'),
    _of_cases(('columns', 'Photo'), everything, flags='--columns=image=Photo'),
    _of_cases(('strict', '8.png'), everything, making.text('8.png', ''), '--strict'),
    _of_cases(('image',), 'picture,case_id\n0.png,c\n'),
    _of_cases(('manifest.csv',), 'image,image,case_id\n0.png,1.png,c\n'),
    _of_cases(('manifest.csv',), ''),
    _of_cases(('manifest.csv',), '\n\n\n'),
    _of_cases(('manifest.csv',), 'image;case_id;label\n0.png;c;x\n'),
    _of_cases(('manifest.csv',), f'{_LABEL}"0.png,c,x\n'),
    _of_cases(
      ('label',),
      'image,case_id,label,split\n0.png,a,x,train\n1.png,b,,test\n2.png,c,y,train\n',
    ),
    _of_cases(('client',), 'image,client_id,case_id\n0.png,a,c\n1.png,b,c\n'),
    _of_cases(
      ('client',),
      'image,client_id,label,split\n0.png,a,x,train\n1.png,a,y,test\n2.png,b,x,test\n',
    ),
    _of_cases(
      ('classify', 'case_id'),
      'image,client_id,label\n0.png,a,x\n1.png,b,y\n',
      flags='--classify=case',
    ),
    _of_cases(('train',), everything.replace('label', 'split').replace('x', 'test')),
    _of_cases(('partition', 'source'), everything, flags='--partition=source'),
    _of_cases(('GiB',), everything, flags='--image_size=70000'),
  ]


def _images() -> list[making.Case]:
  return [
    _of_cases(('0 readable',), making.ALL, _torn('*.png')),
    _of_cases(
      ('0 readable',),
      making.ALL,
      lambda d: [p.write_text('<svg/>') for p in d.glob('*.png')],
    ),
    _of_cases(
      ('cannot be found',),
      making.ALL,
      _as_folders,
    ),
    *(
      making.Case(
        'dcco', f'--task=cases --data_dir={{d}}/a.tar {making.RUN}', words, make
      )
      for words, make in (
        (('a.tar', 'manifest.csv'), _archive('x.png')),
        (('a.tar',), _archive()),
        (('a.tar',), making.text('a.tar', '')),
        (('a.tar',), _archive('manifest.csv', kind=tarfile.SYMTYPE)),
        (('manifest.csv',), _archive('../manifest.csv')),
      )
    ),
    making.Case(
      'dcco',
      f'--task=ham10000 --data_dir={{d}}/a.tar {making.RUN}',
      ('a.tar',),
      _archive('x.png'),
    ),
    making.Case(
      'dcco', f'--task=ham10000_records --data_dir={{d}} {making.RUN}', ('{d}',)
    ),
    making.Case(
      'dcco',
      f'--task=cifar10 --nodownload --data_dir={{d}}/no {making.RUN}',
      ('{d}/no',),
    ),
    making.Case(
      'dcco',
      f'--task=stl10 --nodownload --data_dir={{d}}/f {making.RUN}',
      ('{d}/f',),
      making.text('f', ''),
    ),
  ]


def _folders() -> list[making.Case]:
  return [
    making.Case('dcco', _OF_FOLDER, ('{d}/f',)),
    making.Case('dcco', _OF_FOLDER, ('{d}/f',), making.text('f', 'a file')),
    making.Case('dcco', _OF_FOLDER, ('{d}/f',), lambda d: (d / 'f').mkdir()),
    making.Case('dcco', _OF_FOLDER, ('{d}/f',), making.text('f/notes.txt', 'no image')),
    making.Case('dcco', _OF_FOLDER, ('{d}/f',), making.text('f/a/b.png', 'no image')),
    making.Case(
      'dcco', _OF_FOLDER, ('docs', 'train'), _pictures('train/a', 'test/a', 'docs')
    ),
    making.Case(
      'dcco', _OF_FOLDER, ('train', 'in a'), _pictures('a/train', 'a/test', 'b')
    ),
    making.Case(
      'dcco',
      f'--task=folder --data_dir={{d}}/f.zip {making.RUN}',
      ('f.zip', 'unpack'),
      making.text('f.zip', 'PK'),
    ),
    making.Case('dcco', f'--task=folder {making.RUN}', ('data_dir',), making.nothing),
  ]


def _tables() -> list[making.Case]:
  def case(words: tuple[str, ...], make: making.Make) -> making.Case:
    return making.Case('dcco', _OF_PARQUET, words, make)

  def csv(words: tuple[str, ...], content: str) -> making.Case:
    return making.Case('dcco', making.OF_TABLE, words, making.text('t.csv', content))

  def arrays(words: tuple[str, ...], **given: object) -> making.Case:
    return making.Case('dcco', making.OF_NPZ, words, making.npz(**given))

  return [
    case(('t.parquet',), making.nothing),
    case(('t.parquet',), making.text('t.parquet', '')),
    case(('t.parquet',), making.text('t.parquet', 'PAR1')),
    case(('t.parquet',), _parquet(label=[0, 1])),
    case(('t.parquet', 'a'), _parquet(a=['x', 'y'], label=[0, 1])),
    case(('t.parquet', 'a'), _parquet(a=[[1], [2]], label=[0, 1])),
    case(('needs 4 examples',), _parquet(a=[1.0, 2.0], label=[0.5, 1.5])),
    case(('finite',), _parquet(a=[1.0, float('inf')], label=[0, 1])),
    case(('t.parquet',), _parquet(a=[], label=[])),
    csv(('t.csv', 'label'), 'label,label,a\n0,1,2\n'),
    csv(('t.csv',), 'a,label\n'),
    csv(('t.csv',), 'a,a,label\n1,2,0\n3,4,1\n'),
    csv(('Line 3',), 'a,label\n1,0\n2,0,7\n'),
    csv(('t.csv',), 'label\n0\n1\n'),
    csv(('t.csv',), 'a,label,split\n1,0,fold\n2,1,train\n'),
    arrays(('features',), features=np.zeros(3), label=[0, 1, 2]),
    arrays(('features',), features=np.zeros([0, 3]), label=np.zeros(0, int)),
    arrays(('features',), features=np.zeros([3, 0]), label=[0, 1, 2]),
    arrays(('finite',), features=np.full([3, 2], np.nan), label=[0, 1, 2]),
    arrays(('features',), features=np.eye(3) * 1j, label=[0, 1, 2]),
    arrays(('label',), features=np.eye(3), label=[[0], [1], [2]]),
    making.Case(
      'dcco', f'--task=features --data_dir={{d}}/t.xls {making.RUN}', ('t.xls',)
    ),
  ]


def _graphs() -> list[making.Case]:
  wrong: tuple[tuple[tuple[str, ...], str], ...] = (
    (('g.csv',), ''),
    (('g.csv',), '0,1\n1,0\n'),
    (('g.csv',), '0,1,1\n1,0,1\n1,1\n'),
    (('g.csv',), '0,1,0\n0,0,1\n0,1,0\n'),
    (('g.csv',), '1,1,1\n1,0,1\n1,1,0\n'),
    (('g.csv',), '0,2,1\n2,0,1\n1,1,0\n'),
    (('g.csv',), '0,-1,1\n-1,0,1\n1,1,0\n'),
    (('g.csv',), '0,nan,1\nnan,0,1\n1,1,0\n'),
    (('g.csv',), '0,1,0\n1,0,0\n0,0,0\n'),
    (('g.csv',), '\xff\xfe0,1'),
  )
  return [
    making.Case('dec_ssl', _OF_GRAPH, words, making.text('g.csv', content))
    for words, content in wrong
  ]


def cases() -> list[making.Case]:
  """Manifests, images, tables and graphs."""
  return _manifests() + _images() + _folders() + _tables() + _graphs()
