"""Names of splits, as people write them, and folders that are splits."""

import collections
from collections.abc import Collection, Iterable, Mapping, Sequence
import posixpath
import re
from typing import NamedTuple

from tasks import intake
from tasks import spellings
from tff_ssl.computing import inert

TRAIN, VALIDATION, TEST = 'train', 'validation', 'test'
SPLITS = (TRAIN, VALIDATION, TEST)
# Tested on, unless something else is.
_EVALUATION = 'evaluation'
# The words for a split; two letters count beside another word alone.
WORDS = {
  **dict.fromkeys(('train', 'training', 'trn', 'tr', 'trainval'), TRAIN),
  **dict.fromkeys(('validation', 'validate', 'valid', 'val'), VALIDATION),
  **dict.fromkeys(('dev', 'devel'), VALIDATION),
  **dict.fromkeys(('eval', 'evaluation'), _EVALUATION),
  **dict.fromkeys(('test', 'tests', 'testing', 'tst', 'ts', 'te'), TEST),
  **dict.fromkeys(('holdout', 'heldout'), TEST),
}
# Words that say nothing beside that of a split, joined to it or not.
_OTHERS = frozenset(
  ('set', 'sets', 'data', 'dataset', 'images', 'image', 'imgs', 'img', 'split')
)
_NAME = re.compile(rf'({"|".join(WORDS)})({"|".join(sorted(_OTHERS))})?')
_HELD_OUT = re.compile(r'(hold|held)[-_\s]out', re.IGNORECASE)
# Alone, words as short as 'te' may be anything, such as a language.
_SHORT = 2
# What makes data a layout of splits rather than folders of any names.
_SEVERAL = 2


class _Reading(NamedTuple):
  """The split that a name says, and the words that it has besides, without numbers."""

  split: str
  rest: tuple[str, ...]


def _read(name: str) -> _Reading | None:
  """Returns what a name says; None if it says no split, or two."""
  name = _HELD_OUT.sub(r'\1out', name)
  if match := _NAME.fullmatch(_joined(name)):
    return _Reading(WORDS[match[1]], ()) if len(name) > _SHORT else None
  words = spellings.words(name)
  found = {word: match[1] for word in words if (match := _NAME.fullmatch(word))}
  said = {WORDS[word] for word in found.values()}
  rest = [w for w in words if not (w in found or w in _OTHERS or w.isdecimal())]
  return _Reading(said.pop(), (*rest,)) if len(said) == 1 else None


def _joined(name: str) -> str:
  return re.sub(r'[-_\s]', '', name.casefold())


def role(name: str) -> str | None:
  """Returns the split that a name says, one of `SPLITS`; None if it says none.

  Args:
    name: Such as 'Train', 'val2017', 'Test set'.
  """
  found = _read(name)
  if found is None or found.rest:
    return None
  return VALIDATION if found.split == _EVALUATION else found.split


def roles(names: Iterable[str]) -> tuple[dict[str, str], list[intake.Finding]]:
  """Returns the split of each name that says one, and what must be said of it.

  Where there is no test split, the validation split is what is tested on: with `train`
  and `val` alone, `val` is not meant for choosing settings.

  Args:
    names: Names of splits; others are left out.
  """
  found = {name: own for name in names if (own := _read(name)) and not own.rest}
  return _tested(found)


def _tested(
  found: Mapping[str, _Reading],
) -> tuple[dict[str, str], list[intake.Finding]]:
  """Chooses the test split where none is called so; see `roles`."""
  said = {own.split for own in found.values()}
  evaluation = VALIDATION if TEST in said else TEST
  splits = {
    name: evaluation if own.split == _EVALUATION else own.split
    for name, own in found.items()
  }
  if TEST in splits.values() or VALIDATION not in splits.values():
    return splits, []
  tested = sorted(name for name, own in splits.items() if own == VALIDATION)
  splits = {name: TEST if name in tested else own for name, own in splits.items()}
  return splits, [intake.finding('splits', tested, 'there is no other test split than')]


