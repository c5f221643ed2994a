"""Bad inputs as a table: a command line, and files that are made for it.

Each must end with status 1 and one sentence that has the words, without a traceback,
and soon: none may be waited for, and none may fill the memory.
"""

from collections.abc import Callable
import json
import os
import pathlib
import random
import shutil
import sqlite3
from typing import NamedTuple

import numpy as np
from PIL import Image

from binaries.torturing import programs
from binaries.torturing import trials

# Cases of a turn, which are quick.
_A_TURN = 10
# Of a refusal: to load TensorFlow on a machine at work.
_SECONDS = 180.0


def _nothing(folder: pathlib.Path) -> None:
  """Makes nothing."""


class Case(NamedTuple):
  """One bad input.

  Attributes:
    program: Of `binaries`.
    arguments: Its command line, with {d} for a folder of its own; words by blanks.
    words: What the sentence must have.
    make: Makes files in that folder.
  """

  program: str
  arguments: str
  words: tuple[str, ...]
  make: Callable[[pathlib.Path], object] = _nothing


def _text(name: str, text: str) -> Callable[[pathlib.Path], object]:
  def make(folder: pathlib.Path) -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(text.encode('latin-1'))

  return make


def _cases(
  manifest: str, then: Callable[[pathlib.Path], object] = _nothing
) -> Callable[[pathlib.Path], object]:
  """Returns what makes eight images and a manifest, and then something else."""

  def make(folder: pathlib.Path) -> None:
    for k in range(8):
      pixels = np.random.default_rng(k).integers(0, 256, (9, 9, 3)).astype(np.uint8)
      Image.fromarray(pixels).save(folder / f'{k}.png')
    (folder / 'manifest.csv').write_text(manifest)
    then(folder)

  return make


def _run(
  **others: object,
) -> Callable[[pathlib.Path], object]:
  """Returns what makes a run folder of a stranger, by its config.json."""
  flags = {'algorithm': 'dcco', 'task': 'digits', **others}
  return _text('run/config.json', json.dumps({'flags': flags}))


def _npz(**arrays: object) -> Callable[[pathlib.Path], object]:
  return lambda folder: np.savez(
    folder / 't.npz', **{name: np.asarray(array) for name, array in arrays.items()}
  )


def _states(folder: pathlib.Path) -> None:
  (folder / 'run').mkdir()
  connection = sqlite3.connect(folder / 'run' / 'client_states.sqlite')
  connection.execute('CREATE TABLE meta (name TEXT, value TEXT)')
  connection.close()


_ALL = 'image,case_id,label\n' + ''.join(
  f'{k}.png,c{k // 2},{"xy"[k // 4]}\n' for k in range(8)
)
_RUN = '--run_dir={d}/run'
_OF_CASES = f'--task=cases --data_dir={{d}} {_RUN}'
_OF_TABLE = f'--task=features --data_dir={{d}}/t.csv {_RUN}'
_OF_NPZ = f'--task=features --data_dir={{d}}/t.npz {_RUN}'


