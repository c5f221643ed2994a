"""What a run trained on is not held out by a run from its weights, under any name."""

import dataclasses
import json

import numpy as np
import pytest

from binaries import evaluate
from binaries.building import data
from binaries.config import run_config
from binaries.experiment import init_from
from binaries.experiment import membership
from binaries.experiment import private
from tasks import provenance
from tasks import registry
from tasks import task_types
from tests.binaries import in_process
from tests.worlds import pictures
from tff_ssl.runs import run_config as stored_config
from tff_ssl.storage import memory


def _task(rows, name='cases', with_clients=True):
  """Makes a task of rows: name, client, label, split, content (one letter each)."""
  rows = sorted(rows)
  clients = sorted({row[1] for row in rows})
  examples = task_types.Examples(
    {'image': np.array([ord(row[4]) for row in rows], np.uint8).reshape(-1, 1, 1, 1)},
    np.array(['ab-'.index(row[2]) % 2 - (row[2] == '-') for row in rows], np.int32),
    np.arange(len(rows)),
    np.arange(len(rows)),
    np.array([clients.index(row[1]) for row in rows]) if with_clients else None,
  )
  split = np.array([row[3] for row in rows])
  return task_types.Task(
    name,
    ('a', 'b'),
    examples.take(np.flatnonzero(split == 't')),
    examples.take(np.flatnonzero(split == 'x')),
    examples.take(np.flatnonzero(split == 'v')) if 'v' in split else None,
    client_names=tuple(clients) if with_clients else (),
    files=provenance.Files('data', tuple(row[0] for row in rows)),
    digests=tuple(row[4] for row in rows),
    grows=True,
  )


# Pictures 1 to 6, of clients P, Q, R.
_OLD = ['1PatA', '2PbtB', '3QatC', '4QbtD', '5RaxE', '6RbxF']


def _run(folder, task, **settings):
  """Makes what is read of the folder of a run."""
  folder.mkdir()
  own = run_config.to_json(in_process.read('dcco', task=task.name, **settings))
  config = stored_config.build(own, task.fingerprint())
  (folder / 'config.json').write_text(json.dumps(config))
  membership.write(folder, task)
  return folder


def _said(source, task, line=''):
  try:
    membership.check_unseen(source, in_process.read('dcco', line), task)
  except ValueError as error:
    return str(error)
  return ''


@pytest.mark.parametrize(
  ('rows', 'said'),
  [
    (_OLD, ''),
    # R may train now; S is new.
    (['1PatA', '5RatE', '6RbtF', '7SaxG'], ''),
    (['1PatA', '3QaxC', '4QbxD'], '1 of the 1 test clients (Q)'),
    (['1PatA', '3QaxC', '5RaxE', '7SaxG'], '1 of the 3 test clients (Q)'),
    (['1PavA', '3QatC', '5RaxE'], '1 of the 1 validation clients (P)'),
    # Under another name, and another client's.
    (['1PatA', '9TaxC', '5RaxE'], '1 of the 2 test clients (T)'),
    # Q has another picture, among pictures of the same data.
    (['1PatA', '9QaxH', '5RaxE'], '1 of the 2 test clients (Q)'),
    # A further copy of a picture that is still trained on says nothing of Q.
    (['1PatA', '2PbtB', '9TaxA'], ''),
  ],
)
def test_training_examples_are_not_held_out(tmp_path, rows, said):
  run = _run(tmp_path / 'run', _task(_OLD))
  for source in (run, run / 'encoder.keras', run / 'clients' / 'P' / 'encoder.keras'):
    answer = _said(source, _task(rows))
    assert said in answer
    assert bool(answer) == bool(said)
  if said:
    assert answer.startswith(
      f'{run}/clients/P/encoder.keras was trained on {said}; they must be'
    )
  # Without clients images count.
  alone = _run(tmp_path / 'alone', _task(_OLD, with_clients=False))
  moved = _said(alone, _task(['1-atA', '3-axC', '5-axE'], with_clients=False))
  assert 'was trained on 1 of the 2 test images (3); ' in moved


