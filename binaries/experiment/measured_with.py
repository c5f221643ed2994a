"""Settings with which numbers were measured, where they are not those of the run.

`binaries.evaluate` may measure with others than config.json has. Beside the numbers
there is then:
  knn/10%/knn_k                 the neighbours that voted
  finetune/10%/finetune_steps   the most steps
  finetune/10%/finetune_rate    the rate; 0: it was chosen
  supervised_from_scratch/finetune/10%/supervised_steps
"""

from collections.abc import Iterable, Mapping, MutableMapping
import os

from binaries.config import evaluations
from binaries.experiment import precision_marks
from tff_ssl.evaluation import finetune_search
from tff_ssl.evaluation import intervals
from tff_ssl.evaluation import method_names
from tff_ssl.runs import run_config as stored_config

_Settings = Mapping[str, tuple[str, ...]]
# The settings of each method; training from scratch is called finetune too.
_OF_ENCODERS: _Settings = {
  'knn': ('knn_k',),
  'finetune': ('finetune_steps', 'finetune_rate'),
}
_OF_SCRATCH: _Settings = {'knn': ('knn_k',), 'finetune': ('supervised_steps',)}
# Without those of training from scratch, which no encoder shares.
_COMPARED = (precision_marks.NAME, 'knn_k', 'finetune_steps', 'finetune_rate')
_BESIDE = (
  precision_marks.NAME,
  *method_names.MEASURED_WITH,
  *finetune_search.Chosen._fields,
)


def add(
  numbers: MutableMapping[str, float],
  own: evaluations.Evaluation,
  folder: str | os.PathLike[str],
  from_scratch: bool = False,
) -> None:
  """Adds the settings that are not those of a run to numbers measured with them.

  Args:
    numbers: Numbers of one encoder.
    own: The settings that they were measured with.
    folder: The run folder.
    from_scratch: Whether the encoder was trained from scratch, with labels alone.
  """
  stored = stored_config.read(folder)['config'].get('evaluation', {})
  methods = _OF_SCRATCH if from_scratch else _OF_ENCODERS
  for place in {_place(name) for name in numbers}:
    for field in methods.get(place.rpartition('/')[0].rpartition('/')[2], ()):
      value = getattr(own, field)
      if stored.get(field, value) != value:
        numbers[f'{place}/{field}'] = float(value or 0)


def overwrite(
  stored: MutableMapping[str, float], fresh: Mapping[str, float], start: str = ''
) -> None:
  """Overwrites numbers, and drops intervals and settings of the old ones.

  Args:
    stored: Numbers of an evaluation.
    fresh: Numbers that are measured again, or for the first time.
    start: What the names of these begin with in `stored`.
  """
  changed = {
    _place(name)
    for name, value in fresh.items()
    if name.endswith(method_names.SCORES) and stored.get(start + name, value) != value
  }
  known = [n.removeprefix(start) for n in stored if n.startswith(start)]
  old = [n for n in known if intervals.is_detail(n) and _place(n) in changed]
  for name in {*old, *beside(fresh, known)}:
    del stored[start + name]
  stored.update((start + name, value) for name, value in fresh.items())


def beside(names: Iterable[str], numbers: Iterable[str]) -> list[str]:
  """Returns the names of what is said beside numbers, such as of their settings.

  Args:
    names: Names of the numbers.
    numbers: Names of all numbers of the same encoder.
  """
  places = {_place(name) for name in names} - {''}
  return [n for n in numbers if n.rpartition('/')[2] in _BESIDE and _place(n) in places]


def is_alike(
  name: str, numbers: Mapping[str, float], others: Mapping[str, float]
) -> bool:
  """Returns whether a number of two encoders was measured with the same settings.

  Args:
    name: Its name.
    numbers: All numbers of one encoder.
    others: All numbers of the other.
  """
  beside = [f'{_place(name)}/{field}' for field in _COMPARED]
  return all(numbers.get(each) == others.get(each) for each in beside)


def _place(name: str) -> str:
  """Returns the method and the share of the labels in a name; '' if it has none."""
  parts = name.split('/')
  shares = [k for k, part in enumerate(parts) if part.endswith('%')]
  return '/'.join(parts[: shares[0] + 1]) if shares else ''