def _flags() -> list[Case]:
  """Flags that are wrong by themselves."""
  return [
    Case('dcco', '', ('run_dir is not given',)),
    Case('dcco', '--cheese=1', ('cheese',)),
    Case('dcco', 'cheese', ("Unexpected argument 'cheese'",)),
    Case('dcco', f'{_RUN} --rounds=0', ('rounds', '0')),
    Case('dcco', f'{_RUN} --rounds=many', ('rounds', 'many')),
    Case('dcco', f'{_RUN} --seed=-1', ('seed', '-1')),
    Case('dcco', f'{_RUN} --seed={2**63}', ('seed', str(2**63))),
    Case('dcco', f'{_RUN} --task=cifar11', ('task', 'cifar11')),
    Case('dcco', f'{_RUN} --encoder=resnet9', ('encoder', 'resnet9')),
    Case('dcco', f'{_RUN} --encoder_width=nan', ('--encoder_width is nan',)),
    Case('dcco', f'{_RUN} --encoder_width=0', ('--encoder_width',)),
    Case('dcco', f'{_RUN} --encoder_width=-3', ('--encoder_width',)),
    Case('dcco', f'{_RUN} --server_learning_rate=inf', ('--server_learning_rate is',)),
    Case('dcco', f'{_RUN} --server_learning_rate=-1', ('--server_learning_rate=-1',)),
    Case('dcco', f'{_RUN} --server_momentum=0.5', ('--server_momentum=0.5',)),
    Case('dcco', f'{_RUN} --temperature=1', ('--temperature', 'fedavg_nt_xent')),
    Case('dcco', f'{_RUN} --data_dir=/data', ('--data_dir', 'digits')),
    Case('dcco', f'{_RUN} --participation=2', ('participation is 2',)),
    Case('dcco', f'{_RUN} --participation=nan', ('--participation is nan',)),
    Case('dcco', f'{_RUN} --clients_per_round=99999', ('clients_per_round is 99999',)),
    Case('dcco', f'{_RUN} --projector=8,wide', ("projector is '8,wide'",)),
    Case('dcco', f'{_RUN} --projector=8,0', ('--projector=8,0',)),
    Case('dcco', f'{_RUN} --projector=1000000,1000000', ('projector', 'parameters')),
    Case('dcco', f'{_RUN} --image_size=100000', ('image_size is 100000', 'GiB')),
    Case('dcco', f'{_RUN} --image_size=0', ('image_size is 0',)),
    Case('dcco', f'{_RUN} --evaluation_methods=svm', ('evaluation_methods', 'svm')),
    Case('dcco', f'{_RUN} --label_fractions=0', ('label_fractions',)),
    Case('dcco', f'{_RUN} --label_fractions=nan', ('label_fractions',)),
    Case('dcco', f'{_RUN} --runtime=cloud', ('runtime', 'cloud')),
    Case('dcco', f'{_RUN} --runtime=hosts', ('worker_addresses is empty',)),
    Case('dcco', f'{_RUN} --worker_address=nowhere', ('host:port',)),
    Case('dcco', f'{_RUN} --worker_address=example.org:1', ('--i_trust_this_network',)),
    Case('dcco', '--run_dir=~nobody_here/run', ('~nobody_here',)),
    Case('dcco', '--run_dir=/proc/run', ('/proc/run',)),
    Case('dcco', '--run_dir={d}/f/run', ('{d}/f',), _text('f', 'a file')),
    Case('dcco', _RUN, ('thesis.tex', 'config.json'), _text('run/thesis.tex', '')),
    Case('fedema', f'{_RUN} --method=fedsimclr', ('fedsimclr',)),
    Case('fedema', f'{_RUN} --tau=nan', ('tau',)),
    Case('fedsup', f'{_RUN} --server_labels=2', ('server_labels',)),
    Case('fedsup', f'{_RUN} --server_hospital=nowhere', ('server_hospital',)),
    Case('dec_ssl', f'{_RUN} --method=graph --graph={{d}}/g.csv', ('g.csv',)),
    Case(
      'dec_ssl',
      f'{_RUN} --method=graph --graph={{d}}/g.csv --partition=iid:clients=2',
      ('g.csv',),
      _text('g.csv', '0,2\n1,x\n'),
    ),
    Case('evaluate', '', ('run is not given',)),
    Case('compare', '', ('runs',)),
    Case('partition', '--csv={d}/nowhere/a.csv', ('--csv', 'nowhere')),
    Case('worker', '', ('port is not given',)),
    Case('worker', '--port=7001', ('--i_trust_this_network',)),
  ]


def _partitions() -> list[Case]:
  """Specifications of partitions."""
  wrong = (
    ('iid', ('iid',)),
    ('iid:', ('iid',)),
    ('iid:examples', ('examples',)),
    ('iid:examples=0', ('examples',)),
    ('iid:examples=4,examples=5', ('examples',)),
    ('iid:clients=99999', ('99999',)),
    ('dirichlet:alpha=-1,examples=4', ('alpha',)),
    ('dirichlet:alpha=nan,examples=4', ('alpha',)),
    ('dirichlet:examples=4', ('alpha',)),
    ('shares:alpha=1e999,clients=5', ('alpha',)),
    ('skew:beta=2,clients=5', ('beta',)),
    ('classes:per_client=11,clients=5', ('per_client',)),
    ('quantity:clients=5', ('quantity',)),
    ('clusters:clients=5', ('--partition_encoder',)),
    ('rotation:clients=0', ('clients',)),
    ('case:max_examples=0', ('max_examples',)),
    ('cheese:clients=5', ('cheese',)),
    (':=,', ('partition',)),
  )
  return [Case('partition', f'--partition={text}', words) for text, words in wrong] + [
    Case(
      'partition',
      '--partition=clusters:clients=2 --partition_encoder={d}/encoder.keras',
      ('encoder.keras',),
      make,
    )
    for make in (_nothing, _text('encoder.keras', 'PK\x03\x04'))
  ]


