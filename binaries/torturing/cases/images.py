"""Folders of images, some from strangers."""

from collections.abc import Callable
import os
import pathlib

from binaries.torturing.cases import making

_LABEL = 'image,case_id,label\n'


def cases() -> list[making.Case]:
  """Folders of images, some from strangers."""
  return _manifests() + _strangers()


def _linked(target: str) -> Callable[[pathlib.Path], object]:
  return making.cases(
    f'{_LABEL}l.png,c9,x\n', lambda folder: (folder / 'l.png').symlink_to(target)
  )


def _all(content: Callable[[], bytes]) -> Callable[[pathlib.Path], object]:
  """Returns a function that makes a folder whose eight images are all the same file."""
  return making.cases(
    making.ALL, lambda d: [p.write_bytes(content()) for p in d.glob('*.png')]
  )


def _postscript() -> bytes:
  """Returns a program that Ghostscript would run."""
  return b'%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 8\n%%EndComments\nshowpage\n'


def _huge() -> bytes:
  """Returns a picture of 35 TB, of which there is only the header."""
  return b'P6 3400000 3400000 255\n'


def _manifests() -> list[making.Case]:
  return [
    making.Case('dcco', f'--task=cases {making.RUN}', ('data_dir',)),
    making.Case('dcco', making.OF_CASES, ('no manifest.csv',)),
    making.Case('dcco', f'--task=cases --data_dir={{d}}/no {making.RUN}', ('{d}/no',)),
    making.Case(
      'dcco', f'--task=cases --data_dir=/dev/zero {making.RUN}', ('/dev/zero',)
    ),
    making.Case(
      'dcco',
      making.OF_CASES,
      ('manifest.csv', 'case_id'),
      making.cases('image,label\n0.png,x'),
    ),
    making.Case(
      'dcco', making.OF_CASES, ('manifest.csv', '0 images'), making.cases(_LABEL)
    ),
    making.Case(
      'dcco',
      making.OF_CASES,
      ('manifest.csv', 'UTF-8'),
      making.text('manifest.csv', 'a\xff'),
    ),
    making.Case(
      'dcco', making.OF_CASES, ('manifest.csv',), making.text('manifest.csv', '\x00')
    ),
    making.Case(
      'dcco',
      making.OF_CASES,
      ('manifest.csv',),
      making.text('manifest.csv', 'a' * 10**6),
    ),
    making.Case(
      'dcco', making.OF_CASES, ('9.png',), making.cases(f'{_LABEL}9.png,c0,x\n')
    ),
    making.Case(
      'dcco',
      making.OF_CASES,
      ('twice', '0.png'),
      making.cases(f'{_LABEL}0.png,c,x\n0.png,c,x\n'),
    ),
    making.Case(
      'dcco',
      making.OF_CASES,
      ('manifest.csv', 'case of more than one label', 'c (x, y)'),
      making.cases(f'{_LABEL}0.png,c,x\n1.png,c,y\n2.png,d,x\n'),
    ),
    making.Case(
      'dcco',
      making.OF_CASES,
      ('case in two splits', 'c'),
      making.cases('image,case_id,split\n0.png,c,train\n1.png,c,test\n'),
    ),
  ]


def _strangers() -> list[making.Case]:
  return [
    making.Case(
      'dcco',
      making.OF_CASES,
      ('etc/passwd',),
      making.cases(f'{_LABEL}../../etc/passwd,c,x\n'),
    ),
    making.Case(
      'dcco',
      making.OF_CASES,
      ('etc/passwd',),
      making.cases(f'{_LABEL}/etc/passwd,c,x\n'),
    ),
    making.Case('dcco', making.OF_CASES, ('l.png',), _linked('/dev/zero')),
    making.Case('dcco', making.OF_CASES, ('l.png',), _linked('/etc/passwd')),
    making.Case('dcco', making.OF_CASES, ('l.png',), _linked('l.png')),
    making.Case(
      'dcco',
      making.OF_CASES,
      ('p.png',),
      making.cases(f'{_LABEL}p.png,c9,x\n', lambda folder: os.mkfifo(folder / 'p.png')),
    ),
    making.Case(
      'dcco',
      making.OF_CASES,
      ('0 readable',),
      making.cases(making.ALL, lambda d: [p.write_bytes(b'') for p in d.glob('*.png')]),
    ),
    making.Case('dcco', making.OF_CASES, ('0 readable',), _all(_postscript)),
    making.Case('dcco', making.OF_CASES, ('0 readable',), _all(_huge)),
    making.Case(
      'dcco',
      f'{making.OF_CASES} --image_size=1000000',
      ('image_size', 'GiB'),
      making.cases(making.ALL),
    ),
    making.Case(
      'dcco',
      f'--task=cases --data_dir={{d}}/a.tar {making.RUN}',
      ('a.tar',),
      making.text('a.tar', 'no archive'),
    ),
    making.Case(
      'dcco', f'--task=ham10000 --data_dir={{d}} {making.RUN}', ('HAM10000_metadata',)
    ),
  ]
