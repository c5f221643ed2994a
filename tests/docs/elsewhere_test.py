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


@pytest.mark.long
def test_files_are_compared_with_our_numbers(tmp_path, monkeypatch, capsys):
  every = dict(elsewhere.encoders())
  some = [(name, every[name]) for name in ('mlp-batch', 'conv2-group')]
  monkeypatch.setattr(elsewhere, 'encoders', lambda: some)
  monkeypatch.setattr(elsewhere, '_TUNED', ('conv2-group',))
  files = tmp_path / 'files'
  elsewhere.write(files, ['keras', 'torch'])
  capsys.readouterr()
  check.main(files, ['keras'])
  printed = capsys.readouterr().out
  assert printed.startswith('Keras 2.14.0, tensorflow: 4 encoders, largest difference ')
  assert not (files / 'conv2-group-finetuned' / 'encoder.keras').exists()
  assert (files / 'conv2-group-finetuned' / 'torch_model' / 'model.py').exists()
  # The table of a page.
  page = tmp_path / 'page.md'
  elsewhere.main(files, str(page))
  cells = [line.split('|') for line in page.read_text().splitlines()[2:-2]]
  names = [row[1].strip() for row in (cells[0], *cells[2:])]
  assert cells[0][2].strip() == 'Keras 2.14.0, tensorflow'
  encoders = ['conv2-group', 'conv2-group-finetuned', 'mlp-batch', 'photograph']
  assert names == ['encoder', *encoders]
  # One probability is another.
  path = files / 'mlp-batch' / 'numbers.npz'
  with np.load(path) as stored:
    numbers = dict(stored)
  numbers['probabilities'][0, 0] += 2e-4
  np.savez(path, **numbers)
  with pytest.raises(SystemExit, match=r'above 0\.0001: mlp-batch\.'):
    check.main(files, ['keras'])


def test_a_place_without_a_file_has_no_number():
  shown = elsewhere.table({'a 1': {'mlp': 2e-7, 'vit': 1.4e-6}, 'b 2': {'vit': 0.0}})
  cells = [[cell.strip() for cell in row.split('|')] for row in shown.splitlines()]
  assert [row[1:-1] for row in cells[2:]] == [
    ['mlp', '2e-07', ''],
    ['vit', '1e-06', '0e+00'],
  ]


def test_batches_of_each_size_are_compared():
  expected = {'features': np.arange(6.0).reshape(3, 2)}
  sizes = []

  def run(inputs):
    sizes.append(len(inputs))
    # Wrong for more than 100.
    wrong = 0.5 if len(inputs) > 100 else 0.0
    return {'features': inputs + wrong}

  gaps = list(check._gaps(run, expected['features'], expected, any_size=True))
  assert sizes == [3, 0, 1, 257]
  assert gaps == [0.0, 0.0, 0.0, 0.5 / 5]


def test_deep_encoders_with_batch_norm_have_features_to_compare():
  encoder = dict(elsewhere.encoders())['resnet14-batch-imagenet']
  x = np.random.default_rng(1).uniform(size=(6, *encoder.input_shape))
  features = encoder.infer(elsewhere.values(encoder), x.astype(np.float32))
  assert np.std(features) > 0.05


def test_published_weights_are_compared_with_numbers_of_another_program(
  tmp_path, capsys
):
  net = torch_networks.Resnet18()
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
  header = printed.splitlines()[0].split('|')
  assert [cell.strip() for cell in header[1:-1]] == ['encoder', 'features', 'gradients']
  assert '| net ' in printed and '| net, folded ' in printed
