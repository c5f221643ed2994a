"""Parts of modules outside the checkout, imported by --import."""

import hashlib
import importlib.metadata
import json
import pathlib
import re
from unittest import mock

import numpy as np
import pytest
import tensorflow as tf

from binaries import compare
from binaries import dcco
from binaries import evaluate
from binaries import export
from binaries import fedavg_ssl
from binaries.building import sites
from binaries.config import help_text
from binaries.experiment import sweep_methods
from binaries.experiment import sweeping
from binaries.launching import program
from tasks import registry
from tests.binaries import in_process
from tests.binaries import launch
from tests.binaries import own_files
from tff_ssl.augment import configs
from tff_ssl.augment import multiview
from tff_ssl.export import encoder_file
from tff_ssl.runs import own_modules
from tff_ssl.runs import run_config
from tff_ssl.settings import objectives
from tff_ssl.settings import parts

_SMALL = (*launch.SMALL, launch.APART, '--rounds=2', '--objective=projector=8/8')
pytestmark = pytest.mark.usefixtures('forgotten')


def _stored(folder: pathlib.Path) -> dict:
  return json.loads((folder / run_config.NAME).read_text())


def _precision_of_pixels() -> float:
  """Returns the mean over digits of the precision of the ten nearest."""
  test = registry.load('digits', None).test
  pixels, of_digit = test.fields['image'].reshape(len(test), -1) / 255, {}
  for i, own in enumerate(pixels):
    cosines = pixels @ own / np.linalg.norm(pixels, axis=1)
    nearest = [j for j in np.argsort(-cosines) if j != i][:10]
    right = [test.label[j] == test.label[i] for j in nearest]
    of_digit.setdefault(test.label[i], []).append(np.mean(right))
  return np.mean([np.mean(each) for each in of_digit.values()])


def test_an_objective_a_method_and_metrics_end_to_end(tmp_path):
  given = (
    own_files.write(tmp_path, own_files.OBJECTIVE),
    own_files.write(tmp_path, own_files.METHOD, 'my_method'),
    own_files.write(tmp_path, own_files.METRIC, 'my_metric'),
  )
  own, known = tmp_path / 'own', tmp_path / 'known'
  flags = ('--method=again', '--objective=mine:temperature=0.3,pull=0', *_SMALL)
  methods = '--evaluation=methods=knn/constant/tested/neighbours'
  begun = in_process.finished(fedavg_ssl, *given, *flags, methods, f'--run_dir={own}')
  plain = ('--method=fedavg', '--objective=simclr:temperature=0.3', *_SMALL)
  in_process.finished(
    fedavg_ssl, *plain, '--evaluation=methods=knn', f'--run_dir={known}'
  )

  # The checkout's SimCLR and FedAvg, under other names.
  for mine, theirs in zip(launch.table(own), launch.table(known), strict=True):
    assert {name: mine[name] for name in theirs} == theirs
  numbers = json.loads((own / 'evaluation.json').read_text())
  # A fifth of 1,797 digits, of each of which there are about a tenth.
  assert numbers['tested/10%/count'] == 359
  assert 0.08 < numbers['constant/10%/accuracy'] < 0.12
  assert 0.1 < numbers['neighbours/10%/precision'] <= 1
  found = numbers['pixels/neighbours/10%/precision']
  assert found == pytest.approx(_precision_of_pixels(), rel=1e-5)
  assert 'again mine' in begun.stdout
  assert 'tested count' in begun.stdout
  assert list(_stored(own)['imports']) == ['my_method', 'my_metric', 'my_part']

  asked = in_process.finished(evaluate, *given, f'--run={own}')
  assert 'again mine' in asked.stdout
  in_process.finished(export, *given, f'--run={own}', '--formats=keras')
  # Needs no module: it reads numbers.
  runs = f'--runs={own}', f'--out={tmp_path}/compared'
  compared = in_process.finished(compare, *runs).stdout
  assert 'again mine  ' in compared
  assert 'tested 145 labels error' in compared
  assert 'tested 145 labels count' not in compared
  assert 'tested 145 labels overlap' in (own / 'page.html').read_text()
  begun = in_process.finished(
    fedavg_ssl, *given, f'--config={own}', '--rounds=1', f'--run_dir={tmp_path}/other'
  )
  assert (
    _stored(begun.folder)['config']['objective'] == _stored(own)['config']['objective']
  )


