import hashlib
import json

import pytest

from tff_ssl.evaluation import recalls
from tff_ssl.reporting import model_card


@pytest.fixture
def folder(tmp_path):
  (tmp_path / 'encoder.keras').write_bytes(b'weights')
  card = {
    'encoder': 'conv2',
    'algorithm': 'dcco',
    'data': 'digits: train 3 images',
    'rounds': 7,
    'input': 'pixels in [0, 1]',
    'parameters': 12,
  }
  (tmp_path / 'encoder.json').write_text(json.dumps(card))
  config = {
    'config': {
      'partition': 'iid:clients=3',
      'seed': 4,
      'clients': {'kind': 'sgd', 'epochs': 5},
      'run_dir': 'mine',
    },
    'neutral': ['run_dir'],
    'task': 'abc',
    'command': ['binaries.dcco', '--run_dir=my runs'],
  }
  (tmp_path / 'config.json').write_text(json.dumps(config))
  numbers = {
    'round': 7,
    'knn/10%/accuracy': 0.25,
    'knn/10%/recall/3': 0.5,
    'pixels/knn/10%/accuracy': 0.375,
    'random_encoder/knn/10%/accuracy': 0.125,
    'classifier/accuracy': 0.75,
    'validation/classifier/accuracy': 0.625,
  }
  (tmp_path / 'evaluation.json').write_text(json.dumps(numbers))
  return tmp_path


def _add(path, **values):
  path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


def test_a_card_tells_what_the_run_knows(folder):
  hashed = {'encoder.keras': folder / 'encoder.keras'}
  text = model_card.build(folder, hashed)
  for part in (
    '# conv2, trained by dcco\n',
    '- Task: digits: train 3 images\n',
    '- partition: iid:clients=3\n',
    '- clients: sgd\n- clients.epochs: 5\n',
    '- dcco, 7 rounds\n',
    "    python -m binaries.dcco '--run_dir=my runs'\n",
    '| Number | Trained | Its inputs | Untrained |\n| --- | --- | --- | --- |\n',
    '| knn/10%/accuracy | 25.0% | 37.5% | 12.5% |\n',
    '| classifier/accuracy | 75.0% |  |  |\n',
    'No privacy is guaranteed',
    f'    {hashlib.sha256(b"weights").hexdigest()}  encoder.keras\n',
  ):
    assert part in text, part
  # Classes are in the file.
  assert 'recall' not in text
  # Where its files are is nobody's matter.
  assert 'mine' not in text
  assert 'baselines=true' not in text
  # The table is of the test examples.
  assert 'validation' not in text


def test_scores_stand_beside_those_of_what_the_run_started_from(folder):
  name = 'knn/10%/accuracy'
  ends = {f'{name}/low': 0.2, f'{name}/high': 0.3}
  _add(folder / 'evaluation.json', **{f'initial_encoder/{name}': 0.225}, **ends)
  assert (
    '| Number | Trained | 95 % interval | Its inputs | Started from | Untrained |\n'
    '| --- | --- | --- | --- | --- | --- |\n'
    f'| {name} | 25.0% | 20.0% to 30.0% | 37.5% | 22.5% | 12.5% |\n'
  ) in model_card.build(folder, {})


def test_a_card_without_the_untrained_encoder_says_how_to_evaluate_it(folder):
  numbers = {'round': 7, 'knn/10%/accuracy': 0.25}
  (folder / 'evaluation.json').write_text(json.dumps(numbers))
  command = (
    f'    python -m binaries.evaluate --evaluation=baselines=true --run={folder}\n'
  )
  assert command in model_card.build(folder, {})
  # Nor is the place of a run on a card that is given away.
  assert str(folder) not in model_card.build(folder, {}, is_public=True)


def test_privacy_is_what_the_encoder_s_card_promises(folder):
  _add(
    folder / 'encoder.json',
    privacy={'epsilon': 2.5, 'noise': {'updates': 1.5}, 'protected': ['a', 'b']},
  )
  text = model_card.build(folder, {})
  assert '- epsilon: 2.5\n- noise: updates 1.5\n- protected: a; b\n' in text
  assert 'No privacy is guaranteed' not in text


