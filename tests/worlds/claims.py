"""A file of claims for tests, in memory: runs of a program that a test fakes."""

import pathlib

from docs.claims import data

_FILE = """
paper = 'P'
title = 'A paper'
column = 'linear/10%/accuracy'
bounds = ['one', 'two']
protocol = 'Smaller.'

[texts]
rounds = {digits = '3', cifar = '4'}
both = '--task=cifar10 --rounds=$rounds'

[runs]
one = 'fake $both --accuracy=0.75'
'two_${rounds}' = 'fake --accuracy=0.1 $both --accuracy=0.5'

[figures]
one = 'one'
two = 'two_${rounds}'
again = 'two_${rounds}'
loss = ['one', 'loss']
personal = ['one', 'personal/$column']

[claims.c]
source = 'Table 9'
sentence = '''
One is
better.'''
show = ['again']
compare = [{order = ['one', 'two']}]
"""


def claims(
  folder: pathlib.Path, *replaced: tuple[str, str], budget: str = 'cifar'
) -> list[data.Claim]:
  """Reads the file, written into an empty folder, with some of its text replaced.

  Args:
    folder: The folder.
    *replaced: Pairs of a text of the file and another.
    budget: The budget.
  """
  text = _FILE
  for old, new in replaced:
    assert old in text, old
    text = text.replace(old, new)
  (folder / 'p.toml').write_text(text, encoding='utf-8')
  return data.read(budget, folder)
