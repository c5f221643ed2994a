"""Emoji as two modalities: the picture is `left`, its name and keywords are `right`.

The data come from the npm package emoji-datasource (MIT licence; its pictures have the
licences of their makers):

    npm install emoji-datasource
    python -m binaries.dcco --task=emoji --data_dir=node_modules/emoji-datasource ...
"""

import dataclasses
import os
from typing import Any

import numpy as np
from PIL import Image

from tasks import array_tasks
from tasks import image_opening
from tasks import images
from tasks import sources
from tasks import splits
from tasks import task_types
from tff_ssl.storage import files

# Google's pictures: their set is complete.
_SHEET = 'img/google/sheets/32.png'
_HAS_IMAGE = 'has_img_google'
_LIST = 'emoji.json'
# Side of a picture in the sheet and width of the border around it, in pixels.
_SIZE, _BORDER = 32, 1
_TEST_FRACTION = 0.2
# The category of parts of other pictures: skin tones and hair.
_NO_CATEGORY = 'Component'
_TONES = {
  '1F3FB': 'light skin tone',
  '1F3FC': 'medium light skin tone',
  '1F3FD': 'medium skin tone',
  '1F3FE': 'medium dark skin tone',
  '1F3FF': 'dark skin tone',
}
# Numbers that a text is encoded as; see `encode_text`.
TEXT_FEATURES = 512


@dataclasses.dataclass(frozen=True)
class _Emoji:
  """A picture: where it is in the sheet, what it shows, and in which category."""

  column: int
  row: int
  text: str
  category: str
  case: str


def load(
  data_dir: str | os.PathLike[str] | None,
  image_size: int | None = None,
  seed: int = 0,
) -> task_types.Task:
  """Loads the emoji.

  An emoji with its skin tones is a case, all of it in the training or the test split.

  Args:
    data_dir: The folder of the npm package emoji-datasource.
    image_size: Height and width, in pixels; None for 32.
    seed: Seed of the split into train and test emoji.

  Returns:
    The task: `left` uint8 [n, size, size, 3] on white, `right` float32
    [n, TEXT_FEATURES] (see `encode_text`), the category as label, and classes described
    by the names of the category and its subcategories.

  Raises:
    ValueError: The data are missing or not emoji-datasource's.
  """
  source = _open(data_dir)
  entries, phrases = _read_list(source)
  names = tuple(sorted(phrases))
  cases = sorted({each.case for each in entries})
  place = {name: number for number, name in enumerate(cases)}
  pictures = images.resize(_cut(source, entries), image_size)
  ids = np.arange(len(entries), dtype=np.int64)
  examples = task_types.Examples(
    {'left': pictures, 'right': encode_text([each.text for each in entries])},
    label=np.array([names.index(each.category) for each in entries], np.int32),
    example_id=ids,
    case=np.array([place[each.case] for each in entries], np.int64),
  )
  held_out = splits.hold_out_cases(examples.case, examples.label, _TEST_FRACTION, seed)
  described = [
    (label, text) for label, name in enumerate(names) for text in phrases[name]
  ]
  return array_tasks.split_task(
    'emoji',
    names,
    examples,
    held_out,
    case_names=tuple(cases),
    described=task_types.Described(
      'right',
      encode_text([text for _, text in described]),
      np.array([label for label, _ in described], np.int32),
    ),
  )


def encode_text(texts: list[str]) -> np.ndarray:
  """Encodes texts as hashed character n-grams, which need no vocabulary.

  Args:
    texts: Words, in any case.

  Returns:
    float32 [n, TEXT_FEATURES]: how often each hash occurs among the n-grams of 3 to 5
    characters of each word, including its ends, with the sign that the hash gives it
    (`sklearn`'s `HashingVectorizer`). Each row is scaled to the length
    sqrt(TEXT_FEATURES), so that entries are of the order of 1.
  """
  # Imported here: it takes seconds, for which the other tasks need not wait.
  from sklearn.feature_extraction import text as text_lib

  vectorizer = text_lib.HashingVectorizer(
    analyzer='char_wb', ngram_range=(3, 5), n_features=TEXT_FEATURES, norm='l2'
  )
  encoded = vectorizer.transform(texts).toarray() * np.sqrt(TEXT_FEATURES)
  return encoded.astype(np.float32)


