import json
import shutil
import subprocess
import sys

import numpy as np
from PIL import Image
import pytest

from binaries import export
from binaries import predict
from tasks import digits
from tasks import image_folders
from tasks import splits
from tests.binaries import in_process
from tests.binaries import launch
from tests.binaries import take_away
from tff_ssl.encoders import parameter_names
from tff_ssl.encoders import registry
from tff_ssl.evaluation import linear_probe

# Decoded pictures.
pytestmark = pytest.mark.usefixtures('users_cache')


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
  taken, photos, tmp_path, capsys
):
  (folder, params), (paths, images) = taken, photos
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
  rows = launch.table(out.parent, out.name)
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
  taken, photos, tmp_path, capsys
):
  (folder, _), (paths, _) = taken, photos
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


@pytest.fixture(scope='module')
def handed(tmp_path_factory):
  """Returns pictures of two classes, a run on them, and its classifier elsewhere."""
  top = tmp_path_factory.mktemp('handed')
  known = digits.load().train
  for k in np.flatnonzero(np.isin(known.label, (3, 8)))[:120]:
    path = top / 'pictures' / f'{"three" if known.label[k] == 3 else "eight"}/p{k}.png'
    path.parent.mkdir(parents=True, exist_ok=True)
    # Wide, so that squares are made of them.
    Image.fromarray(known.image[k, ..., 0]).resize((20, 16)).save(path)
  of_data = f'--data_dir={top / "pictures"}'
  flags = ('--task=folder', of_data, '--data=folders=class', '--image_size=8')
  take_away.make(top / 'run', *flags, '--objective=simclr:projector=8/8')
  in_process.call(
    export,
    f'--run={top / "run"}',
    f'--out={top / "out"}',
    of_data,
    '--formats=keras',
    '--classifier',
    '--positive=eight',
    '--sensitivity=0.8',
    '--digests',
  )
  shutil.move(top / 'out', top / 'elsewhere')
  return top


def _table(path):
  return {row['image']: row for row in launch.table(path.parent, path.name)}


def _probabilities(rows):
  names = ('probability of eight', 'probability of three')
  return {image: [float(row[name]) for name in names] for image, row in rows.items()}


def test_a_classifier_alone_its_file_and_the_run_give_the_same(handed, tmp_path):
  pictures = f'--images={handed / "pictures"}'
  run, alone = tmp_path / 'run.csv', tmp_path / 'alone.csv'
  in_process.call(
    predict,
    f'--run={handed / "run"}',
    f'--data_dir={handed / "pictures"}',
    pictures,
    f'--out={run}',
  )
  in_process.call(
    predict, f'--model={handed / "elsewhere"}', pictures, f'--out={alone}'
  )
  shown = sorted((handed / 'pictures').rglob('*.png'))[::10]
  # A bare process, in which nothing of this project can be imported.
  said = subprocess.run(
    [sys.executable, handed / 'elsewhere' / 'classify.py', *shown],
    cwd=tmp_path,
    env={'TF_CPP_MIN_LOG_LEVEL': '3'},
    capture_output=True,
    text=True,
    check=True,
    timeout=300,
  ).stdout
  rows = _table(alone)
  of_file = {}
  for line, path in zip(said.splitlines(), shown, strict=True):
    name, found = line.removeprefix(f'{path}: ').split(' ', 1)
    image = str(path.relative_to(handed / 'pictures'))
    assert name == rows[image]['class']
    of_file[image] = [json.loads(found)[each] for each in ('eight', 'three')]
  of_run, expected = _probabilities(_table(run)), _probabilities(rows)
  assert of_run.keys() == expected.keys()
  assert np.std([each[0] for each in expected.values()]) > 0.05
  for image, own in expected.items():
    np.testing.assert_allclose(of_run[image], own, atol=1e-5)
    np.testing.assert_allclose(of_file.get(image, own), own, atol=1e-5)