def of_folders(
  path: str, inside: Sequence[str]
) -> tuple[dict[str, str], list[intake.Finding]]:
  """Returns the split of each outermost folder, if these are splits.

  Args:
    path: What to call the data in errors.
    inside: Names of the images, without a folder that is around all of them.

  Returns:
    Nothing if the folders are no splits; and what must be said.

  Raises:
    ValueError: Folders are nearly splits: one is in the way, or two are the same, or
      none is for training, or they are within other folders.
  """
  _refuse_within(path, _folders(inside))
  outermost = {name.partition('/')[0] for name in inside}
  loose = [name for name in inside if '/' not in name]
  found, is_layout = _layout(outermost.difference(loose), len(loose))
  if not is_layout:
    alone = sorted(name for name in found if not found[name].rest)
    said = 'warning: not taken for a split, because there is no other'
    return {}, [intake.finding('splits', alone, said, costs=True)] if alone else []
  shown = ', '.join(sorted(found))
  if others := sorted(outermost - found.keys()):
    raise ValueError(
      f'{path} holds {shown}, which are splits, and {intake.some(others)} with '
      'images, which must be in one of them or elsewhere.'
    )
  splits, findings = _tested(found)
  counted = collections.Counter(splits.values())
  rests = {own.rest for own in found.values()}
  if counted.most_common(1)[0][1] > 1 or TRAIN not in counted or len(rests) > 1:
    raise ValueError(
      f'{path} holds {shown}; of folders that are splits there must be one for '
      'training, one to test on, and no two for the same: rename them, or give each '
      'image a split in a manifest.'
    )
  pairs = [f'{name} = {splits[name]}' for name in sorted(splits)]
  if not all(_NAME.fullmatch(_joined(name)) for name in splits):
    findings.append(intake.finding('splits', pairs, 'taken for splits'))
  return splits, findings


def _layout(
  folders: Collection[str], others: int = 0
) -> tuple[dict[str, _Reading], bool]:
  """Returns what folders say that say a split, and whether splits are meant.

  They are if two folders differ in their split alone (seg_train and seg_test), or all
  say a split, of which one is for training and one says nothing else. A class may be
  called `test tube`, and clients Test1 and Test2.

  Args:
    folders: Names of the folders in one.
    others: Number of images beside them.
  """
  found = {name: own for name in folders if (own := _read(name)) is not None}
  by_rest = collections.defaultdict(set)
  for own in found.values():
    by_rest[own.rest].add(own.split)
  differ = any(len(splits) >= _SEVERAL for splits in by_rest.values())
  all_say = len(found) == len(folders) + others >= _SEVERAL
  one_trains = any(TRAIN in splits for splits in by_rest.values())
  return found, differ or (all_say and () in by_rest and one_trains)


def starts(splits: Mapping[str, str], names: Sequence[str]) -> dict[str, str]:
  """Returns how names begin in each folder that is a split.

  Archives often repeat such a folder (seg_train/seg_train/cat), or have one around all
  images of a split (train/images/cat). Neither is a class or a client.

  Args:
    splits: The split of each outermost folder.
    names: Names of the images.
  """
  found = {}
  for folder, split in splits.items():
    found[folder] = f'{folder}/'
    own = [posixpath.dirname(n) for n in names if n.startswith(found[folder])]
    for part in posixpath.commonpath(own).split('/')[1:]:
      said = _read(part)
      if (said is None or said.split != split) and {*spellings.words(part)} - _OTHERS:
        break
      found[folder] += f'{part}/'
  return found


def _folders(names: Iterable[str]) -> Mapping[str, Collection[str]]:
  """Returns the folders in each folder that is not the outermost one."""
  within = collections.defaultdict(set)
  for folder in {posixpath.dirname(name) for name in names}:
    parts = folder.split('/')
    for depth in range(1, len(parts)):
      within['/'.join(parts[:depth])].add(parts[depth])
  return within


def _refuse_within(path: str, within: Mapping[str, Collection[str]]) -> None:
  """Raises ValueError if splits are in a folder that is not around all images."""
  for folder, inner in sorted(within.items()):
    found, is_layout = _layout(inner)
    if is_layout and len({own.split for own in found.values()}) >= _SEVERAL:
      raise ValueError(
        f'{path} holds the splits {", ".join(sorted(found))} in '
        f'{inert.line(folder)}; splits must be the outermost folders, around '
        'all images.'
      )
