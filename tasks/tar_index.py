"""Where the files of a .tar are, and what else it holds."""

import collections
from collections.abc import Iterable, Iterator
import posixpath
import tarfile

from tasks import ignored_files

# Links that lead to links: more than this is a circle, as for Linux.
_MOST_LINKS = 40


def build(
  members: Iterable[tarfile.TarInfo],
) -> tuple[dict[str, tuple[int, int]], dict[str, list[str]], list[str]]:
  """Returns where each file is, what else there is by why it is aside, empty folders.

  A link stands for the file of the archive that it leads to. Names are plain paths
  within the archive: `/a/x`, `./a/x` and `b/../a/x` are `a/x`.

  Args:
    members: What the archive holds, in its order.
  """
  pieces: dict[str, tuple[int, int]] = {}
  links: dict[str, str] = {}
  special: dict[str, None] = {}
  aside: dict[str, list[str]] = collections.defaultdict(list)
  folders = set()
  for member in members:
    name = _plain(member.name)
    if name.partition('/')[0] == '..':
      if not member.isdir():
        aside[ignored_files.OUTSIDE].append(member.name)
      continue
    if member.isdir():
      folders.add(name)
      continue
    if name in pieces or name in links or name in special:
      # Of files with the same name the last counts, as when they are unpacked.
      aside[ignored_files.REPLACED].append(name)
    links.pop(name, None)
    special.pop(name, None)
    # What a hard link leads to is named as in the archive, not from the link's folder.
    target = _plain(member.linkname) if member.islnk() else member.linkname
    if member.islnk() and target in pieces:
      pieces[name] = pieces[target]
      continue
    # A sparse file is not one piece.
    if member.isfile() and not member.issparse():
      pieces[name] = member.offset_data, member.size
      continue
    pieces.pop(name, None)
    if member.issym():
      links[name] = posixpath.normpath(posixpath.join(posixpath.dirname(name), target))
    elif member.islnk():
      links[name] = target
    else:
      special[name] = None
  within = {folder for name in (*pieces, *links, *special) for folder in _around(name)}
  for name in links:
    target = name
    for _ in range(_MOST_LINKS):
      target = links.get(target, target)
    if target in pieces:
      pieces[name] = pieces[target]
    else:
      why = ignored_files.AGAIN if target in folders | within else ignored_files.BROKEN
      aside[why].append(name)
  aside[ignored_files.SPECIAL] = list(special)
  inner = {posixpath.dirname(folder) for folder in folders}
  return pieces, dict(aside), sorted(folders - within - inner - {'', '.'})


def _plain(name: str) -> str:
  """Returns a name in an archive as a path from there, as when it is unpacked."""
  return posixpath.normpath(name.lstrip('/'))


def _around(name: str) -> Iterator[str]:
  """Yields the folders around a file, from the innermost on."""
  while name := posixpath.dirname(name.rstrip('/')):
    yield name