def test_only_training_pictures_are_said_to_be_trained_on(handed, tmp_path, capsys):
  task = image_folders.load(handed / 'pictures', 8, folders='class')
  copies = tmp_path / 'copies'
  copies.mkdir()
  expected = {}
  for split, said in (('train', 'yes'), ('test', 'no')):
    for k, name in enumerate(task.names(task.splits()[split])[:5]):
      # Under another name.
      shutil.copy(handed / 'pictures' / name, copies / f'{split}{k}.png')
      expected[f'{split}{k}.png'] = said
  out = tmp_path / 'out.csv'
  flags = (f'--images={copies}', f'--out={out}')
  in_process.call(predict, f'--model={handed / "elsewhere"}', *flags)
  rows = _table(out)
  assert {image: row['trained on'] for image, row in rows.items()} == expected
  shown = capsys.readouterr().out
  assert shown.count('; it was trained on this picture\n') == 5
  without = shutil.copytree(handed / 'elsewhere', tmp_path / 'without')
  (without / 'trained_on.json').unlink()
  in_process.call(predict, f'--model={without}', *flags)
  assert {row['trained on'] for row in _table(out).values()} == {''}
  assert 'not known: whether it was trained on' in capsys.readouterr().out


def test_recall_is_stated_of_cases_that_the_threshold_was_not_chosen_on(
  handed, tmp_path
):
  out = tmp_path / 'out.csv'
  in_process.call(
    predict,
    f'--model={handed / "elsewhere"}',
    f'--images={handed / "pictures"}',
    f'--out={out}',
  )
  own = _probabilities(_table(out))
  task = image_folders.load(handed / 'pictures', 8, folders='class')
  test = task.test
  eight = np.array([own[name][0] for name in task.names(test)])
  held = splits.hold_out_cases(test.case, test.label, 0.5, 0)
  is_eight = test.label == task.label_names.index('eight')
  card = json.loads((handed / 'elsewhere' / 'model.json').read_text())
  limit = card['threshold']['probability']
  # Of the one half, it is the highest that finds four of five.
  chosen = np.sort(eight[held & is_eight])
  assert np.mean(chosen >= limit) >= 0.8
  assert np.mean(chosen > np.min(chosen[chosen >= limit])) < 0.8
  assert card['threshold']['chosen_on'] == np.sum(held)
  # What is stated is of the other.
  recall = card['tested']['recall']
  stated = {'eight': ~held & is_eight, 'three': ~held & ~is_eight}
  for name, rows in stated.items():
    right = (eight[rows] >= limit) == (name == 'eight')
    assert recall[name][0] == pytest.approx(np.mean(right))
    assert recall[name][3] == len(right)
  text = (handed / 'elsewhere' / 'encoder.md').read_text()
  assert f'| eight | {recall["eight"][0]:.1%} |' in text
  few = f'{np.sum(held & is_eight)} of this class, too few to know it'
  assert f'on {np.sum(held)} other examples, {few}: no number above is of these' in text


@pytest.mark.parametrize(
  ('flags', 'said'),
  [
    ('--images=x --run=r --model=m', 'one of them must be given, and the other left'),
    ('--images=x', '--run is None and --model is None; one of them must be given'),
    *(
      (
        f'--images=x --model=m --{flag}',
        f'--{flag.split("=")[0]} is given with --model',
      )
      for flag in (
        'nearest=2',
        'finetuned',
        'data_dir=d',
        'evaluation=finetune_steps=7',
      )
    ),
    ('--images=x --model=.', 'has no model.json; it must be a folder that'),
    ('--images=nowhere --run={run}', 'There is no folder or .tar file at nowhere'),
    ('--images=. --run={run} --out=a.txt', "--out is 'a.txt'; it must end in .csv"),
  ],
)
def test_flags_that_do_not_fit_are_refused_in_one_sentence(taken, flags, said):
  line = flags.format(run=taken[0])
  refused = in_process.said(predict, [line])[line]
  assert said in refused
  assert refused.endswith('.') and '\n' not in refused
