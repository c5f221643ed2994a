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


def test_defaults_are_byols():
  config = configs.by_name('byol')
  assert config == configs.AugmentConfig()
  assert config.crop_scale == (0.08, 1.0)
  assert config.blur_probability == (1.0, 0.1)
  assert config.solarize_probability == (0.0, 0.2)


def test_dcco_is_byol_without_blur():
  config = configs.by_name('byol_no_blur')
  assert config.blur_probability == (0.0, 0.0)
  assert dataclasses.replace(config, blur_probability=(1.0, 0.1)) == configs.BYOL


def test_the_contrastive_papers_do_not_solarize():
  for name in ('simclr', 'moco_v1', 'moco_v2'):
    assert configs.by_name(name).solarize_probability == (0.0, 0.0)
  simclr, v1, v2 = (configs.by_name(n) for n in ('simclr', 'moco_v1', 'moco_v2'))
  colours = ('brightness', 'contrast', 'saturation', 'hue', 'jitter_probability')
  assert [getattr(simclr, c) for c in colours] == [0.8, 0.8, 0.8, 0.2, 0.8]
  assert [getattr(v1, c) for c in colours] == [0.4, 0.4, 0.4, 0.4, 1.0]
  assert [getattr(v2, c) for c in colours] == [0.4, 0.4, 0.4, 0.1, 0.8]
  assert v1.crop_scale == v2.crop_scale == (0.2, 1.0)
  blurs = [config.blur_probability[0] for config in (simclr, v1, v2)]
  assert blurs == [0.5, 0.0, 0.5]


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


def test_by_name_rejects_unknown_names():
  with pytest.raises(
    ValueError, match=r"'dino'.*byol, byol_no_blur, simclr, .*, mild, small, flip, none"
  ):
    configs.by_name('dino')
