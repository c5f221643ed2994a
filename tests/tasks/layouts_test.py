"""Names of splits, and folders that are splits or nearly."""

import pytest

from tasks import layouts


@pytest.mark.parametrize(
  ('split', 'names'),
  [
    (
      'train',
      ('train', 'Train', 'TRAINING', 'train_set', 'Training Data', 'train-images'),
    ),
    ('validation', ('val', 'Valid', 'validation', 'dev', 'val_set')),
    ('test', ('test', 'Testing', 'TEST', 'Test set', 'testdata')),
    (
      None,
      ('', 'docs', 'trainer', 'tests', 'evaluation', 'a train', 'contest', 'trial'),
    ),
  ],
)
def test_names_of_splits(split, names):
  assert {name: layouts.role(name) for name in names} == dict.fromkeys(names, split)


def test_a_validation_split_without_a_test_split_is_tested_on_and_said():
  found, findings = layouts.roles(['Train', 'val', 'other'])
  assert found == {'Train': 'train', 'val': 'test'}
  assert [finding.sentence for finding in findings] == [
    'there is no other test split than: val'
  ]
  found, findings = layouts.roles(['train', 'val', 'test'])
  assert found == {'train': 'train', 'val': 'validation', 'test': 'test'}
  assert findings == []


@pytest.mark.parametrize(
  ('folders', 'splits'),
  [
    (('train', 'test'), {'train': 'train', 'test': 'test'}),
    (('Training', 'Testing'), {'Training': 'train', 'Testing': 'test'}),
    (('train', 'val'), {'train': 'train', 'val': 'test'}),
    (
      ('train', 'valid', 'test'),
      {'train': 'train', 'valid': 'validation', 'test': 'test'},
    ),
    # One folder of such a name is a class: the vehicle.
    (('train', 'plane', 'car'), {}),
    (('a', 'b'), {}),
  ],
)
def test_folders_are_splits_or_not(folders, splits):
  names = [f'{folder}/x/{k}.jpg' for folder in folders for k in range(2)]
  found, findings = layouts.of_folders('data', names)
  assert found == splits
  said = [finding.sentence for finding in findings]
  alone = ['warning: not taken for a split, because there is no other: train']
  assert (said == alone) == ('plane' in folders)


@pytest.mark.parametrize(
  ('names', 'message'),
  [
    (
      ('train/1', 'test/2', 'docs/3'),
      'holds test, train, which are splits, and docs wi',
    ),
    (
      ('train/1', 'val/2', 'x.jpg'),
      'train, val, which are splits, and x.jpg with images',
    ),
    (
      ('train/1', 'Train/2', 'test/3'),
      'data holds Train, test, train; .* no two for the',
    ),
    (('val/1', 'test/2'), 'data holds test, val; .* there must be one for training'),
    (
      ('a/train/1', 'a/test/2', 'b/train/3'),
      'holds the splits test, train in a; splits',
    ),
    (
      ('a/x/val/1', 'a/x/train/2', 'b/3'),
      'holds the splits train, val in a/x; splits mu',
    ),
  ],
)
def test_misspelled_split_folders_are_refused(names, message):
  with pytest.raises(ValueError, match=message):
    layouts.of_folders('data', names)