def test_confusions_on_a_card_have_the_names_of_classes(folder):
  confused = {'knn/10%/confusion/0/0': 1.0, 'knn/10%/confusion/1/0': 2.0}
  _add(folder / 'evaluation.json', **confused)
  assert '| class 1 ' in model_card.build(folder, {})
  (folder / 'labels.json').write_text('["wasp", "bee"]')
  text = model_card.build(folder, {})
  assert '| true class   |   as wasp |   as bee |' in text
  assert "- All 3 test examples are called 'wasp' by knn 10%: 33.3% is " in text
  # Names of classes are not given away.
  assert 'wasp' not in model_card.build(folder, {}, is_public=True)


def test_card_of_a_classifier_begins_with_what_it_takes_and_answers(folder):
  (folder / 'evaluation.json').write_text('{"round": 7, "knn/10%/accuracy": 0.25}')
  tested = recalls.Tested(9, (0.5, 0.2, 0.8, 12.0), {'ant': (0.25, 0.1, 0.4, 8.0)})
  of_classifier = {
    'classes': 'ant, bee',
    'takes': 'pictures of any size',
    'made': 'It was fitted',
    'tested': tested,
    'threshold': None,
  }
  hashed = {'classify.py': folder / 'config.json'}
  text = model_card.build(folder, hashed, classifier=of_classifier)
  first, rest = text.split('## How often it is right\n')
  assert first == (
    '# A classifier: ant, bee\n\n'
    'Takes files of pictures of any size; answers with one of these classes, and the '
    'probability of each.\n\n'
    'It was fitted. The encoder is conv2, trained by dcco on the data below.\n\n'
  )
  assert '| ant | 25.0% | 10.0% to 40.0% | 8 |\n' in rest.partition('##')[0]
  digest = hashlib.sha256(b'weights').hexdigest()
  assert f'- Made from encoder.keras of the run, SHA-256 {digest}\n' in rest
  hashes = rest.partition('## Hashes')[2]
  assert 'classify.py' in hashes
  assert 'encoder.keras' not in hashes
  # What a command names is on the machine of whoever made it.
  assert 'my runs' not in text
  assert str(folder) not in text
  assert '\n## Results of the encoder, with other classifiers\n\n' in rest
  assert '\n## Results\n\n' in model_card.build(folder, {})


def test_card_of_private_run_omits_private_entries(folder):
  hidden = ('abc', 'seed: 4', 'my runs', '25.0%', 'clients: sgd')
  named = ('partition', 'seed')
  plain = model_card.build(folder, {})
  assert all(each in plain for each in hidden)
  advised = 'Next: more rounds.'
  assert f'- {advised}\n' in model_card.build(folder, {}, advised=advised)
  public = model_card.build(folder, {}, is_public=True, public=named, advised=advised)
  assert advised not in public
  _add(folder / 'encoder.json', privacy={'epsilon': 2.5})
  assert 'partition' not in model_card.build(folder, {})
  for text in (public, model_card.build(folder, {}, public=named)):
    assert not any(each in text for each in hidden)
    assert '- partition: iid:clients=3\n' in text
  # Secure sums promise nothing of the encoder.
  _add(folder / 'encoder.json', privacy={'epsilon': None, 'promise': 'sums'})
  assert all(each in model_card.build(folder, {}) for each in hidden)


def test_unprotected_export_replaces_promise_by_its_reason(folder):
  _add(folder / 'encoder.json', privacy={'epsilon': 2.5})
  text = model_card.build(folder, {}, unprotected='It was fitted on labels.')
  assert '## Privacy\n\nIt was fitted on labels.\n' in text
  assert 'epsilon' not in text


def test_without_what_is_known_of_an_encoder_there_is_no_card(folder):
  (folder / 'encoder.json').unlink()
  with pytest.raises(ValueError, match=r'encoder\.json is missing'):
    model_card.build(folder, {})
