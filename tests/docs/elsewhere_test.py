"""What `make elsewhere` compares, in this environment."""

import json

import numpy as np
import pytest

from docs.elsewhere import __main__ as elsewhere
from docs.elsewhere import backbones
from docs.elsewhere import check
from tests.encoders import torch_networks
from tff_ssl.encoders import registry


def test_every_encoder_and_norm_is_written():
  written = {name for name, _ in elsewhere.encoders()}
  for name in registry.NAMES:
    norms = elsewhere.norms(name)
    assert bool(norms) == (name in registry.with_option('normalization'))
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


def test_published_weights_are_compared_with_numbers_of_another_program(
  tmp_path, capsys
):
  net = torch_networks.Resnet18((4, 8, 16, 32))
  torch_networks.write(tmp_path / 'net.safetensors', net.weights)
  options = {'width': 1 / 16}
  case = {'encoder': 'torch_resnet18', 'options': options}
  (tmp_path / 'cases.json').write_text(json.dumps({'net': case}))
  images = np.random.default_rng(0).uniform(size=(2, 32, 32, 3)).astype(np.float32)
  features = net.features(images)
  for change, fails in ((0.0, False), (2e-4, True)):
    features[0, 0] += change * max(1, np.abs(features).max())
    np.savez(
      tmp_path / 'numbers.npz', **{'net/images': images, 'net/features': features}
    )
    if fails:
      with pytest.raises(SystemExit, match='A difference is above'):
        backbones.main(tmp_path)
    else:
      backbones.main(tmp_path)
  printed = capsys.readouterr().out
  assert printed.startswith('| weights of | features | gradients |')
  assert '| net | ' in printed and '| net, folded | ' in printed
