"""Tests of what an augmentation may be configured to."""

import dataclasses

import pytest

from tff_ssl.augment import configs


@pytest.mark.parametrize(
  ('field', 'value'),
  [
    ('crop_scale', (0.0, 1.0)),
    ('crop_scale', (0.5, 1.5)),
    ('crop_scale', (0.5, 0.2)),
    ('crop_scale', (0.5,)),
    ('crop_ratio', (-1.0, 1.0)),
    ('blur_probability', (0.5,)),
    ('blur_sigma', (0.0, 2.0)),
  ],
)
def test_a_field_out_of_range_is_named(field, value):
  with pytest.raises(ValueError, match=field):
    configs.AugmentConfig(**{field: value})


def test_simclr_of_cifar_is_at_half_the_strength_and_without_blur():
  # Chen et al. 2020, Appendix A: (0.8 s, 0.8 s, 0.8 s, 0.2 s); B.9: s = 0.5, no blur.
  full, half = (configs.by_name(name) for name in ('simclr', 'simclr_no_blur'))
  colours = ('brightness', 'contrast', 'saturation', 'hue')
  assert [getattr(half, c) for c in colours] == [0.4, 0.4, 0.4, 0.1]
  assert half.blur_probability == (0.0, 0.0)
  kept = {c: getattr(full, c) for c in (*colours, 'blur_probability')}
  assert dataclasses.replace(half, **kept) == full


def test_crops_and_flips_leave_colours_alone():
  changes = {name: config.jitters for name, config in configs.CONFIGS.items()}
  unchanged = {'mae', 'flip', 'none'}
  assert {name for name, jitters in changes.items() if not jitters} == unchanged
  assert not configs.AugmentConfig(jitter_probability=0.0, grey_probability=0.0).jitters


def test_mae_crops_and_flips_only():
  config = configs.by_name('mae')
  assert config.crop_scale == (0.2, 1.0)
  assert dataclasses.replace(config, crop_scale=(1.0, 1.0)) == configs.FLIP