def _images() -> list[Case]:
  """Folders of images, some of strangers."""
  label = 'image,case_id,label\n'

  def linked(target: str) -> Callable[[pathlib.Path], object]:
    return _cases(
      f'{label}l.png,c9,x\n', lambda folder: (folder / 'l.png').symlink_to(target)
    )

  return [
    Case('dcco', f'--task=cases {_RUN}', ('data_dir',)),
    Case('dcco', _OF_CASES, ('no manifest.csv',)),
    Case('dcco', f'--task=cases --data_dir={{d}}/no {_RUN}', ('{d}/no',)),
    Case('dcco', f'--task=cases --data_dir=/dev/zero {_RUN}', ('/dev/zero',)),
    Case(
      'dcco', _OF_CASES, ('manifest.csv', 'case_id'), _cases('image,label\n0.png,x')
    ),
    Case('dcco', _OF_CASES, ('manifest.csv', '0 images'), _cases(label)),
    Case('dcco', _OF_CASES, ('manifest.csv', 'UTF-8'), _text('manifest.csv', 'a\xff')),
    Case('dcco', _OF_CASES, ('manifest.csv',), _text('manifest.csv', '\x00')),
    Case('dcco', _OF_CASES, ('manifest.csv',), _text('manifest.csv', 'a' * 10**6)),
    Case('dcco', _OF_CASES, ('9.png',), _cases(f'{label}9.png,c0,x\n')),
    Case(
      'dcco', _OF_CASES, ('twice', '0.png'), _cases(f'{label}0.png,c,x\n0.png,c,x\n')
    ),
    Case(
      'dcco',
      _OF_CASES,
      ('manifest.csv', 'case of more than one label', 'c (x, y)'),
      _cases(f'{label}0.png,c,x\n1.png,c,y\n2.png,d,x\n'),
    ),
    Case(
      'dcco',
      _OF_CASES,
      ('case in two splits', 'c'),
      _cases('image,case_id,split\n0.png,c,train\n1.png,c,test\n'),
    ),
    Case('dcco', _OF_CASES, ('etc/passwd',), _cases(f'{label}../../etc/passwd,c,x\n')),
    Case('dcco', _OF_CASES, ('etc/passwd',), _cases(f'{label}/etc/passwd,c,x\n')),
    Case('dcco', _OF_CASES, ('l.png',), linked('/dev/zero')),
    Case('dcco', _OF_CASES, ('l.png',), linked('/etc/passwd')),
    Case('dcco', _OF_CASES, ('l.png',), linked('l.png')),
    Case(
      'dcco',
      _OF_CASES,
      ('p.png',),
      _cases(f'{label}p.png,c9,x\n', lambda folder: os.mkfifo(folder / 'p.png')),
    ),
    Case(
      'dcco',
      _OF_CASES,
      ('0 readable',),
      _cases(_ALL, lambda d: [p.write_bytes(b'') for p in d.glob('*.png')]),
    ),
    Case(
      'dcco', f'{_OF_CASES} --image_size=1000000', ('image_size', 'GiB'), _cases(_ALL)
    ),
    Case(
      'dcco',
      f'--task=cases --data_dir={{d}}/a.tar {_RUN}',
      ('a.tar',),
      _text('a.tar', 'no archive'),
    ),
    Case('dcco', f'--task=ham10000 --data_dir={{d}} {_RUN}', ('HAM10000_metadata',)),
  ]


def _tables() -> list[Case]:
  """Tables of numbers."""
  return [
    Case('dcco', _OF_TABLE, ('t.csv',)),
    Case('dcco', _OF_TABLE, ('t.csv',), _text('t.csv', '')),
    Case('dcco', _OF_TABLE, ('t.csv',), _text('t.csv', '\x00\x01\xff')),
    Case('dcco', _OF_TABLE, ('t.csv', 'label'), _text('t.csv', 'a,b\n1,2\n')),
    Case('dcco', _OF_TABLE, ('Line 2', 't.csv'), _text('t.csv', 'a,label\nx,0\n')),
    Case('dcco', _OF_TABLE, ('finite',), _text('t.csv', 'a,label\nnan,0\n1,0\n')),
    Case('dcco', _OF_TABLE, ('t.csv',), _text('t.csv', 'a,label\n1\n')),
    Case('dcco', _OF_TABLE, ('t.csv',), lambda d: (d / 't.csv').mkdir()),
    Case('dcco', _OF_NPZ, ('t.npz',), _text('t.npz', 'PK\x03\x04')),
    Case('dcco', _OF_NPZ, ('t.npz', 'features'), _npz(label=[0, 1])),
    Case('dcco', _OF_NPZ, ('features',), _npz(features=['a', 'b'], label=[0, 1])),
    Case('dcco', _OF_NPZ, ('t.npz',), _npz(features=[{}, {}], label=[0, 1])),
    Case('dcco', _OF_NPZ, ('label',), _npz(features=np.eye(3), label=[0.5, 1, 2])),
    Case('dcco', _OF_NPZ, ('label',), _npz(features=np.eye(3), label=[0, 1])),
    Case('dcco', _OF_NPZ, ('label',), _npz(features=np.eye(3), label=[10**12, 0, 0])),
    Case('dcco', _OF_NPZ, ('label',), _npz(features=np.eye(3), label=[-2, 0, 0])),
  ]


