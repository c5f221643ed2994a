import csv

import numpy as np
from PIL import Image
import pytest

from binaries import predict
from tasks import digits
from tests.binaries import in_process
from tests.binaries import take_away
from tff_ssl.encoders import parameter_names
from tff_ssl.encoders import registry
from tff_ssl.evaluation import linear_probe

# Decoded pictures.
pytestmark = pytest.mark.usefixtures('users_cache')


@pytest.fixture(scope='module')
def run(tmp_path_factory):
  folder = tmp_path_factory.mktemp('predict') / 'run'
  return folder, take_away.make(folder, '--objective=simclr:projector=8/8')


@pytest.fixture
def photos(tmp_path):
  """Three test images of digits in a folder, and a fourth as a file beside it."""
  folder = tmp_path / 'photos'
  folder.mkdir()
  (folder / 'damaged.png').write_bytes(b'nothing')
  images = digits.load().test.image[:4]
  for k, image in enumerate(images):
    path = folder / f'{k}.png' if k < 3 else tmp_path / '3.PNG'
    Image.fromarray(image[..., 0]).save(path, format='png')
  return f'{folder},{tmp_path / "3.PNG"}', images


def test_classes_are_those_of_a_classifier_on_all_training_labels(
  run, photos, tmp_path, capsys
):
  (folder, params), (paths, images) = run, photos
  out = tmp_path / 'found.csv'
  in_process.call(
    predict, f'--run={folder}', f'--images={paths}', f'--out={out}', '--nearest=2'
  )
  shown = capsys.readouterr().out
  assert 'images that cannot be read: damaged.png' in shown
  encoder = registry.build_encoder('conv2', (8, 8, 1), 0.125)
  own = parameter_names.select(params, 'encoder')
  task = digits.load()
  known, asked = (
    encoder.infer(own, each / np.float32(255)).numpy()
    for each in (task.train.image, images)
  )
  fitted = linear_probe.fit_logistic(known, task.train.label, 10)
  expected = fitted.probabilities(asked)
  norms = [np.linalg.norm(each, axis=1) for each in (asked, known)]
  nearest = np.argsort(-(asked @ known.T) / np.outer(*norms), axis=1)[:, :2]
  with out.open(newline='') as file:
    rows = list(csv.DictReader(file))
  assert [row['image'] for row in rows] == ['0.png', '1.png', '2.png', '3.PNG']
  for row, probabilities, similar in zip(rows, expected, nearest, strict=True):
    found = [float(row[f'probability of {name}']) for name in task.label_names]
    np.testing.assert_allclose(found, probabilities, atol=1e-4)
    assert row['class'] == task.label_names[np.argmax(probabilities)]
    named = [
      f'row {task.train.example_id[k] + 1} ({task.label_names[task.train.label[k]]})'
      for k in similar
    ]
    assert row['nearest'] == '; '.join(named)
    likely, second = np.argsort(-probabilities)[:2]
    assert (
      f'{row["image"]}: {task.label_names[likely]} {probabilities[likely]:.1%}, '
      f'{task.label_names[second]} {probabilities[second]:.1%}; '
      f'nearest: {named[0]}, {named[1]}\n'
    ) in shown
  assert f'Predicted: {out}\n' in shown


@pytest.mark.long
def test_a_fine_tuned_encoder_predicts_better_than_an_untrained_one(
  run, photos, tmp_path, capsys
):
  (folder, _), (paths, _) = run, photos
  flags = [f'--run={folder}', f'--images={paths}', '--nearest=0']
  in_process.call(predict, *flags)
  in_process.call(predict, *flags, '--finetuned', '--evaluation=finetune_steps=100')
  shown = capsys.readouterr().out.splitlines()
  linear, tuned = (
    float(line.partition('labels, ')[2].partition('%')[0])
    for line in shown
    if 'classified correctly' in line
  )
  assert tuned > linear
  assert 'nearest' not in ''.join(shown)


@pytest.mark.parametrize(
  ('flags', 'said'),
  [
    (('--images=nowhere',), 'There is no folder or .tar file at nowhere'),
    (('--images=.', '--out=a.txt'), "--out is 'a.txt'; it must end in .csv"),
  ],
)
def test_wrong_options_are_refused_in_one_sentence(run, flags, said):
  with pytest.raises(ValueError, match=r'\.$') as refused:
    in_process.call(predict, f'--run={run[0]}', *flags)
  assert said in str(refused.value)
  assert '\n' not in str(refused.value)
