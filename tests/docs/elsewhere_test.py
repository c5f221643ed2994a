"""What `make elsewhere` compares, in this environment."""

import numpy as np
import pytest

from docs.elsewhere import __main__ as elsewhere
from docs.elsewhere import check
from tff_ssl.encoders import registry


def test_every_encoder_and_norm_is_written():
  written = {name for name, _ in elsewhere.encoders()}
  for name in registry.NAMES:
    norms = ['group', 'batch'] if name in registry.with_option('normalization') else []
    for part in ['-'.join([name, norm]) for norm in norms] or [name]:
      assert any(each.startswith(part) for each in written), part


def test_files_are_compared_with_our_numbers(tmp_path, monkeypatch, capsys):
  every = dict(elsewhere.encoders())
  some = [(name, every[name]) for name in ('mlp-batch', 'vit_micro', 'conv2-group')]
  monkeypatch.setattr(elsewhere, 'encoders', lambda: some)
  elsewhere.write(tmp_path)
  check.main(tmp_path)
  printed = capsys.readouterr().out
  assert printed.startswith('| file | Keras 2.14.0, tensorflow |')
  for name, _ in some:
    assert f'| {name}/encoder.keras | ' in printed
    assert f'| {name}/model.keras | ' in printed
  # One probability is another.
  with np.load(tmp_path / 'numbers.npz') as stored:
    numbers = dict(stored)
  numbers['mlp-batch/model.keras/probabilities'][0, 0] += 2e-4
  np.savez(tmp_path / 'numbers.npz', **numbers)
  with pytest.raises(SystemExit, match='a difference is above'):
    check.main(tmp_path)


def test_deep_encoders_with_batch_norm_have_features_to_compare():
  encoder = dict(elsewhere.encoders())['resnet14-batch-imagenet']
  x = np.random.default_rng(1).uniform(size=(6, *encoder.input_shape))
  features = encoder.infer(elsewhere.values(encoder), x.astype(np.float32))
  assert np.std(features) > 0.05
