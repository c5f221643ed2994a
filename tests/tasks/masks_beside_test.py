"""Names of masks, as published data sets have them, and of pictures that are none."""

import pytest

from tasks import image_folders
from tasks import masks
from tasks import masks_beside
from tasks import pictures
from tests.worlds import data_sets


@pytest.mark.parametrize(
  ('picture', 'mask'),
  [
    # BUSI, twice; ISIC; Carvana; GlaS; DeepGlobe.
    ('a/benign ({}).png', 'a/benign ({})_mask.png'),
    ('a/benign ({}).png', 'a/benign ({})_mask_1.png'),
    ('ISIC_{}.jpg', 'ISIC_{}_Segmentation.png'),
    ('train/ab_{}.jpg', 'train_masks/ab_{}_mask.gif'),
    ('test_{}.bmp', 'test_{}_anno.bmp'),
    ('{}_sat.jpg', '{}_mask.png'),
    ('image_{}.png', 'mask_{}.png'),
    *(('x{}.png', f'x{{}}{s}.jpg') for s in ('_gt', '-seg', ' labels', 'GroundTruth')),
    # DRIVE; nnU-Net; PASCAL VOC; Cityscapes; ADE20K; COVID-19 Radiography; CVC.
    ('training/images/{}_training.tif', 'training/1st_manual/{}_manual1.gif'),
    ('imagesTr/{}_0000.png', 'labelsTr/{}.png'),
    ('JPEGImages/{}.jpg', 'SegmentationClass/{}.png'),
    ('leftImg8bit/train/a/{}_leftImg8bit.png', 'gtFine/train/a/{}_gtFine_labelIds.png'),
    ('images/training/{}.jpg', 'annotations/training/{}.png'),
    ('COVID/images/{}.png', 'COVID/masks/{}.png'),
    ('Original/{}.png', 'Ground Truth/{}.png'),
    ('cat/{}.png', 'masks/cat/{}.png'),
  ],
)
def test_masks_are_found_by_their_names(picture, mask):
  names = (*(form.format(k) for form in (picture, mask) for k in range(1, 13)),)
  assert (*masks_beside.find(names),) == names[12:]


@pytest.mark.parametrize(
  ('one', 'other'),
  [
    ('with_mask', 'without_mask'),
    ('a/with_mask_', 'a/without_mask_'),
    ('mask', 'no_mask'),
    ('WithMask', 'WithoutMask'),
    ('mask', 'face'),
    ('face_mask', 'face'),
    ('train/mask', 'train/nomask'),
    ('label', 'bottle'),
    ('gt', 'suv'),
  ],
)
def test_classes_that_are_called_masks_are_pictures(one, other):
  names = [
    f'{own}/{k}.png'.replace('_/', '_') for own in (one, other) for k in range(12)
  ]
  assert masks_beside.find((*names,)) == {}


def test_superpixels_are_left_out_and_show_no_object():
  names = ('ISIC_1.jpg', 'ISIC_1_superpixels.png', 'ISIC_1_seg.png')
  found = masks_beside.find(names)
  assert found == {'ISIC_1_superpixels.png': '', 'ISIC_1_seg.png': 'ISIC_1.jpg'}


@pytest.mark.usefixtures('users_cache')
def test_all_programs_leave_masks_out_and_say_it(tmp_path):
  for form in ('images/{}.png', 'masks/{}_mask.png'):
    data_sets.fill(tmp_path / 'data', map(form.format, range(8)))
  task = image_folders.load(tmp_path / 'data', image_size=8)
  embedded = pictures.load(tmp_path / 'data', (8, 8, 3))
  for report in (task.report, embedded.intake.lines()):
    assert report[0] == '16 files: 8 images read, 8 masks'
    start = 'left out 8 masks, by their names those of other pictures: masks/0_mask.png'
    assert report[1].startswith(start) and 'where a manifest lists them' in report[1]
  assert embedded.names == tuple(f'images/{k}.png' for k in range(8))
  assert len(masks.load(task).pixels) == 8
  # A single file is what it is said to be.
  alone = pictures.load(tmp_path / 'data/masks/1_mask.png', (8, 8, 3))
  assert alone.names == ('1_mask.png',)
