"""A classifier in a folder, as somebody reads it who does not trust it."""

import json
import shutil

import numpy as np
import pytest

from tests.export import encoder_file_test
from tests.export import encoder_files
from tff_ssl.encoders import registry
from tff_ssl.evaluation import linear_probe
from tff_ssl.evaluation import recalls
from tff_ssl.export import classifier_folder
from tff_ssl.export import encoder_file
from tff_ssl.export import exports
from tff_ssl.runs import class_names

_SHAPE = (8, 8, 1)
_TESTED = recalls.Tested(9, (0.8, 0.5, 0.9, 20.0), {'a': (0.8, 0.5, 0.9, 20.0)})
_DIGESTS = ('d1', 'd2')


@pytest.fixture(scope='module')
def written(tmp_path_factory):
  """Returns a folder, its images, and the probabilities that its model must give."""
  folder = tmp_path_factory.mktemp('written')
  network = registry.build_encoder('conv2', _SHAPE, 0.125, normalization='batch')
  params = {**network.init([0, 1]), **network.init_statistics()}
  images = np.random.default_rng(0).integers(0, 256, (9, *_SHAPE)).astype(np.uint8)
  features = network.infer(params, images / np.float32(255)).numpy()
  fitted = linear_probe.fit_logistic(features, np.arange(9) % 2, 2)
  model = exports.with_preprocessing(network.to_keras(params), None, fitted)
  exports.write(model, exports.KERAS, folder, network, 'crop')
  class_names.write(folder, ('a', 'b'))
  classifier_folder.write(
    folder,
    {encoder_file.NETWORK: registry.describe(network)},
    _SHAPE,
    _TESTED,
    recalls.Threshold('b', 0.9, 0.25, 7, 3),
    _DIGESTS,
  )
  return folder, images, fitted.probabilities(features)


@pytest.fixture
def folder(written, tmp_path):
  return shutil.copytree(written[0], tmp_path / 'handed')


def _edit(folder, change):
  path = folder / classifier_folder.CARD
  card = json.loads(path.read_text())
  change(card)
  path.write_text(json.dumps(card))


def _renew(folder, name=classifier_folder.MODEL):
  """Makes the card's digest that of a file, as who forges a folder would."""
  digest = classifier_folder.files.sha256(folder / name)
  _edit(folder, lambda card: card['files'].update({name: digest}))


def test_what_was_written_is_read(written):
  folder, images, probabilities = written
  found = classifier_folder.read(folder)
  np.testing.assert_allclose(
    found.model(images)[exports.PROBABILITIES], probabilities, atol=1e-6
  )
  assert found.label_names == ('a', 'b')
  assert found.tested.shares()['a'] == recalls.Share(0.8, 0.5, 0.9, 20.0)
  assert found.threshold == recalls.Threshold('b', 0.9, 0.25, 7, 3)


def test_a_training_picture_is_recognised_by_its_file_and_only_with_marks(folder):
  found = classifier_folder.read(folder)
  assert [found.was_trained_on(each) for each in ('d1', 'd2', 'd3')] == [1, 1, 0]
  # No digest is in the folder, by which marks of two folders could be compared.
  text = (folder / classifier_folder.TRAINED_ON).read_text()
  assert not any(f'"{digest}"' in text for digest in _DIGESTS)
  (folder / classifier_folder.TRAINED_ON).unlink()
  assert classifier_folder.read(folder).was_trained_on('d1') is None


def test_marks_of_two_folders_have_nothing_in_common(folder):
  marks = []
  for _ in range(2):
    classifier_folder.write(folder, {}, _SHAPE, _TESTED, None, _DIGESTS)
    held = json.loads((folder / classifier_folder.TRAINED_ON).read_text())
    marks.append({*held['pictures']})
  assert len(marks[0]) == len(marks[1]) == len(_DIGESTS)
  assert not marks[0] & marks[1]


@pytest.mark.parametrize('kind', ['hdf5', 'archive', 'layer_in_archive'])
def test_a_program_is_refused_and_not_run(folder, tmp_path, kind):
  ran = tmp_path / 'ran'
  encoder_files.PROGRAMS[kind](folder / classifier_folder.MODEL, ran)
  _renew(folder)
  with pytest.raises(ValueError, match=r'model\.keras'):
    classifier_folder.read(folder)
  assert not ran.exists()


def test_code_in_the_folder_is_not_executed(folder, tmp_path):
  for path in folder.glob('*.py'):
    path.write_text(f'import pathlib\npathlib.Path({str(tmp_path)!r}, "ran").touch()')
  classifier_folder.read(folder)
  assert not (tmp_path / 'ran').exists()


def _without(name):
  return lambda folder: (folder / name).unlink()


def _flip(name):
  def change(folder):
    content = bytearray((folder / name).read_bytes())
    content[len(content) // 2] ^= 1
    (folder / name).write_bytes(content)

  return change


def _labels(names):
  def change(folder):
    (folder / classifier_folder.LABELS).write_text(json.dumps(names))
    _renew(folder, classifier_folder.LABELS)

  return change


def _unfitted(folder):
  """Puts an encoder without a classifier in the place of the model."""
  model = encoder_file_test.small()
  exports.write(
    exports.with_preprocessing(encoder_file.untrained(model)), exports.KERAS, folder
  )
  _renew(folder)


@pytest.mark.parametrize(
  ('change', 'said'),
  [
    (_without('model.json'), r'has no model\.json; it must be a folder that'),
    (_without('model.keras'), r'model\.keras is missing; the classifier needs it'),
    (_without('labels.json'), r'labels\.json is missing'),
    *(
      (_flip(name), rf'{name} is damaged, or of another export')
      for name in ('model.keras', 'labels.json', 'trained_on.json')
    ),
    (_labels(['a', 'b', 'c']), "a threshold for 'b'; it must be one of two classes"),
    (_labels(['a', 3]), r'labels\.json is no list; it must be one of names'),
    (_unfitted, r"model\.keras has no classifier in it: 'standardise_center'"),
    (
      lambda folder: _edit(folder, lambda card: card.pop('tested')),
      "describes no classifier: it lacks 'tested'",
    ),
    (
      lambda folder: _edit(folder, lambda card: card['tested'].update(cases='x')),
      "model.json has cases='x'; it must be a whole number",
    ),
    (
      lambda folder: (folder / 'link').symlink_to('/etc/passwd'),
      'links must not lead out',
    ),
  ],
)
def test_a_folder_that_is_damaged_or_no_classifier_is_refused(folder, change, said):
  change(folder)
  with pytest.raises(ValueError, match=said):
    classifier_folder.read(folder)


@pytest.mark.parametrize(
  ('count', 'said'),
  [(3, r"'/.*kernel.*|.*' has shape|different layers"), (10**5, 'too small for the')],
)
def test_labels_of_other_classes_are_refused(folder, count, said):
  _edit(folder, lambda card: card.update(threshold=None))
  _labels([str(k) for k in range(count)])(folder)
  with pytest.raises(ValueError, match=said):
    classifier_folder.read(folder)