def test_a_loss_of_statistics_is_an_objective_of_dcco(tmp_path):
  own, known = tmp_path / 'own', tmp_path / 'known'
  flags = (*_SMALL, '--evaluation=methods=knn')
  given = own_files.write(tmp_path, own_files.LOSS), '--objective=my_cco'
  in_process.finished(dcco, *given, *flags, f'--run_dir={own}')
  in_process.finished(
    dcco, '--objective=off_diagonal_weight=20', *flags, f'--run_dir={known}'
  )

  assert _stored(own)['config']['method']['kind'] == 'dcco'
  assert launch.table(own) == launch.table(known)


def test_clients_with_numbers_may_send_rows_of_their_own(tmp_path):
  text = own_files.METHOD.replace('method(Again)', 'method(Again, numbered=True)')
  program.import_own([own_files.write(tmp_path, text)])

  with pytest.raises(ValueError, match='each client sends its own rows'):
    in_process.checked('fedavg_ssl', '--method=again --aggregation=secure')


def test_what_a_run_needs_is_named_and_compared(tmp_path):
  given, folder = own_files.write(tmp_path, own_files.OBJECTIVE), tmp_path / 'run'
  flags = '--objective=mine', *_SMALL, f'--run_dir={folder}'
  in_process.finished(fedavg_ssl, given, *flags, '--evaluation=methods=knn')
  stored = _stored(folder)

  with (
    mock.patch.dict(own_modules._named, clear=True),
    mock.patch.dict(parts.OBJECTIVES, clear=True),
    mock.patch.dict(objectives.OBJECTIVES),
  ):
    del objectives.OBJECTIVES['mine']
    lacking = r'was made with parts of my_part; give --import=my_part \(or the path'
    for binary, arguments in ((evaluate, (f'--run={folder}',)), (fedavg_ssl, flags)):
      with pytest.raises(ValueError, match=lacking):
        in_process.call(binary, *arguments)
  path = folder / run_config.NAME
  path.write_text(json.dumps({**stored, 'imports': {'my_part': 'f' * 64}}))
  with pytest.raises(
    ValueError, match=r'and had ffffffffffff when .* began: resume it'
  ):
    in_process.call(fedavg_ssl, given, *flags, '--evaluation=methods=knn')
  warned = in_process.finished(evaluate, given, f'--run={folder}')
  assert 'Warning: my_part has the digest' in warned.stderr
  path.write_text(json.dumps({**stored, 'imports': {'a; rm -r ~': 'f'}}))
  with pytest.raises(ValueError, match=r'imports of .* is damaged'):
    in_process.call(evaluate, given, f'--run={folder}')


def test_a_run_needs_the_modules_whose_parts_it_has(tmp_path):
  given = (
    own_files.write(tmp_path, own_files.OBJECTIVE),
    own_files.write(tmp_path, own_files.HEIR, 'my_heir'),
    own_files.write(tmp_path, own_files.METRIC, 'my_metric'),
  )
  program.import_own(given)

  def used(objective: str, *metrics: str) -> list[str]:
    config = {'objective': {'kind': objective}, 'run_dir': 'mine', 'methods': metrics}
    return list(run_config.build(config, '', free=['run_dir']).get('imports', ()))

  assert used('simclr', 'knn') == []
  assert used('mine') == ['my_part']
  # It inherits from a class of the other.
  assert used('heir') == ['my_heir', 'my_part']
  assert used('simclr', 'knn', 'neighbours') == ['my_metric']


def test_a_changed_module_is_no_change_to_runs_of_others(tmp_path):
  config = {'objective': {'kind': 'simclr'}}
  began = run_config.build(config, '')
  program.import_own([own_files.write(tmp_path, own_files.OBJECTIVE)])

  run_config.compare(tmp_path, began, run_config.build(config, ''), free=())
  own = {'objective': {'kind': 'mine'}}
  with pytest.raises(ValueError, match=r'--import=my_part is given, and .* without it'):
    run_config.compare(tmp_path, began, run_config.build(own, ''), free=())


