"""Names of splits, as people write them, and folders that are splits."""

import collections
from collections.abc import Collection, Iterable, Mapping, Sequence
import posixpath
import re

from tasks import intake
from tff_ssl.computing import inert

TRAIN, VALIDATION, TEST = 'train', 'validation', 'test'
SPLITS = (TRAIN, VALIDATION, TEST)
_WORDS = {
  **dict.fromkeys(('train', 'training'), TRAIN),
  **dict.fromkeys(('validation', 'validate', 'valid', 'val', 'dev'), VALIDATION),
  **dict.fromkeys(('test', 'testing'), TEST),
}
_NAME = re.compile(rf'({"|".join(_WORDS)})(set|data|images)?')
# What makes data a layout of splits rather than folders of any names.
_SEVERAL = 2


def role(name: str) -> str | None:
  """Returns the split that a name says, one of `SPLITS`; None if it says none.

  Args:
    name: Such as 'Train', 'val', 'Test set'.
  """
  match = _NAME.fullmatch(re.sub(r'[-_\s]', '', name.casefold()))
  return _WORDS[match.group(1)] if match else None


def roles(names: Iterable[str]) -> tuple[dict[str, str], list[intake.Finding]]:
  """Returns the split of each name that says one, and what must be said of it.

  Where there is no test split, the validation split is what is tested on: with `train`
  and `val` alone, `val` is not meant for choosing settings.

  Args:
    names: Names of splits; others are left out.
  """
  splits = {name: own for name in names if (own := role(name)) is not None}
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
  outermost = {name.partition('/')[0] for name in inside}
  splits, findings = roles(sorted(outermost))
  counted = collections.Counter(splits.values())
  others = sorted(outermost - splits.keys())
  if len(splits) >= _SEVERAL:
    twice = [name for name, own in splits.items() if counted[own] > 1]
    shown = ', '.join(sorted(splits))
    if others:
      raise ValueError(
        f'{path} holds {shown}, which are splits, and {intake.some(others)} with '
        'images, which must be in one of them or elsewhere.'
      )
    if twice or TRAIN not in counted:
      raise ValueError(
        f'{path} holds {shown}; of folders that are splits there must be one for '
        'training, one to test on, and no two for the same.'
      )
    return splits, findings
  _refuse_within(path, _folders(inside))
  said = 'warning: not taken for a split, because there is no other'
  return {}, [intake.finding('splits', splits, said, costs=True)] if splits else []


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
    inner_splits = sorted(name for name in inner if role(name))
    if len({role(name) for name in inner_splits}) >= _SEVERAL:
      raise ValueError(
        f'{path} holds the splits {", ".join(inner_splits)} in '
        f'{inert.line(folder)}; splits must be the outermost folders, around '
        'all images.'
      )