def _said_to_private(source, task):
  line = '--aggregation=private:noise_multiplier=1,update_clip=1'
  config = in_process.read('dcco', f'{line} --init_from={source}', task=task.name)
  try:
    private.check_task(config, task)
  except ValueError as error:
    return str(error)
  return ''


@pytest.mark.parametrize(
  ('rows', 'said'),
  [
    # The run trained on A to D, and was tested on E and F.
    (_OLD, '4 of the 4 training examples'),
    (['1PaxA', '2QbtB', '7SatG'], '1 of the 2 training examples'),
    (['9TatA', '7SaxG'], '1 of the 1 training examples'),
    (['5RatE', '7SatG', '1PaxA'], ''),
  ],
)
def test_a_private_run_starts_from_no_run_that_trained_on_its_examples(
  tmp_path, rows, said
):
  run, task = _run(tmp_path / 'run', _task(_OLD)), _task(rows)
  # Of another size, but with the same content.
  larger = [
    each.with_fields(image=each.image.repeat(2, 1)) for each in (task.train, task.test)
  ]
  task = dataclasses.replace(task, train=larger[0], test=larger[1])
  for place in ('', 'encoder.keras', 'clients/P/encoder.keras', 'export/model.keras'):
    answer = _said_to_private(run / place, task)
    assert (f'and is a run on {said}; what that run learnt' in answer) == bool(said)
    assert bool(answer) == bool(said)
  (run / membership.NAME).unlink()
  assert 'are not known, because it has no examples.json' in _said_to_private(run, task)


@pytest.mark.parametrize(
  ('before', 'now', 'refused'),
  [
    ('digits', 'digits', True),
    ('digits', 'digits_halves', True),
    ('digits_halves', 'digits', True),
    ('cifar10', 'digits', False),
    ('cases', 'digits', False),
  ],
)
def test_of_published_data_the_name_counts(tmp_path, before, now, refused):
  published = dataclasses.replace(_task(_OLD), digests=(), grows=False)
  _run(tmp_path / 'run', dataclasses.replace(published, name=before))
  # Split otherwise.
  own = dataclasses.replace(
    published, name=now, train=published.test, test=published.train
  )
  said = _said_to_private(tmp_path / 'run', own)
  assert ('is a run on the same examples; ' in said) == refused
  assert bool(said) == refused


def test_weights_beside_the_configuration_of_something_else_are_nobodys(tmp_path):
  (tmp_path / 'config.json').write_text('{"model_type": "vit"}')
  assert not _said_to_private(tmp_path / 'model.safetensors', _task(_OLD))


def test_equal_names_in_other_data_are_others_and_this_is_said(tmp_path, capsys):
  run = _run(tmp_path / 'run', _task(_OLD))
  assert not _said(run, _task(['1PaxX', '2QaxY', '3SatZ']))
  assert '2 test clients have names of those that' in capsys.readouterr().out


def test_that_a_run_without_the_file_is_not_compared_is_said(tmp_path, capsys):
  run = _run(tmp_path / 'run', _task(_OLD))
  (run / membership.NAME).unlink()
  assert not _said(run, _task(_OLD))
  assert 'is compared with nothing' in capsys.readouterr().out


def test_published_data_are_refused_only_with_another_validation_share(tmp_path):
  task = registry.load('digits')
  run = _run(tmp_path / 'run', task)
  assert not (run / membership.NAME).exists()
  assert not _said(run, task)
  said = _said(run, task, '--data=validation=0.1')
  assert 'trained with --data=validation=none on' in said


def test_a_file_that_is_not_ours_is_a_sentence(tmp_path):
  run = _run(tmp_path / 'run', _task(_OLD))
  for content in ('{"train": 1}', '{"train": {}}', '{"train": {"name": ["a"]}}', '['):
    (run / membership.NAME).write_text(content)
    assert membership.NAME in _said(run, _task(_OLD))


