import numpy as np
import pytest

from binaries.config import data as run_data
from binaries.config import evaluations
from binaries.experiment import transfer
from tasks import images
from tasks import provenance
from tasks import registry
from tasks import task_types
from tests.binaries import in_process


def _task(channels, size=4):
  def examples(first, count):
    ids = np.arange(first, first + count, dtype=np.int64)
    image = np.random.default_rng(first).integers(0, 256, [count, size, size, channels])
    label = (ids % 2).astype(np.int32)
    return task_types.Examples({'image': image.astype(np.uint8)}, label, ids, ids)

  return task_types.Task(
    'some', ('a', 'b'), examples(0, 5), examples(5, 3), examples(8, 2)
  )


@pytest.mark.parametrize('channels', [1, 3])
def test_images_that_fit_stay_as_they_are(channels):
  task = _task(channels)
  assert transfer.fit(task, (4, 4, channels)) is task


def test_grey_is_repeated_to_colours_without_a_copy():
  task = _task(1)
  fitted = transfer.fit(task, (4, 4, 3))
  assert fitted.image_shape == (4, 4, 3)
  assert (fitted.name, fitted.label_names) == (task.name, task.label_names)
  for split, examples in fitted.splits().items():
    grey = task.splits()[split]
    for channel in range(3):
      np.testing.assert_array_equal(examples.image[..., channel], grey.image[..., 0])
    assert np.shares_memory(examples.image, grey.image)
    np.testing.assert_array_equal(examples.label, grey.label)
    np.testing.assert_array_equal(examples.case, grey.case)


@pytest.mark.parametrize(
  ('channels', 'shape'),
  [(3, (4, 4, 1)), (1, (8, 8, 1)), (1, (8, 8, 3)), (4, (4, 4, 3))],
)
def test_images_that_cannot_fit_are_named(channels, shape):
  with pytest.raises(ValueError, match=r"'some' has images of shape \(4, 4, \d\)"):
    transfer.fit(_task(channels), shape)


def _load(image_shape):
  return transfer.load(in_process.read('dcco'), 'digits', None, image_shape)


def test_task_is_loaded_in_the_size_that_the_encoder_takes(capsys):
  assert _load((12, 12, 3)).image_shape == (12, 12, 3)
  assert capsys.readouterr().out.startswith('transfer to digits: train 1,438 images')


def test_pictures_are_read_as_the_run_reads_its_own(tmp_path, monkeypatch):
  read = []
  monkeypatch.setattr(
    registry, 'load', lambda *_, reading, **__: read.append(reading) or _task(3)
  )
  data = run_data.Data(fit='pad', pixel_range=(0.0, 9.0))
  config = in_process.read('dcco', data=data)
  measured = (('whole', (1.0, 2.0)),)
  files = provenance.Files(tmp_path, (), ranges=measured)
  transfer.load(config, 'cases', str(tmp_path), (4, 4, 3), files)
  assert read == [images.Reading(images.PAD, (0.0, 9.0), measured)]


@pytest.mark.parametrize(
  ('own', 'other', 'wrong'),
  [
    ('digits', 'wine', 'wine'),
    ('digits', 'emoji', 'emoji'),
    ('wine', 'digits', 'wine'),
    ('wine', 'wine', 'wine'),
  ],
)
def test_a_task_without_images_is_named(own, other, wrong):
  config = in_process.read('dcco', task=own)
  with pytest.raises(ValueError, match=f'one image an example, which {wrong} has not'):
    transfer.check(config, evaluations.Additions(transfer=other))


def test_only_squares_can_be_had():
  with pytest.raises(ValueError, match='takes images of 8 x 6'):
    _load((8, 6, 1))
