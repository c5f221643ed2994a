"""Names of splits, and folders that are splits or nearly."""

import pytest

from tasks import layouts


@pytest.mark.parametrize(
  ('split', 'names'),
  [
    (
      'train',
      ('train', 'Train', 'TRAINING', 'train_set', 'Training Data', 'train-images')
      + ('train2017', 'trainSet', '01_train', 'train (1)', 'trn', 'trainval'),
    ),
    ('validation', ('val', 'Valid', 'dev', 'val_set', 'eval', 'Evaluation 2', 'devel')),
    (
      'test',
      ('test', 'Testing', 'TEST', 'Test set', 'testdata', 'test1', 'tests', 'tst')
      + ('hold-out', 'held_out', 'Holdout', 'split_test', 'imagesTs'),
    ),
    (
      None,
      ('', 'docs', 'trainer', 'evaluation form', 'a train', 'contest')
      + ('trial', 'te', 'test tube', 'train_test', 'seg_train', '2017'),
    ),
  ],
)
def test_names_of_splits(split, names):
  assert {name: layouts.role(name) for name in names} == dict.fromkeys(names, split)


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
    (('train2017', 'val2017'), {'train2017': 'train', 'val2017': 'test'}),
    (('train', 'val', 'eval'), {'train': 'train', 'val': 'validation', 'eval': 'test'}),
    (
      ('train', 'eval', 'test'),
      {'train': 'train', 'eval': 'validation', 'test': 'test'},
    ),
    (('seg_train', 'seg_test'), {'seg_train': 'train', 'seg_test': 'test'}),
    (('train (dog)', 'test (dog)'), {'train (dog)': 'train', 'test (dog)': 'test'}),
    (('train', 'holdout'), {'train': 'train', 'holdout': 'test'}),
    (('imagesTr', 'imagesTs'), {'imagesTr': 'train', 'imagesTs': 'test'}),
    # One folder of such a name is a class: the vehicle.
    (('train', 'plane', 'car'), {}),
    (('a', 'b'), {}),
    (('test tube', 'train station'), {}),
    (('test tube', 'trainer', 'evaluation form'), {}),
    (('tr', 'te', 'hi'), {}),
  ],
)
def test_folders_are_splits_or_not(folders, splits):
  names = [f'{folder}/x/{k}.jpg' for folder in folders for k in range(2)]
  found, findings = layouts.of_folders('data', names)
  assert found == splits
  said = [finding.sentence for finding in findings]
  pairs = ', '.join(f'{name} = {splits[name]}' for name in sorted(splits))
  is_guess = bool({'val2017', 'seg_test', 'test (dog)', 'imagesTs'} & {*folders})
  assert (f'taken for splits: {pairs}' in said) == is_guess
  alone = ['warning: not taken for a split, because there is no other: train']
  assert (said == alone) == ('plane' in folders)


@pytest.mark.parametrize(
  ('names', 'message'),
  [
    (('train/1', 'test/2', 'docs/3'), 'test, train, which are splits, and docs with'),
    (('train/1', 'val/2', 'x.jpg'), 'train, val, which are splits, and x.jpg with'),
    (('train/1', 'Train/2', 'test/3'), 'holds Train, test, train; .* no two for the s'),
    (('train_1/1', 'train_2/2', 'test_1/3'), 'no two for the same: rename them, or'),
    (('trainA/1', 'testA/2', 'trainB/1', 'testB/1'), 'no two for the same'),
    (('train_small/1', 'test/2'), 'one to test on, and no two'),
    (('train_1/1', 'train_2/1'), 'one to test on, and no two'),
    (('seg_train/1', 'seg_test/2', 'seg_pred/3'), 'which are splits, and seg_pred'),
    (('train/train/1', 'train/val/2', 'test/3'), 'the splits train, val in train; spl'),
    (('a/train2017/1', 'a/val2017/2', 'b/3'), 'the splits train2017, val2017 in a'),
    (('val/1', 'test/2'), 'data holds test, val; .* there must be one for training'),
    (('a/train/1', 'a/test/2', 'b/train/3'), 'the splits test, train in a; splits'),
    (('a/x/val/1', 'a/x/train/2', 'b/3'), 'the splits train, val in a/x; splits mu'),
  ],
)
def test_misspelled_split_folders_are_refused(names, message):
  with pytest.raises(ValueError, match=message):
    layouts.of_folders('data', names)


@pytest.mark.parametrize(
  ('names', 'left'),
  [
    (('train/cat/1', 'test/cat/2'), ['cat/1', 'cat/2']),
    (('seg_train/seg_train/cat/1', 'seg_test/seg_test/dog/2'), ['cat/1', 'dog/2']),
    (('train/images/1', 'val/images/2'), ['1', '2']),
    (('train/images/1', 'train/cat/2', 'test/cat/3'), ['images/1', 'cat/2', 'cat/3']),
  ],
)
def test_a_folder_around_a_split_is_no_class(names, left):
  starts = layouts.starts(layouts.of_folders('data', names)[0], names)
  assert [name.removeprefix(starts[name.split('/')[0]]) for name in names] == left