def test_an_encoder_a_task_views_and_an_aggregation(tmp_path):
  given, folder = own_files.write(tmp_path, own_files.OTHERS), tmp_path / 'run'
  flags = ('--task=stripes', '--objective=simclr:projector=8/8', '--rounds=1')
  flags += ('--encoder=tiny:filters=5', '--aggregation=clipped:norm=0.25')
  flags += ('--partition=iid:examples=10', '--evaluation=methods=knn')
  in_process.finished(fedavg_ssl, given, *flags, f'--run_dir={folder}')

  config = _stored(folder)['config']
  assert config['augmentation'] == 'dim'
  assert config['encoder']['filters'] == 5
  (row,) = launch.table(folder)
  assert float(row['aggregator/train/update/clipping_norm']) == 0.25
  network = encoder_file.rebuild(folder / 'encoder.keras')
  assert network.num_parameters == 3 * 3 * 5 + 5
  in_process.finished(export, given, f'--run={folder}', '--formats=keras')
  with pytest.raises(
    ValueError, match='with --aggregation=clipped, which acts on each'
  ):
    in_process.checked('fedavg_ssl', ' '.join((*flags, '--runtime=packs=2')))
  images = np.full([3, 2, 2, 1], 255, np.uint8)
  views = [multiview.by_name('dim')] * 2
  ids, seed = tf.range(3, dtype=tf.int64), tf.constant([1, 2])
  seen = np.array(multiview.views(tf.constant(images), ids, seed, views))
  # One factor for each image and view.
  assert np.all(seen == seen[:, :, :1, :1])
  assert len(np.unique(seen)) == 6


def test_views_by_a_configuration():
  own = configs.AugmentConfig(crop_scale=(0.5, 1.0))
  with mock.patch.dict(parts.AUGMENTATIONS):
    parts.augmentation('half')(own)
    assert multiview.by_name('half') == own


def test_another_process_is_given_the_same_modules(tmp_path):
  given = own_files.write(tmp_path, own_files.OBJECTIVE)
  program.import_own([given])
  (member,) = sweep_methods.members(['mine'])
  (job,), _ = sweeping.jobs([member], [0], tmp_path, [('task', 'digits')])

  assert member.row == ('fedavg_ssl', 'fedavg', 'mine')
  assert given in sweeping.Runner(1).command(job)


def test_help_has_the_fields_of_an_own_kind(tmp_path):
  program.import_own([own_files.write(tmp_path, own_files.OBJECTIVE)])

  assert 'temperature=0.5  (a number above 0)' in help_text.build(fedavg_ssl, 'mine')
  assert '  --import' in help_text.build(evaluate, '')


def test_an_entry_point_is_imported_if_it_is_named(tmp_path, monkeypatch):
  own_files.write(tmp_path, own_files.OBJECTIVE, 'of_a_package')
  monkeypatch.syspath_prepend(tmp_path)
  entry = importlib.metadata.EntryPoint('my-package', 'of_a_package', own_modules.GROUP)
  found = lambda **_: importlib.metadata.EntryPoints([entry])  # noqa: E731
  monkeypatch.setattr(importlib.metadata, 'entry_points', found)

  own_modules.load(['my-package'])

  assert list(own_modules.digests()) == ['my-package']
  assert parts.OBJECTIVES['mine'].is_own


def test_a_digest_is_of_a_file_or_of_all_files_of_a_package(tmp_path, monkeypatch):
  package = tmp_path / 'own_package'
  package.mkdir()
  (package / '__init__.py').write_text('from own_package import part\n')
  own_files.write(package, own_files.OBJECTIVE, 'part')
  given = own_files.write(tmp_path, own_files.METHOD)
  monkeypatch.syspath_prepend(tmp_path)
  program.import_own([given, '--import=own_package'])
  digests = own_modules.digests()

  def digest(*files: pathlib.Path) -> str:
    named = (
      path.name.encode() + hashlib.sha256(path.read_bytes()).digest() for path in files
    )
    return hashlib.sha256(b''.join(named)).hexdigest()

  # The package's module has no entry of its own.
  assert digests == {
    'my_part': digest(tmp_path / 'my_part.py'),
    'own_package': digest(package / '__init__.py', package / 'part.py'),
  }


def test_sites_compare_modules_too(tmp_path):
  of_checkout = sites.source()
  program.import_own([own_files.write(tmp_path, own_files.OBJECTIVE)])
  offered = sites.source()

  assert {**of_checkout, 'imports': own_modules.digests()} == offered
  sites.check_source(offered)
  with pytest.raises(ValueError, match='both must be the same checkout'):
    sites.check_source(of_checkout)
  with pytest.raises(ValueError, match='The offered run was made with parts of theirs'):
    sites.check_source({**of_checkout, 'imports': {'theirs': 'f'}})


_FIELD = 'pull: kinds.NotNegative = 0.1'


@pytest.mark.parametrize(
  ('text', 'message'),
  [
    ('x = 1', 'registers no part'),
    ('\n1 / 0', 'fails by ZeroDivisionError in line 2: division by zero'),
    ('def f(:', 'fails by SyntaxError in line 1'),
    ('import no_such_dependency', "line 1: No module named 'no_such_dependency'"),
    ('import sys\nsys.exit(3)', 'fails by SystemExit in line 2: 3'),
  ],
)
def test_a_module_that_cannot_be_imported_is_refused(tmp_path, text, message):
  with pytest.raises(ValueError, match=message):
    program.import_own([own_files.write(tmp_path, text)])


