"""Names of masks: files among pictures that show where a picture's object is.

They are called as their picture, with a word such as `mask` (x_mask.png, x_mask_1.png
and x_seg.png beside x.jpg), or are in a folder of such words beside one of pictures
(images/ and masks/, imagesTr/ and labelsTr/, train/ and train_masks/). A class called
`with_mask`, or `mask` beside `no_mask`, is neither. Whatever ends with
`_segmentation.png` is a mask.
"""

from collections.abc import Iterable, Mapping
import functools
import posixpath
import re

from tasks import images
from tasks import layouts
from tasks import spellings

# The ending under which a mask needs no picture beside it.
SUFFIX = '_segmentation.png'
_SUPERPIXELS = frozenset(('superpixel', 'superpixels'))
_MASKS = _SUPERPIXELS.union(
  ('mask', 'masks', 'segmentation', 'segmentations', 'seg', 'segs', 'gt', 'truth'),
  ('groundtruth', 'label', 'labels', 'annotation', 'annotations', 'annot', 'anno'),
  ('manual', 'trimap', 'trimaps', 'matte', 'mattes'),
)
# Words beside these: 1st_manual, SegmentationClass, ground truth, gtFine.
_BESIDE = frozenset(('st', 'nd', 'class', 'object', 'ground', 'fine', 'binary'))
_PICTURES = frozenset(
  ('image', 'images', 'img', 'imgs', 'picture', 'pictures', 'photo', 'photos', 'data')
  + ('original', 'originals', 'input', 'inputs', 'frames', 'jpegimages', 'raw', 'rgb')
  + ('sat', 'scans', 'png', 'jpg', 'jpeg')
)
_ALL = _MASKS | _BESIDE | _PICTURES
_ANY = re.compile('|'.join(_MASKS), re.IGNORECASE)


# A start asks several times about the same files.
@functools.lru_cache(1)
def find(names: tuple[str, ...]) -> Mapping[str, str]:
  """Returns the masks among files, each with its picture.

  Args:
    names: Names of all files.

  Returns:
    The picture of each mask; '' if no name says which, or it shows no object
    (superpixels).
  """
  listed = [name for name in names if name.lower().endswith(images.SUFFIXES)]
  doubtful = {name: [*_keys(name)] for name in listed if _ANY.search(name)}
  if not doubtful:
    return {}
  of_key: dict[tuple[object, ...], str] = {}
  of_pictures = set()
  for name in listed:
    folder, stem = _parts(name)
    words = spellings.words(stem)
    place, has_masks, has_pictures = _place(folder, False)
    if not (has_masks or _MASKS.intersection(words)):
      of_key.setdefault((place, *_without(words, _PICTURES)), name)
      if has_pictures:
        of_pictures.add(place)
  found = {}
  for name, keys in doubtful.items():
    place, has_masks, _ = _place(posixpath.dirname(name), False)
    picture = next((of_key[key] for key in keys if key in of_key), None)
    if picture is None and (is_sure(name) or (has_masks and place in of_pictures)):
      picture = ''
    if picture is not None:
      shows = not _SUPERPIXELS.intersection(spellings.words(name))
      found[name] = picture if shows else ''
  return found


def is_sure(name: str) -> bool:
  """Returns whether a file is a mask, whatever is beside it."""
  return name.lower().endswith(SUFFIX)


def _parts(name: str) -> tuple[str, str]:
  folder, last = posixpath.split(name)
  return folder, posixpath.splitext(last)[0]


def _keys(name: str) -> Iterable[tuple[object, ...]]:
  """Yields the places and words that the picture of a mask may have."""
  folder, stem = _parts(name)
  words = spellings.words(stem)
  is_marked = bool(_MASKS.intersection(words))
  place, has_masks, _ = _place(folder, is_marked)
  if not (is_marked or has_masks):
    return
  drop = _MASKS | _PICTURES | {'ground'} if is_marked else _PICTURES
  yield (place, *_without(words, drop))
  # Of several masks of a picture each has a number.
  if len(words) > 1 and words[-1].isdecimal() and words[-2] in _MASKS:
    yield (place, *_without(words[:-1], drop))


def _without(words: Iterable[str], others: Iterable[str]) -> tuple[str, ...]:
  return tuple(word for word in words if word not in others)


@functools.lru_cache(2**16)
def _place(folder: str, is_marked: bool) -> tuple[tuple[object, ...], bool, bool]:
  """Returns a folder without what says that it holds masks, or pictures.

  Args:
    folder: The folder.
    is_marked: Whether the file's own name says that it is a mask.

  Returns:
    The words of each folder on the way, and whether one is of masks, and of pictures.
  """
  place: list[tuple[str, ...]] = []
  has_masks = has_pictures = False
  for part in folder.split('/'):
    words = spellings.words(part)
    splits = tuple(word for word in words if word in layouts.WORDS)
    others = [
      word
      for word in words
      if not (word.isdecimal() or word in _ALL or word in layouts.WORDS)
    ]
    if _MASKS.isdisjoint(words):
      shows = not _PICTURES.isdisjoint(words) or (splits and not others)
      has_pictures |= bool(shows)
      place.append(splits if shows else (*words,))
    elif others:
      place.append(_without(words, _MASKS) if is_marked else (*words,))
    else:
      has_masks = True
      place.append(splits)
  return tuple(words for words in place if words), has_masks, has_pictures
