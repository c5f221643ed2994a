"""What strangers can do to whoever reads their files, beyond being refused.

A cache in a folder of images may be a link, or forged: nothing outside of the data may
change. Names may be formulas, tags or orders to a terminal: no output may have them in
that form. And whatever is closed or gone that a program writes to, it may not fail
with a traceback.
"""

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
import pytest

from tests import forked
from tests.binaries import launch

pytestmark = pytest.mark.torture
KINDS = ('cache', 'names', 'streams')
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


def test_attacks_do_nothing(trial, tmp_path, tally):
  attack = {'cache': _attack_cache, 'names': _attack_names, 'streams': _close_streams}
  attack[trial.kind](trial.number, tmp_path)
  tally[f'attacks: {trial.kind}'] += 1


def _run(own: pathlib.Path, program: str, *arguments: str) -> launch.Ended:
  """Runs a program whose user has a cache folder in `own`."""
  cache = {'XDG_CACHE_HOME': str(own / 'home')}
  process = forked.Process(f'binaries.{program}', *arguments, environment=cache)
  return launch.end(process, own)


def _attack_cache(number: int, own: pathlib.Path) -> None:
  """Puts a cache of a stranger into a folder of images."""
  data, victim = own / 'data', own / 'victim'
  _draw(data, ('a', 'b'))
  (victim / _OUTSIDE).mkdir(parents=True)
  (victim / _OUTSIDE / 'a.npy').write_text('x')
  os.utime(victim / _OUTSIDE, (0, 0))
  arguments = ('--task=folder', '--data=folders=class', f'--data_dir={data}')
  partition = '--partition=iid:clients=2'
  honest = _run(own, 'partition', *arguments, partition)
  assert honest.status == 0, honest
  (entry,) = (data / _CACHE).glob('data-*')
  attacks = (_link_all, _link_entry, _link_array, _forge, _leave_partial)
  attack = attacks[number % len(attacks)]
  print(attack.__name__)
  attack(data / _CACHE, entry, victim)
  before = _tree(victim)

  ended = _run(own, 'partition', *arguments, partition)

  assert _tree(victim) == before
  assert (ended.status, ended.stdout) == (honest.status, honest.stdout), ended


def _attack_names(number: int, own: pathlib.Path) -> None:
  """Shows clients, files and flags of bad names."""
  first = _NAMES[number % len(_NAMES)]
  _draw(own / 'data', (first, 'b', f'c{first}'))
  source = ('--task=folder', '--data=folders=client', f'--data_dir={own / "data"}')
  dealt = _run(own, 'partition', *source, f'--csv={own / "p.csv"}')
  for k, note in enumerate((first, 'b')):
    run = own / f'run{k}'
    run.mkdir()
    own_config = {'method': {'kind': 'dcco', 'note': note}, 'rounds': 1, 'seed': 0}
    config = {'config': own_config, 'task': 'x', 'command': [note]}
    (run / 'config.json').write_text(json.dumps(config))
    (run / 'metrics.csv').write_text('round,loss\n1,-2.5\n')
  compared = _run(
    own, 'compare', f'--runs={own}/run0,{own}/run1', f'--out={own}/o', '--metric=loss'
  )
  for ended in (dealt, compared):
    assert ended.status == 0, ended
    assert not _ORDERS.search(ended.stdout + ended.stderr), ended
  for path in (own / 'p.csv', *(own / 'o').iterdir()):
    if path.suffix in ('.csv', '.md', '.tex', '.html'):
      assert not _active(path), path.name


def _close_streams(number: int, own: pathlib.Path) -> None:
  """Closes streams of a program, or the reader of its output."""
  closed = [stream for stream in range(3) if (number + 1) >> stream & 1]
  is_gone = bool(number // 7 % 2)
  print('the reader is gone' if is_gone else f'streams {closed} are closed')
  with (own / 'errors').open('w') as errors:
    process = subprocess.Popen(
      [sys.executable, '-m', 'binaries.partition', '--task=digits']
      + [f'--csv={own / "p.csv"}'],
      cwd=launch.ROOT,
      stdin=subprocess.PIPE,
      stdout=subprocess.PIPE,
      stderr=errors,
      preexec_fn=None if is_gone else lambda: [*map(os.close, closed)],
    )
  assert process.stdin
  assert process.stdout
  if is_gone:
    process.stdout.close()
  process.stdin.close()
  status = process.wait(launch.SECONDS)
  process.stdout.close()
  said = (own / 'errors').read_text()
  assert status == (120 if is_gone else 0), said
  assert 'Traceback' not in said
  if not is_gone:
    assert (own / 'p.csv').read_text().startswith('client_id,')


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
  if order := _ORDERS.search(text):
    return order[0]
  if path.suffix == '.csv':
    for cell in (cell for row in csv.reader(text.splitlines()) for cell in row):
      if cell.strip().startswith(('=', '+', '@')) or re.match(
        r'\s*-[^\d.]|-\d\+', cell
      ):
        return cell
    return ''
  pattern = {'.tex': r'\\input', '.md': r'<', '.html': r'<[^>]*onerror'}[path.suffix]
  active = re.search(pattern, text)
  return active[0] if active else ''
