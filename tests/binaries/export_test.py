import hashlib
import json
import re

import numpy as np
from PIL import Image
import pytest
import tensorflow as tf

from binaries import export
from binaries.experiment import export_run
from tasks import pictures
from tasks import registry
from tests.binaries import in_process
from tests.binaries import take_away
from tff_ssl.encoders import parameter_names
from tff_ssl.encoders import registry as encoder_registry
from tff_ssl.evaluation import feature_sets
from tff_ssl.evaluation import fine_tuning
from tff_ssl.export import exports
from tff_ssl.export import squares
from tff_ssl.runs.privacy import disclosure

_FLAGS = (
  '--objective=simclr:temperature=0.25,projector=8/8',
  '--clients=sgd:momentum=0.5',
)


@pytest.fixture(scope='module')
def run(tmp_path_factory):
  folder = tmp_path_factory.mktemp('export') / 'run'
  return folder, take_away.make(folder, *_FLAGS)


def test_exported_model_equals_the_run_s(run, tmp_path, capsys):
  folder, _ = run
  out = tmp_path / 'out'
  in_process.call(
    export,
    f'--run={folder}',
    f'--out={out}',
    '--formats=keras,torch',
    '--classifier',
  )
  shown = capsys.readouterr().out
  assert 'model.keras: within ' in shown
  assert (
    'of the run on 64 test images and 16 dim ones, and 8 pictures of other ' in shown
  )
  assert 'torch_model: not compared with the run, because PyTorch is not' in shown
  task = registry.load('digits')
  found = exports.load('keras', out / 'model.keras')(task.test.image)
  names = json.loads((out / 'labels.json').read_text())
  right = np.mean(np.argmax(found['probabilities'], axis=1) == task.test.label)
  assert names == list(task.label_names)
  assert f'{right:.1%} of the test examples classified correctly' in shown
  # An untrained encoder of eight features: far from chance, and from good.
  assert right > 0.3
  assert f'right for {right:.1%} of {len(task.test)} test examples (95 %' in shown
  card = (out / 'encoder.md').read_text()
  assert f'is right for {right:.1%} of {len(task.test)} test examples' in card
  assert 'No file here recognises a training picture.' in card
  assert not (out / 'trained_on.json').exists()
  assert r'`inputs`, uint8 [n, height, width, 1], resize them to 8 x 8 pixels' in card
  for name in (
    'model.keras',
    'square.py',
    'torch_model/model.py',
    'torch_model/model.safetensors',
    'labels.json',
    'classify.py',
    'model.json',
  ):
    digest = hashlib.sha256((out / name).read_bytes()).hexdigest()
    assert f'{digest}  {name}\n' in card
  digest = hashlib.sha256((folder / 'encoder.keras').read_bytes()).hexdigest()
  assert f'- Made from encoder.keras of the run, SHA-256 {digest}\n' in card
  assert card.startswith(
    f'# A classifier: {", ".join(names)}\n\n'
    'Takes files of pictures of any size (its central square becomes 8 x 8 pixels); '
  )
  by_labels = f'by {len(task.train):,} labelled training examples of digits. The '
  assert f'fitted on the features of an encoder, {by_labels}' in card
  assert '\n## Command\n\nNot on this card: ' in card


def test_a_run_on_a_part_of_the_data_is_tested_on_that_part(tmp_path, capsys):
  run = tmp_path / 'run'
  take_away.make(run, *_FLAGS, '--data=examples=200,test_examples=60')
  own = json.loads((run / 'config.json').read_text())['config']['data']
  assert (own['examples'], own['test_examples']) == (200, 60)
  capsys.readouterr()
  out = f'--out={tmp_path / "out"}'
  in_process.call(export, f'--run={run}', out, '--formats=tflite', '--classifier')
  shown = capsys.readouterr().out
  assert '\n  200 of 1,438 train examples\n  60 of 359 test examples\n' in shown
  assert 'of 60 test examples (95 %' in shown
  assert not (tmp_path / 'out' / 'classify.py').exists()


