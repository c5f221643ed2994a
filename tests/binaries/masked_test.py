"""Segmentation and detection of made lesions by `binaries.evaluate`."""

import json
import shutil

import numpy as np
from PIL import Image
import pytest

from binaries import evaluate
from tests.binaries import in_process
from tests.binaries import take_away
from tests.evaluation import lesions
from tests.worlds import data_sets

_TASK = ('--task=ham10000', '--image_size=16', '--encoder=conv2:width=0.25')
_METHODS = '--evaluation=methods=segmentation/detection'


@pytest.fixture(scope='module')
def made(tmp_path_factory):
  """A run's folder on photographs of made lesions, their folder, and that of masks."""
  base = tmp_path_factory.mktemp('made')
  images, masks = lesions.make(40)
  (base / 'masks').mkdir()
  rows = []
  for k, (image, mask) in enumerate(zip(images, masks, strict=True)):
    (base / 'data').mkdir(exist_ok=True)
    Image.fromarray(image).save(base / 'data' / f'ISIC_{k:07d}.jpg', quality=95)
    place = base / 'masks' / f'ISIC_{k:07d}_segmentation.png'
    Image.fromarray(mask.astype(np.uint8) * 255).save(place)
    rows.append(f'HAM_{k // 2},ISIC_{k:07d},{("nv", "mel")[k // 2 % 2]}')
  header = 'lesion_id,image_id,dx'
  data_sets.write_csv(base / 'data' / 'HAM10000_metadata.csv', header, rows)
  take_away.make(
    base / 'run',
    *_TASK,
    '--encoder=norm=group',
    '--objective=simclr:projector=8/8',
    f'--data_dir={base / "data"}',
  )
  return base


@pytest.fixture
def run(made, tmp_path):
  """A copy of the run, to be written to."""
  return shutil.copytree(made / 'run', tmp_path / 'run')


def _evaluate(made, run, *flags):
  in_process.call(evaluate, f'--run={run}', f'--data_dir={made / "data"}', *flags)


@pytest.mark.long
def test_masks_and_boxes_with_baselines(made, run, capsys):
  before = json.loads((run / 'evaluation.json').read_text())
  _evaluate(
    made,
    run,
    _METHODS,
    f'--masks=dir={made / "masks"},steps=40',
    '--evaluation=label_fractions=1,baselines=true,supervised_steps=1',
  )
  shown = capsys.readouterr().out
  assert 'masks: train 32 of 32 images, test 8 of 8 images\n' in shown
  assert 'knn' not in shown
  numbers = json.loads((run / 'evaluation.json').read_text())
  assert before.items() <= numbers.items()
  assert numbers['masks/100%'] == 32
  rows = [line.split('  ') for line in shown.splitlines()[-8:]]
  own, scratch = 'fedavg simclr', 'supervised from scratch'
  names = ('random encoder', own, scratch, 'one for all images')
  for number, row in enumerate(rows):
    method = ('segmentation', 'detection')[number // 4]
    assert [cell.strip() for cell in row if cell][:3] == [
      method,
      '100% (32)',
      names[number % 4],
    ]
  for method in ('segmentation', 'detection'):
    for way in ('frozen', 'finetuned', 'without_image'):
      assert 0 <= numbers[f'{method}/100%/{way}/iou'] < 1
      assert 0 <= numbers[f'{method}/100%/{way}/found'] <= 1
  # One step from scratch is less than forty from what the run has left.
  scratch = numbers['supervised_from_scratch/detection/100%/finetuned/iou']
  assert 0 < scratch < numbers['detection/100%/finetuned/iou']
  cell = f'{100 * numbers["detection/100%/frozen/iou"]:.1f}%'
  assert rows[5][-1].strip() != cell
  assert cell in [part.strip() for part in rows[5]]


# Which masks are none: masks_test of tasks.
def test_wrong_flags(made, run):
  masks = f'--masks=dir={made / "masks"}'
  for flags, sentence in (
    ((masks, '--evaluation=methods=knn'), '--masks is given, but'),
    (('--masks=steps=3',), '--masks is given, but'),
    ((_METHODS, masks, '--fairness'), '--fairness is given, but'),
    ((_METHODS,), "data holds no mask of an image of 'ham10000'"),
  ):
    with pytest.raises(ValueError, match=sentence):
      _evaluate(made, run, *flags)
