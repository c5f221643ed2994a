"""Files of a data set that are not read: why, and which names tell it."""

import functools

# Why a file is in no list of files to read.
DEBRIS = 'debris of archives and file servers'
LINKED = 'links that lead out'
AGAIN = 'links to folders that are there anyway'
BROKEN = 'links to nothing'
SPECIAL = 'pipes and devices'
REPLACED = 'replaced by later files of their name'
OUTSIDE = 'files whose names lead out of the archive'
# What archive programs, file servers, photo browsers and systems leave, in lower case.
# Folders whose names begin with a dot are debris too, and what is in such a folder.
_DEBRIS_FOLDERS = frozenset(
  ('__macosx', '@eadir', '@tmp', '#recycle', '@recycle', '#snapshot', '$recycle.bin')
  + ('@recently-snapshot', 'system volume information', 'lost+found', '__pycache__')
)
_DEBRIS_FILES = frozenset(
  ('thumbs.db', 'ehthumbs.db', 'desktop.ini', '.ds_store', '.directory', '.localized')
  + ('icon\r', '.picasa.ini', 'picasa.ini', '.nomedia')
)
_DEBRIS_STARTS = ('._', '~$', '.~lock.', '.nfs')
SPREADSHEETS = ('.xlsx', '.xls', '.xlsm', '.ods', '.numbers')
_ARCHIVES = ('.zip', '.gz', '.tgz', '.bz2', '.xz', '.txz', '.zst', '.7z', '.rar')


def is_debris(name: str) -> bool:
  """Returns whether a file of an archive is debris, by its name or its folders."""
  folder, _, last = name.rpartition('/')
  return is_debris_file(last) or _in_debris(folder)


@functools.lru_cache(2**16)
def _in_debris(folder: str) -> bool:
  return any(map(is_debris_folder, folder.split('/')))


def is_debris_folder(name: str) -> bool:
  """Returns whether a folder holds debris; hidden ones do."""
  hidden = name.startswith('.') and name not in ('.', '..')
  return hidden or name.lower() in _DEBRIS_FOLDERS


def is_debris_file(name: str) -> bool:
  """Returns whether a file is debris by its own name, which has no folder."""
  return name.startswith(_DEBRIS_STARTS) or name.lower() in _DEBRIS_FILES


def what_to_do(name: str) -> str | None:
  """Returns what to do with a file that holds data in a form that is not read.

  Args:
    name: Name of the file.

  Returns:
    A part of a sentence; None for a file of any other kind.
  """
  lower = name.lower()
  if lower.endswith(SPREADSHEETS):
    return 'save the spreadsheet as "CSV UTF-8", and give the path of that file'
  if lower.endswith(_ARCHIVES):
    return 'unpack the archive, and give the path of the folder'
  return None