def test_the_file_of_a_grey_classifier_reads_pictures_as_the_run_does(
  run, tmp_path, monkeypatch
):
  out = tmp_path / 'out'
  in_process.call(
    export, f'--run={run[0]}', f'--out={out}', '--formats=keras', '--classifier'
  )
  generator = np.random.default_rng(0)
  # Wide, tall, and so large that a JPEG is decoded at a fraction of its size.
  sizes = {'wide.png': (9, 30), 'tall.png': (40, 17), 'large.jpg': (200, 120)}
  for name, size in sizes.items():
    pixels = generator.integers(0, 256, (*size, 3)).astype(np.uint8)
    Image.fromarray(pixels).save(tmp_path / name)
  monkeypatch.syspath_prepend(out)
  code = squares.load_code(out / 'classify.py')
  model = exports.load('keras', out / 'model.keras')
  for name in sizes:
    read = pictures.load(tmp_path / name, (8, 8, 1)).images
    np.testing.assert_array_equal(code.picture(tmp_path / name), read)
    expected = model(read)['probabilities'][0]
    found = list(code.classes(tmp_path / name).values())
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_a_fine_tuned_encoder_and_its_head_are_exported_as_they_were_trained(
  run, tmp_path, capsys
):
  folder, params = run
  out = tmp_path / 'out'
  in_process.call(
    export,
    f'--run={folder}',
    f'--out={out}',
    '--formats=keras,tflite',
    '--finetuned',
    '--evaluation=finetune_steps=40,finetune_rate=0.01',
  )
  shown = capsys.readouterr().out
  task = registry.load('digits')
  # Trained again, from the parameters of the checkpoint.
  encoder = encoder_registry.build_encoder('conv2', task.image_shape, 0.125)
  config = fine_tuning.FinetuneConfig(learning_rate=0.01, num_steps=40)
  tuned = fine_tuning.FineTuning(encoder.apply, task.num_classes, config)(
    parameter_names.select(params, 'encoder'),
    task.train.image,
    task.train.label,
    task.test.image,
    seed=0,
  )
  right = np.mean(tuned.predictions == task.test.label)
  said = re.search('([0-9.]+)% of the test examples classified correctly', shown)
  # Two graphs of the same training may round one case to the other side.
  assert float(said[1]) == pytest.approx(100 * right, abs=100 / len(task.test) + 0.05)
  # Of eight features; chance is 0.1.
  assert right > 0.3
  logits = (
    feature_sets.build_encode(encoder.apply)(tuned.params, task.test.image)
    @ tuned.head['kernel'].numpy()
  ) + tuned.head['bias'].numpy()
  expected = np.exp(logits) / np.sum(np.exp(logits), axis=1, keepdims=True)
  for name, file in (('keras', 'model.keras'), ('tflite', 'model.tflite')):
    found = exports.load(name, out / file)(task.test.image)
    # 3.4e-4 was seen on a processor without AVX-512, with a file within 6e-7.
    np.testing.assert_allclose(found['probabilities'], expected, atol=1e-3)
  # The run's own encoder gives other features.
  own = tf.keras.models.load_model(folder / 'encoder.keras')
  before = feature_sets.encode(own, task.test.image)
  assert np.max(np.abs(found['features'] - before)) > 0.1
  card = (out / 'encoder.md').read_text()
  assert 'features and probabilities: fine-tuned' in card
  assert '\nAn encoder and a linear classifier were trained end to end, by ' in card


def test_without_a_folder_the_run_s_has_the_export(run, monkeypatch):
  folder, _ = run
  made = []
  monkeypatch.setattr(export_run, 'export', lambda *given, **_: made.append(given[:2]))
  in_process.call(export, f'--run={folder}')
  assert made == [(folder, folder / 'export')]
  assert disclosure.of_file('export/model.keras').kind is disclosure.Kind.KEPT


