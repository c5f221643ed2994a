"""Bright shapes on black: the encodings of no objective fall to a point."""

import importlib

import numpy as np
from PIL import Image
import pytest

from binaries import dcco
from binaries import fedavg_ssl
from tests.binaries import in_process
from tests.binaries import launch

_FLAGS = (
  '--task=folder',
  '--image_size=16',
  '--encoder=width=0.25',
  '--partition=iid:clients=5',
  '--clients_per_round=5',
  '--rounds=20',
  '--evaluation=methods=knn',
)
# Supervised training needs labels, and measures no spread.
_AVERAGED = [o for o in fedavg_ssl.PROGRAM.objectives if o != 'supervised']
# SCAFFOLD has rates of its own.
_ROWS = (
  *(('fedavg_ssl', None, objective) for objective in _AVERAGED),
  *(('fedavg_ssl', 'scaffold', objective) for objective in ('cco', 'vicreg')),
  *(
    ('dcco', method, objective)
    for method in ('dcco', 'fedsc')
    for objective in dcco.PROGRAM.rows[method]
  ),
)


@pytest.fixture(scope='module')
def shapes(tmp_path_factory):
  """A folder of 200 discs and squares."""
  folder, generator = tmp_path_factory.mktemp('shapes'), np.random.default_rng(0)
  for i in range(200):
    kind = ('disc', 'square')[i % 2]
    middle, radius = generator.uniform(5, 11, (2, 1, 1)), generator.uniform(2, 5)
    apart = np.abs(np.mgrid[:16, :16] - middle)
    inside = (np.hypot(*apart) if kind == 'disc' else apart.max(axis=0)) < radius
    picture = inside[..., np.newaxis] * generator.integers(120, 256, 3)
    (folder / kind).mkdir(exist_ok=True)
    Image.fromarray(picture.astype(np.uint8)).save(folder / kind / f'{i}.png')
  return folder


@pytest.mark.long
@pytest.mark.parametrize(('program', 'method', 'objective'), _ROWS)
def test_spread_stays_above_a_tenth_of_its_first_value(
  shapes, tmp_path, program, method, objective
):
  own = (f'--objective={objective}', *([f'--method={method}'] if method else []))
  binary, data = importlib.import_module(f'binaries.{program}'), f'--data_dir={shapes}'
  folder = tmp_path / 'run'
  ended = in_process.run(binary, *_FLAGS, *own, data, f'--run_dir={folder}')
  assert ended.status == 0, ended.stderr
  (*_, name) = (n for n in launch.table(folder)[0] if n.endswith('/encoding_std'))
  spread = [float(row[name]) for row in launch.table(folder)]
  assert len(spread) == 20
  assert min(spread) > spread[0] / 10, spread
