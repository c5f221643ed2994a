"""Names of numbers in trackers, of which none continues another at '/'.

MLflow keeps numbers in files: 'accuracy' is then no folder for 'accuracy/low'.
"""

import hashlib
import re

# What is written in place of '%', and what else MLflow refuses in a name.
_PERCENT = ' percent'
_REFUSED = re.compile(r'[^\w.\- ]')
# Names of parts that can be told from each other once they are joined.
_PLACE, _LAST = re.compile(r'[\w.\-%]+'), re.compile(r'[\w.\-%][\w.\- %]*')
# The longest part of a name, in bytes of a file's name, and what is kept of it.
_LONG, _KEPT = 200, 50


def shown(name: str) -> str:
  """Returns the name of a number in all trackers: a group, '/' and the last part.

  'metrics/knn/10%/accuracy/low' is 'metrics knn 10 percent accuracy/low'. So no name
  continues another at '/', whatever classes are named. If different names could become
  one, or one is long, it ends in a digest.

  Args:
    name: Such as 'metrics/client_work/loss'.
  """
  *places, last = name.split('/')
  parts = [' '.join(places), last]
  is_plain = (
    all(map(_PLACE.fullmatch, places))
    and bool(places and _LAST.fullmatch(last))
    and _PERCENT.strip() not in name
    and last not in ('.', '..')
    and max(len(part.encode()) for part in parts) <= _LONG
  )
  group, last = (_REFUSED.sub('_', part.replace('%', _PERCENT)) for part in parts)
  if is_plain:
    return f'{group}/{last}'
  digest = hashlib.blake2b(name.encode(errors='backslashreplace'), digest_size=4)
  return f'{group[:_KEPT] or "run"}/{last[:_KEPT]} {digest.hexdigest()}'