_ONE, _TWO, _MORE = own_files.OBJECTIVE, own_files.METHOD, own_files.OTHERS
_TYPES = r'field pull of my_part.Mine has the type list\[int\]; it must be bool, int'


@pytest.mark.parametrize(
  ('module', 'old', 'new', 'message'),
  [
    (
      _ONE,
      "'mine'",
      "'simclr'",
      "The objective 'simclr' is in tff_ssl.settings.objectives and in my_part",
    ),
    (_TWO, "'again'", "'fedema'", "The method 'fedema' is in tff_ssl.setti"),
    (_TWO, "'tested'", "'knn'", "The metric 'knn' is in tff_ssl.evaluat"),
    (_TWO, "kind = 'again'", "kind = 'again'; steps = True", 'has steps, or'),
    (_MORE, "'tiny'", "'mlp'", "The encoder 'mlp' is in tff_ssl.settings.enc"),
    (_MORE, "'clipped'", "'plain'", "The aggregation 'plain' is in tff_ssl"),
    (_MORE, "'dim', after", "'mild', after", "The augmentation 'mild' is in"),
    (_MORE, "task('stripes'", "task('digits'", "The task 'digits' is in tasks"),
    (_ONE, _FIELD, 'pull: list[int] = ()', _TYPES),
    (_ONE, _FIELD, 'pull: Weight = 0.0', "'Weight' is not defined"),
    (_ONE, _FIELD, 'pull: kinds.Count = 0', 'pull is 0; it must be a'),
    (_ONE, "'mine'", "'my-loss'", "is 'my-loss'; it must be a word of"),
    (_ONE, '(objectives.Projected)', '', 'must be a frozen dataclass that'),
  ],
)
def test_a_part_that_does_not_fit_is_refused(tmp_path, module, old, new, message):
  with pytest.raises(ValueError, match=message):
    program.import_own([own_files.write(tmp_path, module.replace(old, new))])


@pytest.mark.parametrize(
  ('given', 'message'),
  [
    (['--import=no_such_module'], "has 'no_such_module', which is no module; it must"),
    (['--import', 'no_such.py'], "has 'no_such.py'; there must be such a file"),
    (['--import='], '--import has no value'),
    (['--import=a b'], "has 'a b'; it must be a module"),
    (['--import=os'], '--import=os registers no part'),
    (['--import=/tmp/numpy.py'], 'there must be such a file'),
  ],
)
def test_what_is_no_module_is_refused(given, message):
  with pytest.raises(ValueError, match=message):
    program.import_own(given)


def test_two_modules_of_one_name_are_refused(tmp_path):
  program.import_own([own_files.write(tmp_path, own_files.OBJECTIVE)])
  (tmp_path / 'other').mkdir()

  with pytest.raises(
    ValueError, match="The objective 'mine' is in my_part and in twin"
  ):
    program.import_own([own_files.write(tmp_path, own_files.OBJECTIVE, 'twin')])
  with pytest.raises(ValueError, match='the file must have another name'):
    program.import_own([own_files.write(tmp_path / 'other', own_files.OBJECTIVE)])


_LOSS_IS = 'loss = contrastive'


@pytest.mark.parametrize(
  ('line', 'message'),
  [
    ('loss = tf.no_such(f)', "AttributeError in line {} of my_part: module 'tensorfl"),
    (
      'loss = tf.zeros([7, 3]) * f',
      'Dimensions must be equal, .*, in line {} of my_pa',
    ),
    (
      'loss = tf.reduce_mean(f * tf.reduce_sum(g, axis=1))',
      'InvalidArgumentError, perhaps of my_part: Incompatible shapes: ',
    ),
  ],
)
def test_a_fault_in_a_loss_is_told_with_its_line(tmp_path, line, message):
  lines = own_files.OBJECTIVE.splitlines()
  (place,) = [k for k, each in enumerate(lines) if _LOSS_IS in each]
  lines[place] = f'    {line}'
  given = own_files.write(tmp_path, '\n'.join(lines))
  flags = '--objective=mine', *_SMALL, f'--run_dir={tmp_path}/run'
  with pytest.raises(Exception) as caught:
    in_process.call(fedavg_ssl, given, *flags, '--evaluation=methods=knn')
  assert re.match(message.format(place + 1), program._sentence(caught.value))