def _open(data_dir: str | os.PathLike[str] | None) -> sources.Source:
  path = sources.data_path(
    'emoji',
    data_dir,
    'the folder of the npm package emoji-datasource '
    '(npm install emoji-datasource: node_modules/emoji-datasource)',
  )
  source = sources.open_source(path)
  missing = [name for name in (_LIST, _SHEET) if name not in source.names]
  if missing:
    raise ValueError(
      f'{path} holds no {missing[0]}; it must be the folder of the npm package '
      'emoji-datasource.'
    )
  return source


def _read_list(source: sources.Source) -> tuple[list[_Emoji], dict[str, list[str]]]:
  """Returns the emoji that have a picture, and the descriptions of each category."""
  where = source.path / _LIST
  listed = files.parse_json(source.read(_LIST), str(where))
  entries: list[_Emoji] = []
  phrases: dict[str, list[str]] = {}
  try:
    for entry in listed:
      if entry['category'] == _NO_CATEGORY:
        continue
      known = phrases.setdefault(entry['category'], [_words(entry['category'])])
      if (subcategory := _words(entry['subcategory'])) not in known:
        known.append(subcategory)
      entries += _pictures(entry)
  except (KeyError, TypeError, AttributeError, ValueError, OverflowError) as error:
    what = f'an entry without {error}'
    if not isinstance(error, KeyError):
      what = f'an entry that cannot be read ({error})'
    raise ValueError(
      f'{where} has {what}; each must have name, short_names, unified, category, '
      'subcategory, sheet_x and sheet_y, as those of emoji-datasource.'
    ) from error
  if not entries:
    raise ValueError(f'{where} lists 0 emoji with a picture; it must list some.')
  return entries, {
    category: phrases[category] for category in {e.category for e in entries}
  }


def _pictures(entry: dict[str, Any]) -> list[_Emoji]:
  """Returns an emoji and its skin tones, as far as there are pictures."""
  words = [entry['name'] or '', *entry['short_names']]
  text = ' '.join(dict.fromkeys(_words(' '.join(words)).split()))
  if not isinstance(entry['unified'], str):
    raise TypeError(f'unified is {entry["unified"]!r}')
  variations = [('', entry), *(entry.get('skin_variations') or {}).items()]
  return [
    _Emoji(
      int(drawn['sheet_x']),
      int(drawn['sheet_y']),
      ' '.join([text, *(_TONES.get(code, '') for code in codes.split('-'))]).strip(),
      entry['category'],
      entry['unified'],
    )
    for codes, drawn in variations
    if drawn.get(_HAS_IMAGE)
  ]


def _words(text: str) -> str:
  """Returns a text in lower case, with blanks in place of `_` and `-`."""
  return ' '.join(text.lower().replace('_', ' ').replace('-', ' ').split())


def _cut(source: sources.Source, entries: list[_Emoji]) -> np.ndarray:
  """Returns the pictures out of the sheet, on white, uint8 [n, 32, 32, 3]."""
  where = source.path / _SHEET
  try:
    with image_opening.opened(source.read(_SHEET)) as (opened, _):
      drawn = opened.convert('RGBA')
  except (OSError, ValueError) as error:
    raise ValueError(f'{where} is not a picture: {error}.') from error
  white = Image.new('RGBA', drawn.size, 'white')
  sheet = np.asarray(Image.alpha_composite(white, drawn))[..., :3]
  step = _SIZE + 2 * _BORDER
  corners = [(e.row * step + _BORDER, e.column * step + _BORDER) for e in entries]
  for y, x in corners:
    if min(y, x) < 0 or y + _SIZE > sheet.shape[0] or x + _SIZE > sheet.shape[1]:
      raise ValueError(
        f'{where} has {sheet.shape[0]} x {sheet.shape[1]} pixels; its list places a '
        f'picture at {y}, {x} to {y + _SIZE}, {x + _SIZE}.'
      )
  return np.stack([sheet[y : y + _SIZE, x : x + _SIZE] for y, x in corners])
