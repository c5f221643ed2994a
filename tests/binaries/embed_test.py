import json
import re
import shutil

import numpy as np
from PIL import Image
from pyarrow import parquet
import pytest

from binaries import embed
from tasks import images
from tasks import pictures
from tests.binaries import in_process
from tests.binaries import launch
from tff_ssl.encoders import parameter_names
from tff_ssl.encoders import registry

_SIZE = 8
_OF_RUN = (('whole', (51_000.0, 52_000.0)), ('floating', (-3.5, 20.0)))


# Decoded pictures.
pytestmark = pytest.mark.usefixtures('users_cache')


@pytest.fixture
def photos(tmp_path):
  """A folder of images of the encoder's own size; returns them by name."""
  folder = tmp_path / 'photos'
  (folder / 'deeper').mkdir(parents=True)
  generator = np.random.default_rng(0)
  images = {}
  for k in range(9):
    name = f'deeper/{k}.png' if k % 2 else f'{k}.PNG'
    images[name] = generator.integers(0, 256, (_SIZE, _SIZE)).astype(np.uint8)
    Image.fromarray(images[name]).save(folder / name, format='png')
  (folder / 'damaged.png').write_bytes(b'nothing')
  (folder / 'notes.txt').write_text('no image')
  return folder, images


def _features(params, images):
  encoder = registry.build_encoder('conv2', (_SIZE, _SIZE, 1), 0.125)
  own = parameter_names.select(params, 'encoder')
  return encoder.infer(own, images[..., np.newaxis] / np.float32(255)).numpy()


def test_features_are_the_network_s_by_name(taken, photos, tmp_path, capsys):
  (folder, params), (path, images) = taken, photos
  out = tmp_path / 'out'
  in_process.call(embed, f'--run={folder}', f'--images={path}', f'--out={out}')
  shown = capsys.readouterr().out
  assert 'images that cannot be read: damaged.png' in shown
  assert 'not used: 1 other file (1 .txt): notes.txt' in shown
  assert 'map: laying out 9 images with t-SNE\n' in shown
  table = parquet.read_table(out / 'features.parquet').to_pydict()
  rows = launch.table(out, 'features.csv')
  assert set(table['image']) == set(images)
  assert [row['image'] for row in rows] == table['image']
  expected = _features(params, np.stack([images[name] for name in table['image']]))
  for k in range(expected.shape[1]):
    column = np.float32(table[f'feature_{k}'])
    np.testing.assert_allclose(column, expected[:, k], rtol=2e-6, atol=1e-6)
    np.testing.assert_array_equal(
      column, [np.float32(row[f'feature_{k}']) for row in rows]
    )
  with Image.open(out / 'map.png') as picture:
    assert min(picture.size) > 800


def test_two_encoders_side_by_side(taken, photos, tmp_path, capsys):
  (folder, _), (path, images) = taken, photos
  out = tmp_path / 'out'
  in_process.call(
    embed,
    f'--run={folder}',
    f'--beside={folder / "encoder.keras"}',
    f'--images={path}',
    f'--out={out}',
    '--formats=csv',
    '--map_images=5',
    '--color_by=folder',
  )
  assert 'one (2): 9 images, 8 features, in features_2.*' in capsys.readouterr().out
  assert sorted(each.name for each in out.iterdir()) == [
    'features_1.csv',
    'features_2.csv',
    'map.html',
    'map.png',
  ]
  page = (out / 'map.html').read_text()
  data = json.loads(re.search(r'application/json">(.*?)</script>', page).group(1))
  assert [panel['title'] for panel in data['panels']] == ['one', 'one (2)']
  assert len(data['names']) == 5
  assert set(data['names']) <= set(images)
  assert data['panels'][0]['places'] == data['panels'][1]['places']
  assert '5 of the 9 images' in page
  deeper = ['deeper' if name.startswith('deeper/') else '' for name in data['names']]
  assert data['values'] == deeper


def test_encoders_side_by_side_read_pictures_alike(taken, photos, tmp_path):
  other = tmp_path / 'other'
  shutil.copytree(taken[0], other)
  config = json.loads((other / 'config.json').read_text())
  config['config']['data']['fit'] = 'pad'
  (other / 'config.json').write_text(json.dumps(config))
  call = [f'--run={taken[0]}', f'--beside={other}', f'--images={photos[0]}']
  with pytest.raises(ValueError, match=r'pictures with fit=crop, and .* with fit=pad'):
    in_process.call(embed, *call, f'--out={tmp_path / "out"}')
  in_process.call(
    embed, *call, f'--out={tmp_path / "out"}', '--formats=csv', '--data=fit=pad'
  )


@pytest.mark.parametrize(
  ('given', 'expected'),
  [
    ([], images.Reading(images.PAD, (0.0, 1000.0), _OF_RUN)),
    (['--data=fit=stretch'], images.Reading(images.STRETCH, (0.0, 1000.0), _OF_RUN)),
    (['--data=pixel_range=-5/5'], images.Reading(images.PAD, (-5.0, 5.0), _OF_RUN)),
  ],
)
@pytest.mark.parametrize('source', ['run', 'run/encoder.keras', 'given'])
def test_pictures_are_read_as_the_run_read_them(
  taken, photos, tmp_path, monkeypatch, source, given, expected
):
  folder = tmp_path / 'run'
  shutil.copytree(taken[0], folder)
  how = {'fit': 'pad', 'pixel_range': [0, 1000]}
  config = json.loads((folder / 'config.json').read_text())
  config['config']['data'] |= how
  (folder / 'config.json').write_text(json.dumps(config))
  card = json.loads((folder / 'encoder.json').read_text())
  of_run = {f'measured_{key}': ends for key, ends in _OF_RUN}
  (folder / 'encoder.json').write_text(json.dumps({**card, **how, **of_run}))
  # An encoder and its card alone, as they are given away.
  (tmp_path / 'given').mkdir()
  for name in ('encoder.keras', 'encoder.json'):
    shutil.copy(folder / name, tmp_path / 'given')
  readings = []

  def load(path, shape, reading):
    readings.append(reading)
    raise ValueError('enough')

  monkeypatch.setattr(pictures, 'load', load)
  start = [
    f'--run={tmp_path / source}',
    f'--images={photos[0]}',
    f'--out={tmp_path / "out"}',
  ]
  with pytest.raises(ValueError, match='enough'):
    in_process.call(embed, *start, *given)
  assert readings == [expected]


def test_bad_flags_are_one_sentence(taken, photos, tmp_path):
  folder, path, out = taken[0], photos[0], tmp_path / 'out'
  empty = tmp_path / 'empty'
  empty.mkdir()
  start = f'--run={folder} --out={out}'
  (tmp_path / 'lone.json').write_text('{"fit": "round"}')
  (tmp_path / 'lone.keras').touch()
  expected = {
    f'{start} --images={path} --data=at_most=3': 'here it must be one of fit, pixel',
    f'{start} --images={path} --table=a.csv': '--table is given without --color_by',
    f'{start} --images={path} --color_by=age': 'holds no manifest.csv; a table',
    f'--run={folder} --images={path} --out={path}/map': 'it must be outside the folder',
    f'{start} --images={empty}': 'holds no images that are not masks; their',
    f'--run={path} --images={path} --out={out}': 'encoder.keras is not a file',
    f'--run={tmp_path}/lone.keras --images={path} --out={out}': (
      "lone.json has fit='round'; it must be one of crop, pad, stretch, or none."
    ),
  }
  said = in_process.said(embed, expected)
  for line, part in expected.items():
    assert part in said[line], (line, said[line])
  assert not out.exists()
