"""Whatever is read of a stranger is taken, or refused by one ValueError of one line.

Texts that are right are changed at random, seeded: the message tells the seed.
"""

import numpy as np
import pytest

from binaries.config import changing
from tasks import manifest
from tasks import tables
from tff_ssl.partition import spec
from tff_ssl.reporting import run_reader
from tff_ssl.runs import round_table

_TRIALS = 150
_PIECES = (
  *('', ',', ':', '=', '"', '\n', '\r', '\x00', ' ', '-', '.', '[', '{', '}', '\\'),
  *('nan', 'inf', '1e999', '-1', '0', str(10**30), 'é', '\ud7ff', 'round', 'null'),
)


def _changed(text, seed):
  rng = np.random.default_rng(seed)
  for _ in range(rng.integers(1, 3)):
    start = int(rng.integers(len(text)))
    end = start + int(rng.integers(1, 5))
    piece = {
      0: str(rng.integers(10)),
      1: _PIECES[rng.integers(len(_PIECES))] + text[start],
      2: '',
      3: text[start:end] * 2,
    }[int(rng.integers(4))]
    text = text[:start] + piece + text[end if len(piece) != 1 else start + 1 :]
  return text


def _bytes(text, seed):
  """Sometimes in no encoding at all."""
  content = bytearray(text.encode())
  if content and seed % 5 == 0:
    content[seed % len(content)] ^= 0x80
  return bytes(content)


def _spec(text, path):
  del path
  spec.parse(text)


def _manifest(text, path):
  del path
  manifest.check('m', manifest.read('m', text).rows, ['a', 'b', 'c'])


def _of_file(read, name):
  def parse(content, path):
    (path / name).write_bytes(content)
    read(path / name)

  return parse


def _metrics(path):
  path.with_name('config.json').write_text('{"config": {}}')
  run_reader.read(path.parent)


def _rows(path):
  known = round_table.Table(path)
  known.keep_until(1)
  known.check_rounds(1)


_PARSERS = {
  'partition': ('shares:alpha=0.1,clients=5', _spec),
  'manifest': ('image,case_id,label\na,1,x\nb,1,x\nc,2,y\n', _manifest),
  'config.json': (
    '{"config": {"method": {"kind": "fedavg"}, "seed": 1, "trackers": ["mlflow"], '
    '"objective": {"kind": "simclr", "temperature": 0.5}}, "task": "t"}',
    _of_file(lambda path: changing.read(path, keep_paths=False), 'config.json'),
  ),
  'table.csv': (
    'a,b,label,split\n1,2,x,train\n3,4,y,test\n5,6,x,train\n',
    _of_file(tables.load_file, 'table.csv'),
  ),
  'metrics.csv': ('round,loss\n1,0.5\n2,0.25\n', _of_file(_metrics, 'metrics.csv')),
  'rows.csv': ('round,loss\n1,0.5\n2,0.25\n', _of_file(_rows, 'rows.csv')),
}


@pytest.mark.parametrize('name', _PARSERS)
def test_anything_is_read_or_refused(name, tmp_path):
  text, parse = _PARSERS[name]
  refused = 0
  for seed in range(_TRIALS):
    given = _changed(text, seed)
    try:
      parse(given if name == 'partition' else _bytes(given, seed), tmp_path)
    except ValueError as error:
      refused += 1
      assert str(error), seed
      assert '\n' not in str(error), (seed, given, error)
    except Exception as error:
      raise AssertionError(f'seed {seed}: {given!r}') from error
  # The texts are changed enough, and not too much.
  assert 0.2 * _TRIALS < refused < 0.98 * _TRIALS


# Where the csv module gives up, and where a codec does.
_HOPELESS = (b'"' + b'x' * 200_000 + b'"', b'\xff\xfe', b'\x00', b'', b'\n' * 9)


@pytest.mark.parametrize('name', sorted(set(_PARSERS) - {'partition'}))
@pytest.mark.parametrize('content', _HOPELESS, ids=range(len(_HOPELESS)))
def test_binary_files_are_refused(name, content, tmp_path):
  parse = _PARSERS[name][1]
  with pytest.raises(ValueError) as refused:
    parse(content, tmp_path)
  assert '\n' not in str(refused.value)
  assert name in str(refused.value) or name == 'manifest'