@pytest.mark.parametrize(
  ('left', 'arguments'),
  [
    ('model.onnx', ['--formats=keras']),
    ('savedmodel', ['--formats=keras', '--classifier']),
    ('square.py', ['--formats=tflite']),
    ('labels.json', ['--formats=keras']),
    ('trained_on.json', ['--formats=keras', '--classifier']),
  ],
)
def test_files_of_an_earlier_export_get_no_new_card(run, tmp_path, left, arguments):
  for name in (left, 'encoder.md'):
    (tmp_path / name).write_text('an earlier one')
  before = sorted(tmp_path.iterdir())
  with pytest.raises(
    ValueError, match=f'has {left} of an earlier export, .*must be a new folder'
  ):
    in_process.call(export, f'--run={run[0]}', f'--out={tmp_path}', *arguments)
  assert sorted(tmp_path.iterdir()) == before
  assert (tmp_path / 'encoder.md').read_text() == 'an earlier one'


def test_a_wrong_scale_is_seen(tmp_path, monkeypatch):
  # Behind one group of all channels, before training, no scale matters.
  folder = tmp_path / 'run'
  take_away.make(folder, *_FLAGS, '--encoder=conv2:width=0.125,groups=8')
  build = exports.with_preprocessing

  def off(encoder, *rest):
    inputs = tf.keras.Input(encoder.input_shape[1:])
    x = tf.keras.layers.Rescaling(255 / 256)(inputs)
    return build(tf.keras.Model(inputs, encoder.call(x), name='off'), *rest)

  monkeypatch.setattr(exports, 'with_preprocessing', off)
  (tmp_path / 'out').mkdir()
  for name in ('model.keras', 'encoder.md'):
    (tmp_path / 'out' / name).write_text('of an earlier export')
  with pytest.raises(
    ValueError, match=r'model\.keras: within .* does not reproduce the run'
  ):
    in_process.call(
      export, f'--run={folder}', f'--out={tmp_path / "out"}', '--formats=keras'
    )
  # It would speak for the file that was written.
  assert not (tmp_path / 'out' / 'encoder.md').exists()


def test_no_format_is_the_formats_by_default(run, tmp_path, monkeypatch):
  wanted = []

  def check(names):
    wanted.append(names)
    raise ValueError('enough')

  monkeypatch.setattr(exports, 'check', check)
  for given in (['--formats='], []):
    with pytest.raises(ValueError, match='enough'):
      in_process.call(export, f'--run={run[0]}', f'--out={tmp_path / "out"}', *given)
  assert wanted == [('keras', 'savedmodel', 'tflite')] * 2


def test_bad_flags_are_one_sentence(run, tmp_path, monkeypatch):
  folder, out = run[0], f'--out={tmp_path / "out"}'
  monkeypatch.setattr(exports.importlib.util, 'find_spec', lambda _: None)
  expected = {
    f'--run={folder} --give_away': '--give_away is given without --out',
    f'--run={folder} --out={folder}': 'it must be a folder, not that of a run',
    f'--run={folder} {out} --formats=keras,onnx': 'pip install --no-deps tf2onnx==',
    f'--run={folder} {out} --classifier --evaluation=finetune_steps=7': (
      '--evaluation=finetune_steps=7 is given without --finetuned'
    ),
    f'--run={folder} {out} --finetuned --evaluation=methods=lars': (
      '--evaluation has methods; here it must be one of finetune_steps'
    ),
    f'--run={folder} {out} --finetuned --classifier': 'are both given; an export has',
    f'--run={folder} {out} --digests': '--digests is given without --classifier',
    f'--run={folder} {out} --classifier --positive=3': (
      '--positive is 3 and --sensitivity is None; either both must be given'
    ),
    f'--run={folder} {out} --classifier --positive=3 --sensitivity=0.9': (
      '--sensitivity is 0.9 with 10 classes; it must be of one of two'
    ),
    f'--run={folder} {out} --classifier --digests --formats=keras': (
      "--digests is given with the task 'digits'; it must be one of files of pictures"
    ),
  }
  said = in_process.said(export, expected)
  for line, part in expected.items():
    assert part in said[line], (line, said[line])
  assert not (tmp_path / 'out').exists()
