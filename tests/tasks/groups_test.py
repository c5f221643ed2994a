"""Groups of pictures by their names, and the splits that hold them together."""

import itertools
import random

import pytest

from tasks import cases
from tasks import groups
from tasks import image_folders
from tasks import validation
from tests.worlds import data_sets

# Of class c, group v and picture k.
_FRAMES = '{c}/{c}_clip{v:02d}_frame_{k:04d}.png'


def _names(form, classes=('run', 'walk'), count=6, each=10):
  made = itertools.product(classes, range(count), range(each))
  return [form.format(c=c, v=v, k=k, n=10 * v + k, x=256 * k) for c, v, k in made]


@pytest.mark.parametrize(
  ('form', 'count'),
  [
    (_FRAMES, 12),
    ('{c}/{c}-900{v}-{k}.png', 12),
    ('{c}/TCGA-{v:02d}{c}_{x}_{k}.png', 12),
    # What is in two classes is one patient.
    ('{c}/1025{v}_idx5_x{x}_y{n}_class1.png', 6),
    ('{c}/patient{v:02d}/{k}.png', 6),
    ('{c}/SOB/adenosis/SOB_B_A_14-22{v}49AB/{k}X/SOB-14-22{v}49AB-40-{k}.png', 6),
    ('{c}/CS_494{v}_19960909_{k}.tif', 6),
    ('{c}/clip{v}frame{k}.png', 6),
    ('{c}/aug_{v}_{x}.png', 6),
    ('clip{v}_{k}.png', 6),
    # A running number over the class, and names that say nothing else.
    ('{c}/img_{n:04d}.png', 0),
    ('{c}/{c}.{n}.jpg', 0),
    ('{c}/benign ({n}).png', 0),
    ('{c}/digit_3_{n}.png', 0),
    ('{c}/IMG_2020010{v}_{k}.jpg', 0),
    ('{c}/IMG-2020-01-0{v}-WA{k}.jpg', 0),
    ('n0144076{v}/n0144076{v}_{k}.JPEG', 0),
    ('patient{v}/{k}.png', 0),
  ],
)
def test_groups_that_names_show(form, count):
  names = [*dict.fromkeys(_names(form))]
  found = groups.of_names(names)
  assert len({*found} - {''}) == count
  assert found.count('') == (0 if count else len(names))


@pytest.mark.parametrize(
  'copy',
  ['img_07_flip.png', 'img_07_rot90_flip.png', 'img_07 (copy).png', 'img_07_left.jpg']
  + ['img_07 - Copy (2).png', 'img_07_png.rf.0a1b2c.jpg', 'Copy of img_07.png']
  + ['rot_90_img_07.png', 'flipped_img_07.png', 'img_07_aug_2.png', 'img_07.jpg']
  + ['thumbs/img_07.png', 'Thumbnails/img_07.jpg'],
)
def test_a_copy_is_with_its_original(copy):
  names = [f'a/img_{k:02d}.png' for k in range(20)] + [f'a/{copy}', f'b/{copy}']
  found = groups.of_names(names)
  held = {name for name, own in zip(names, found, strict=True) if own}
  assert held == {'a/img_07.png', f'a/{copy}'}


@pytest.mark.parametrize('form', ['{:032x}', '{:08x}-{:04x}-{:012x}', '{:d}_{:010x}_n'])
def test_random_names_are_no_groups(form):
  draw = random.Random(0)
  bits = [[draw.getrandbits(n) for n in (32, 40, 40)] for _ in range(2000)]
  assert not any(groups.of_names([f'a/{form.format(*own)}.jpg' for own in bits]))


def test_who_has_one_picture_in_each_class_is_a_group_and_most_of_a_class_is_none():
  places = [(c, v, k) for c in 'ab' for v in range(8) for k in range(v % 3 + 1)]
  names = [f'{c}/p{v}_{k}.png' for c, v, k in places]
  assert {*groups.of_names(names)} == {f'p{v}' for v in range(8)}
  names += [f'a/p8_{k}.png' for k in range(20)]
  assert groups.of_names(names)[-20:] == [''] * 20


def _load(folder, names, **options):
  data_sets.fill(folder, names, 1, size=(8, 8))
  return image_folders.load(folder, image_size=4, folders='class', **options)


def _of_splits(task):
  """Group -> the splits in which it is."""
  found = {}
  for split, examples in task.splits().items():
    for name in task.names(examples):
      found.setdefault(name.partition('_frame')[0], set()).add(split)
  return found


def test_no_split_cuts_a_group_and_additions_move_none(tmp_path):
  small = _load(tmp_path, _names(_FRAMES, count=6, each=3))
  assert small.report[1].startswith('36 of 36 images are 12 groups by their names')
  assert small.train.client is None and not small.case_level
  large = _load(tmp_path, _names(_FRAMES, count=9, each=4) + ['run/1.png', 'run/2.png'])
  before, after = (_of_splits(validation.hold_out(t, 0.2)) for t in (small, large))
  assert {len(splits) for splits in after.values()} == {1}
  assert len(before) == 12 and before.items() <= after.items()
  assert set().union(*after.values()) == {'train', 'validation', 'test'}


def test_groups_can_be_folders_or_none(tmp_path):
  names = _names('{c}/{v}/a_{k}.png', each=4)
  with pytest.raises(ValueError, match="groups is 'none' with folders 'client'; it"):
    image_folders.load(tmp_path, folders='client', groups='none')
  cut = _load(tmp_path / 'a', names, groups='none')
  assert cut.case_names == () and len(cut.report) == 1
  words = [name.translate(str.maketrans('012345', 'uvwxyz')) for name in names]
  asked = _load(tmp_path / 'b', words)
  assert asked.case_names == ()
  assert 'images of 6 folders are in both splits; where each' in asked.report[1]
  held = _load(tmp_path / 'b', words, groups='folders')
  assert held.case_names == ('u', 'v', 'w', 'x', 'y', 'z')


def test_given_splits_stay_and_what_they_cut_is_counted(tmp_path):
  names = [f'train/{name}' for name in _names(_FRAMES, each=3)]
  task = _load(tmp_path, [*names, 'test/run/run_clip01_frame_9.png', 'test/walk/1.png'])
  assert '37 of 38 images are 12 groups' in task.report[1]
  assert '1 of them in two of the splits as given: run_clip00' in task.report[1]
  assert (len(task.train), len(task.test)) == (36, 2)
  found = _of_splits(validation.hold_out(task, 0.3))
  assert all(len(found[name]) == 1 for name in found if name.startswith('train'))


def test_a_list_of_cases_of_one_image_is_asked_for_clients(tmp_path):
  names = _names(_FRAMES, each=2)
  rows = [f'{name},{name},{name[:3]}' for name in names]
  data_sets.write_csv(tmp_path / 'manifest.csv', 'image,case_id,label', rows)
  _load(tmp_path, names)
  said = cases.load(tmp_path, image_size=4).report[1]
  assert said.startswith('24 of 24 images are 12 groups') and 'column client_id' in said
