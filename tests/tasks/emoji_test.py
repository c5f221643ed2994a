"""Emoji: pictures out of the sheet, names as n-grams, cases that stay together."""

import json

import numpy as np
import pytest

from tasks import emoji
from tests.worlds import data_sets


def _all(task):
  """The examples of both splits by the column and row of their picture."""
  found = {}
  for split in (task.train, task.test):
    for k in range(len(split)):
      red, green, _ = split['left'][k, 0, 0]
      found[red // 40, green // 100] = (
        split['left'][k],
        split['right'][k],
        task.label_names[split.label[k]],
        task.case_names[split.case[k]],
      )
  return found


def test_pictures_are_cut_out_and_laid_on_white(tmp_path):
  found = _all(emoji.load(data_sets.emoji_package(tmp_path)))
  assert found.keys() == {(0, 0), (1, 0), (2, 0), (3, 0), (0, 1), (1, 1), (2, 1)}
  for (column, row), (picture, *_) in found.items():
    assert picture.shape == (32, 32, 3)
    assert np.all(picture[:16] == (40 * column, 100 * row, 7))
    assert np.all(picture[16:] == 255)


def test_categories_are_labels_and_skin_tones_are_of_one_case(tmp_path):
  found = _all(emoji.load(data_sets.emoji_package(tmp_path)))
  assert found[0, 0][2:] == ('Animals & Nature', 'dog face')
  hands = [found[column, 0] for column in (1, 2, 3)]
  assert {each[2:] for each in hands} == {('People & Body', 'waving hand')}
  # A tone is of the words.
  assert not np.array_equal(hands[0][1], hands[1][1])
  np.testing.assert_array_equal(
    [each[1] for each in hands],
    emoji.encode_text(
      [
        'waving hand',
        'waving hand light skin tone',
        'waving hand light skin tone dark skin tone',
      ]
    ),
  )
  # Words of the name and the short names, each once.
  np.testing.assert_array_equal(found[1, 1][1], emoji.encode_text(['rose red'])[0])


def test_classes_are_described_by_their_names_and_subcategories(tmp_path):
  described = emoji.load(data_sets.emoji_package(tmp_path)).described
  texts = ['animals & nature', 'animal mammal', 'plant flower']
  texts += ['people & body', 'hand open', 'family']
  np.testing.assert_array_equal(described.examples, emoji.encode_text(texts))
  assert (described.field, described.label.tolist()) == ('right', [0, 0, 0, 1, 1, 1])


def test_texts_that_share_words_are_near():
  texts = ['Cat Face', 'cat face with tears', 'fire engine']
  cat, crying, engine = emoji.encode_text(texts).astype(np.float64)
  assert np.linalg.norm(cat) == pytest.approx(np.sqrt(emoji.TEXT_FEATURES))
  assert cat @ crying > 0.5 * emoji.TEXT_FEATURES > 2.5 * abs(cat @ engine)


def test_folders_other_than_emoji_datasource_are_named(tmp_path):
  folder = data_sets.emoji_package(tmp_path)
  listed = json.loads((folder / 'emoji.json').read_text())
  for content, message in (
    ('{', r'emoji\.json is not JSON'),
    (json.dumps([{'name': 'x'}]), "has an entry without 'category'; each must"),
    (json.dumps([5]), r'emoji\.json has an entry that cannot be read'),
    (json.dumps([{**listed[0], 'unified': 7}]), r'be read \(unified is 7\); each'),
    (json.dumps([{**listed[0], 'sheet_x': 'left'}]), r"be read \(.*'left'\); each"),
    (json.dumps([{**listed[0], 'sheet_y': float('inf')}]), r'be read \(.*infinity'),
    (
      json.dumps([{**listed[0], 'sheet_y': -1}]),
      'places a picture at -33, 1 to -1, 33',
    ),
    ('[]', 'lists 0 emoji with a picture'),
    (
      json.dumps([{**listed[0], 'sheet_x': 9}]),
      'has 68 x 136 pixels; its list places a p',
    ),
  ):
    (folder / 'emoji.json').write_text(content)
    with pytest.raises(ValueError, match=message):
      emoji.load(folder)
  (folder / 'emoji.json').write_text(json.dumps(listed))
  (folder / 'img/google/sheets/32.png').write_bytes(b'no picture')
  with pytest.raises(ValueError, match=r'32\.png is not a picture'):
    emoji.load(folder)
