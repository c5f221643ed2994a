"""What strangers can do to whoever reads their files, beyond being refused.

A cache in a folder of images may be a link, or forged: nothing outside of the data may
change. Names may be formulas, tags or orders to a terminal: no output may have them in
that form. And whatever is closed or gone that a program writes to, it may not fail
with a traceback.
"""

from collections.abc import Callable
import csv
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import numpy as np
from PIL import Image

from binaries.torturing import programs
from binaries.torturing import trials

_OUTSIDE = 'thesis.partial-2024'
_CACHE = '.tff_ssl_cache'
_NAMES = (
  "=cmd|' '!A0",
  '@SUM(A1)',
  '+1+1',
  '-1+1',
  '<img src=x onerror=alert(1)>',
  '\u202egnp.exe',
  '\x1b[2J\x1b]0;x\x07',
  'a\nb',
  '|',
  '$\\input{x}$',
  '\udce4',
)
# What a terminal obeys, besides the ends of lines.
_ORDERS = re.compile('[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]')
_SECONDS = 180.0


class Strangers(trials.Trials):
  """Folders and names of strangers, and readers that leave."""

  kinds = ('cache', 'names', 'streams')
  counted = 'attacks'

  def trial(self, kind: str, turn: int) -> bool:
    """Tries one attack; returns whether it held.

    Args:
      kind: One of `kinds`.
      turn: Number of the trial, which selects the attack.
    """
    shutil.rmtree(self._folder / 'own', ignore_errors=True)
    own = self._folder / 'own'
    own.mkdir(parents=True)
    tried: dict[str, Callable[[pathlib.Path, int], str]] = {
      'cache': self._cache,
      'names': self._names,
      'streams': self._streams,
    }
    wrong = tried[kind](own, turn)
    self.counts['attacks'] += 1
    if wrong:
      self._wrong(f'{kind}: did not hold', f'{kind}:{turn}: {wrong}')
      return False
    self.counts[f'{kind}: held'] += 1
    return True

  def _run(self, own: pathlib.Path, program: str, *arguments: str) -> programs.Ended:
    """Runs a program whose user has a cache folder in `own`."""
    process = programs.Process(
      program,
      arguments,
      self._folder / 'tmp',
      self._forks,
      environment={'XDG_CACHE_HOME': str(own / 'home')},
    )
    return process.end(_SECONDS)

  def _cache(self, own: pathlib.Path, turn: int) -> str:
    """Puts a cache of a stranger into a folder of images; returns what went wrong."""
    data, victim = own / 'data', own / 'victim'
    _draw(data, ('a', 'b'))
    (victim / _OUTSIDE).mkdir(parents=True)
    (victim / _OUTSIDE / 'a.npy').write_text('x')
    os.utime(victim / _OUTSIDE, (0, 0))
    arguments = ('--task=folder', '--folders=class', f'--data_dir={data}')
    partition = '--partition=iid:clients=2'
    honest = self._run(own, 'partition', *arguments, partition)
    (entry,) = (data / _CACHE).glob('data-*')
    attacks = (_link_all, _link_entry, _link_array, _forge, _leave_partial)
    attacks[turn % len(attacks)](data / _CACHE, entry, victim)
    before = _tree(victim)
    ended = self._run(own, 'partition', *arguments, partition)
    if _tree(victim) != before:
      return f'{attacks[turn % len(attacks)].__name__}: the victim changed'
    if (ended.status, ended.stdout) != (honest.status, honest.stdout):
      return f'{attacks[turn % len(attacks)].__name__}: {ended}'
    return ''

  def _names(self, own: pathlib.Path, turn: int) -> str:
    """Shows clients, files and flags of bad names; returns what went wrong."""
    first = _NAMES[turn % len(_NAMES)]
    _draw(own / 'data', (first, 'b', f'c{first}'))
    dealt = self._run(
      own,
      'partition',
      '--task=folder',
      '--folders=client',
      f'--data_dir={own / "data"}',
      f'--csv={own / "p.csv"}',
    )
    for k, note in enumerate((first, 'b')):
      run = own / f'run{k}'
      run.mkdir()
      flags = {'algorithm': 'dcco', 'rounds': 1, 'seed': 0, 'note': note}
      config = {'flags': flags, 'task': 'x', 'command': [note]}
      (run / 'config.json').write_text(json.dumps(config))
      (run / 'metrics.csv').write_text('round,loss\n1,-2.5\n')
    compared = self._run(
      own, 'compare', f'--runs={own}/run0,{own}/run1', f'--out={own}/o', '--metric=loss'
    )
    for ended in (dealt, compared):
      if ended.status or _ORDERS.search(ended.stdout + ended.stderr):
        return f'{first!r}: {ended}'
    for path in (own / 'p.csv', *(own / 'o').iterdir()):
      if path.suffix in ('.csv', '.md', '.tex', '.html') and (bad := _active(path)):
        return f'{first!r}: {path.name} has {bad!r}'
    return ''

  def _streams(self, own: pathlib.Path, turn: int) -> str:
    """Closes streams of a program; returns what went wrong."""
    closed = [number for number in range(3) if (turn + 1) >> number & 1]
    gone = bool(turn // 7 % 2)
    (own / 'file').touch()
    process = subprocess.Popen(
      [sys.executable, '-m', 'binaries.partition', '--task=digits']
      + [f'--csv={own / "p.csv"}'],
      cwd=programs.ROOT,
      stdin=subprocess.PIPE,
      stdout=subprocess.PIPE,
      stderr=(own / 'file').open('w'),
      preexec_fn=None if gone else lambda: [*map(os.close, closed)],
    )
    if process.stdin is None or process.stdout is None:
      raise RuntimeError('there are no pipes')
    if gone:
      process.stdout.close()
    process.stdin.close()
    status = process.wait(_SECONDS)
    if not gone:
      process.stdout.close()
    said = (own / 'file').read_text()
    if status != (120 if gone else 0) or 'Traceback' in said:
      return f'without {"a reader" if gone else closed}: status {status}; {said}'
    if gone:
      return ''
    rows = (own / 'p.csv').read_text().splitlines()
    return '' if rows[0].startswith('client_id,') else f'p.csv begins with {rows[0]!r}'


def _draw(folder: pathlib.Path, names: tuple[str, ...]) -> None:
  """Makes folders of these names with four images each."""
  for name in names:
    (folder / name).mkdir(parents=True)
    for k in range(4):
      pixels = np.random.default_rng(k).integers(0, 256, (9, 9, 3)).astype(np.uint8)
      Image.fromarray(pixels).save(folder / name / f'{k}.png')


def _link_all(cache: pathlib.Path, entry: pathlib.Path, victim: pathlib.Path) -> None:
  del entry
  shutil.rmtree(cache)
  cache.symlink_to(victim)


def _link_entry(cache: pathlib.Path, entry: pathlib.Path, victim: pathlib.Path) -> None:
  del cache
  entry.rename(victim / entry.name)
  entry.symlink_to(victim / entry.name)


def _link_array(cache: pathlib.Path, entry: pathlib.Path, victim: pathlib.Path) -> None:
  del cache
  (entry / 'image.npy').rename(victim / 'image.npy')
  (entry / 'image.npy').symlink_to(victim / 'image.npy')


def _forge(cache: pathlib.Path, entry: pathlib.Path, victim: pathlib.Path) -> None:
  """Replaces the images, and what the user would recognise the entry by."""
  del cache, victim
  known = json.loads((entry / 'entry.json').read_text())
  known['info']['unreadable'] = dict.fromkeys(['a/0.png', 'a/1.png'], 'forged')
  (entry / 'entry.json').write_text(json.dumps(known))
  (entry / 'entry.mac').write_text('0' * 64)


def _leave_partial(
  cache: pathlib.Path, entry: pathlib.Path, victim: pathlib.Path
) -> None:
  shutil.rmtree(entry)
  (cache / 'x.partial-y').symlink_to(victim / _OUTSIDE)
  os.utime(cache / 'x.partial-y', (0, 0), follow_symlinks=False)


def _tree(folder: pathlib.Path) -> dict[str, str]:
  """Returns a digest of each file of a folder, by name."""
  return {
    str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
    for path in sorted(folder.rglob('*'))
    if path.is_file()
  }


def _active(path: pathlib.Path) -> str:
  """Returns what of a file would act in its medium; empty if nothing would."""
  text = path.read_text(encoding='utf-8')
  if found := _ORDERS.search(text):
    return found[0]
  if path.suffix == '.csv':
    for cell in (cell for row in csv.reader(text.splitlines()) for cell in row):
      if cell.strip().startswith(('=', '+', '@')) or re.match(
        r'\s*-[^\d.]|-\d\+', cell
      ):
        return cell
    return ''
  pattern = {'.tex': r'\\input', '.md': r'<', '.html': r'<[^>]*onerror'}[path.suffix]
  found = re.search(pattern, text)
  return found[0] if found else ''
