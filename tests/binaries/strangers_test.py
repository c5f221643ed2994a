"""Folders of strangers that a program refuses in one sentence, before it writes.

What one reader refuses is tested beside it: these rows need a program. The form of
names in outputs is tested in tests/reporting/strangers_test.py.
"""

import importlib
import json

import numpy as np
from PIL import Image
import pytest

from binaries.config import programs
from binaries.config import run_config
from tests.binaries import in_process

_LINKS = (
  ('evaluate', '--run={d}/run', 'checkpoints/round_00000001.npz'),
  ('evaluate', '--run={d}/run', 'encoder.keras'),
  ('export', '--run={d}/run --out={d}/o', 'evaluation.json'),
  ('embed', '--run={d}/run --images={d}/run --out={d}/o', 'lock'),
  ('compare', '--runs={d}/run --out={d}/o', 'client_states.sqlite'),
  ('compare', '--runs={d}/run --out={d}/o', 'privacy_ledger.jsonl'),
  ('dcco', '--task=digits --run_dir={d}/run', 'clients.csv'),
)
_UNLABELLED = (
  'image,case_id,label,split\n0.png,a,x,train\n1.png,b,,test\n2.png,c,y,train\n'
)


def _refused(program, line, folder):
  """Returns the one sentence in which a program refuses."""
  module = importlib.import_module(f'binaries.{program}')
  ended = in_process.run(module, *line.replace('{d}', str(folder)).split())
  assert ended.status == 1
  assert ended.stderr.count('\n') == 1, ended.stderr
  return ended.stderr


@pytest.mark.parametrize(('program', 'line', 'name'), _LINKS)
def test_a_link_out_of_a_run_folder_is_not_followed(tmp_path, program, line, name):
  own = run_config.to_json(programs.load('dcco').row(None, None))
  run = tmp_path / 'run'
  (run / name).parent.mkdir(parents=True)
  (run / 'config.json').write_text(json.dumps({'config': own}))
  (run / 'metrics.csv').write_text('round,loss\n1,2\n')
  (tmp_path / 'victim').write_text('x')
  (run / name).symlink_to(tmp_path / 'victim')

  said = _refused(program, line, tmp_path)

  assert f'{tmp_path}/victim: links must not lead out of' in said
  assert (tmp_path / 'victim').read_text() == 'x'
  assert not (tmp_path / 'o').exists()


def test_a_sweep_writes_into_no_link(tmp_path):
  (tmp_path / 'simclr').symlink_to('/etc')
  assert 'is a link' in _refused('sweep', '--methods=simclr --out={d}', tmp_path)


def test_a_test_split_without_labels_is_refused(tmp_path):
  for k in range(3):
    pixels = np.random.default_rng(k).integers(0, 256, (9, 9, 3)).astype(np.uint8)
    Image.fromarray(pixels).save(tmp_path / f'{k}.png')
  (tmp_path / 'manifest.csv').write_text(_UNLABELLED)

  said = _refused('dcco', '--task=cases --data_dir={d} --run_dir={d}/run', tmp_path)

  assert "The task 'cases' has no test labels, though others" in said
  assert not (tmp_path / 'run').exists()
