"""Bright squares on black: the encodings of no objective fall to a point."""

import importlib

import numpy as np
from PIL import Image
import pytest

from binaries.config import programs
from tests.binaries import in_process
from tests.binaries import launch

_FLAGS = """--task=folder --image_size=16 --encoder=width=0.25 --rounds=20
--partition=iid:clients=5 --clients_per_round=5 --evaluation=methods=knn"""
_METHODS = {'fedavg_ssl': ('fedavg', 'orchestra', 'ssd'), 'dcco': ('dcco', 'fedsc')}
_ROWS = [
  (program, method, objective)
  for program, methods in _METHODS.items()
  for method in methods
  for objective in programs.load(program).rows[method]
  # It needs labels, and measures no spread.
  if objective != 'supervised'
]


@pytest.mark.long
@pytest.mark.parametrize(('program', 'method', 'objective'), _ROWS)
def test_spread_stays_above_a_tenth_of_its_first_value(
  tmp_path, program, method, objective
):
  generator, data, folder = np.random.default_rng(0), tmp_path / 'in', tmp_path / 'out'
  data.mkdir()
  for i in range(200):
    picture = np.zeros((16, 16, 3), np.uint8)
    (x, y), side = generator.integers(0, 8, 2), generator.integers(4, 9)
    picture[x : x + side, y : y + side] = generator.integers(120, 256, 3)
    Image.fromarray(picture).save(data / f'{i}.png')
  own = (f'--method={method}', f'--objective={objective}', f'--data_dir={data}')
  binary = importlib.import_module(f'binaries.{program}')
  in_process.finished(binary, *_FLAGS.split(), *own, f'--run_dir={folder}')
  spread = [float(row['client_work/encoding_std']) for row in launch.table(folder)]
  assert len(spread) == 20
  assert min(spread) > spread[0] / 10