def _runs() -> list[Case]:
  """Run folders of strangers."""
  of_run = '--run={d}/run'
  config = 'run/config.json'

  return [
    Case('evaluate', of_run, ('{d}/run',)),
    Case('evaluate', of_run, ('config.json',), _text('run/other', '')),
    Case('evaluate', of_run, ('config.json', 'JSON'), _text(config, '{')),
    Case('evaluate', of_run, ('config.json', 'JSON'), _text(config, '[' * 10**5)),
    Case('evaluate', of_run, ('config.json',), _text(config, '[]')),
    Case('evaluate', of_run, ('config.json',), _text(config, '{"flags": 1}')),
    Case('evaluate', of_run, ('config.json', 'JSON'), _text(config, '\xff\xfe')),
    Case('evaluate', of_run, ('--task',), _run(task=['digits'])),
    Case('evaluate', of_run, ('--seed',), _run(seed={})),
    Case('evaluate', of_run, ('--label_fractions',), _run(label_fractions=0.5)),
    Case('evaluate', of_run, ('--encoder_width',), _run(encoder_width='wide')),
    Case('evaluate', of_run, ('--data_dir',), _run(task='cases', data_dir='/etc')),
    Case(
      'evaluate', of_run, ('partition_encoder',), _run(partition_encoder='/x.keras')
    ),
    Case('evaluate', of_run, ('other examples',), _run()),
    Case('compare', '--runs={d}/run --out={d}/o', ('{d}/run',)),
    Case('compare', '--runs={d}/run --out={d}/o', ('metrics.csv',), _run()),
    Case(
      'compare',
      '--runs={d}/run --out={d}/o',
      ('metrics.csv', 'round'),
      lambda d: (_run()(d), _text('run/metrics.csv', 'loss\n1\n')(d)),
    ),
    Case(
      'compare',
      '--runs={d}/run --out={d}/o',
      ('metrics.csv', 'round'),
      lambda d: (_run()(d), _text('run/metrics.csv', 'round\ninf\n')(d)),
    ),
    Case('fedema', _RUN, ('client_states.sqlite', 'config.json'), _states),
  ]


CASES = (*_flags(), *_partitions(), *_images(), *_tables(), *_runs())
# So that a few of them are of all sorts.
_SHUFFLED = random.Random(0).sample(CASES, len(CASES))


class Inputs(trials.Trials):
  """The table, case by case; each is tried by a life that is forked (`forks`)."""

  kinds = ('table',)
  counted = 'inputs'

  def trial(self, kind: str, turn: int) -> bool:
    """Tries some cases; returns whether they held.

    Args:
      kind: Of `kinds`.
      turn: Which of the trials, of cases in an order without one.
    """
    del kind
    held = True
    for number in range(_A_TURN * turn, _A_TURN * (turn + 1)):
      held &= self.try_one(_SHUFFLED[number % len(_SHUFFLED)])
    return held

  def try_one(self, case: Case) -> bool:
    """Tries a case; returns whether it held."""
    own = self._folder / 'input'
    shutil.rmtree(own, ignore_errors=True)
    own.mkdir(parents=True)
    case.make(own)
    arguments = case.arguments.replace('{d}', str(own)).split()
    process = programs.Process(
      case.program, arguments, self._folder / 'tmp', self._forks
    )
    ended = process.end(_SECONDS)
    self.counts['inputs'] += 1
    words = [word.replace('{d}', str(own)) for word in case.words]
    missing = [word for word in words if word not in ended.stderr]
    if ended.is_sentence and not missing:
      self.counts['clear answers'] += 1
      return True
    text = f'{case.program} {case.arguments}: lacks {missing}: {ended}'
    self._wrong('answers that are not clear', text)
    return False