def test_the_file_may_be_as_large_as_memory_allows(tmp_path, monkeypatch):
  run = _run(tmp_path / 'run', _task(_OLD))
  path, moved = run / membership.NAME, _task(['1PatA', '3QaxC', '4QbxD'])
  content = path.read_text()
  assert content.count('\n') == 1
  # As earlier versions wrote it, and large.
  path.write_text(json.dumps(json.loads(content), indent=2) + ' ' * 2**24)
  assert 'was trained on 1 of the 1 test clients (Q)' in _said(run, moved)
  monkeypatch.setattr(memory, 'free', lambda: 20 * 2**24)
  assert 'it must have at most 16,777,216' in _said(run, moved)


@pytest.mark.parametrize(
  ('rows', 'said'),
  [
    ([*_OLD, '7SaxG', '8SbxH'], 'began: 2 pictures were added (7, 8); '),
    (_OLD[1:], 'began: 1 picture was removed (1); '),
    (
      ['1PatA', '2PatB', '3QatX', '4TbtD', '5RaxE', '6RbxF', '8SavG'],
      (
        'began: 1 picture was added (8), 1 has other content (3), 1 has another label '
        '(2), 1 has another client (4); '
      ),
    ),
    (
      ['1PatA', '2PbtB', '3QavC', '4QbvD', '5RaxE', '6RbxF'],
      'began: 2 pictures are in another split (3, 4); ',
    ),
  ],
)
def test_errors_name_what_changed_in_the_data(tmp_path, rows, said):
  run = _run(tmp_path / 'run', _task(_OLD))
  membership.check_same(run, _task(_OLD), 'why')
  with pytest.raises(ValueError, match='have changed since') as error:
    membership.check_same(run, _task(rows), 'that is why')
  assert str(error.value).endswith(said + 'that is why.')
  (run / membership.NAME).unlink()
  with pytest.raises(ValueError, match='not known, because it has no examples'):
    membership.check_same(run, _task(rows), 'that is why')


def test_programs_say_what_was_added_to_the_data_of_a_run(tmp_path):
  def grow(numbers):
    for k in numbers:
      path = tmp_path / 'data' / f'P{k // 2:02d}' / f'{k}.jpg'
      path.parent.mkdir(exist_ok=True, parents=True)
      path.write_bytes(pictures.jpeg(5 * k))

  grow(range(20))
  line = f'--task=folder --data_dir={tmp_path}/data --data=folders=client,image_size=8'
  config = in_process.read('dcco', f'{line} --rounds=1')

  def load():
    return data.load_task(config)

  before = load()
  run = _run(tmp_path / 'run', before, data=config.data, rounds=1)
  grow(range(20, 44))
  added = r'24 pictures were added \(P'
  with pytest.raises(ValueError, match=added) as error:
    in_process.call(evaluate, f'--run={run}', f'--data_dir={tmp_path / "data"}')
  assert f'--transfer=folder --transfer_dir={tmp_path}' in str(error.value)
  with pytest.raises(
    ValueError, match=f'{added}.*--init_from={run} in a new --run_dir'
  ):
    init_from.check_data(config, run, load())
  # Nobody who trained is in the grown test split: a new run may start from the old.
  config = dataclasses.replace(config, init_from=str(run))
  init_from.check_data(config, tmp_path / 'new', load())
  assert len(load().test) > len(before.test)


def test_only_what_a_run_did_not_have_is_tested_on(tmp_path):
  run = _run(tmp_path / 'run', _task(_OLD))
  # R has a further picture, S has a new one and one that was R's.
  grown = _task(['1PatA', '5RaxE', '5RbxH', '6SaxF', '7SaxG', '8TbtI'])
  new = membership.new_to(run, grown)
  assert [chr(pixel) for pixel in new.test.image.ravel()] == ['H', 'G']
  assert len(new.train) == len(grown.train)
  of_cases = dataclasses.replace(
    grown,
    test=dataclasses.replace(grown.test, case=grown.test.client),
    case_level=True,
  )
  with pytest.raises(ValueError, match='had all 4 test examples of the task'):
    membership.new_to(run, of_cases)
  (run / membership.NAME).unlink()
  with pytest.raises(ValueError, match=r'has no examples\.json'):
    membership.new_to(run, grown)
