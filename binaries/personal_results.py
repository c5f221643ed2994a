"""What a run tells of its clients' own encoders: `clients.csv`, and a table.

`clients.csv` gets a row for each client at each evaluation, with its accuracies by the
names of `evaluation.personal`; `binaries.compare` draws them.
"""

import collections

from binaries import results
from tff_ssl.evaluation import personal
from tff_ssl.reporting import table as table_lib
from tff_ssl.runtime import run_folder
from tff_ssl.runtime import table as csv_lib

_ACCURACY = '/accuracy'
_TITLES = {**results.COLUMNS, personal.LOCAL_KNN: 'local kNN'}


def write(
  folder: run_folder.RunFolder, round: int, accuracies: personal.Accuracies
) -> results.Numbers:
  """Writes the accuracies of clients to `clients.csv`.

  What it holds of the same round, by other methods, stays; what it holds of later ones
  is of a run that was killed, and goes.

  Args:
    folder: Of the run.
    round: The round whose encoders were evaluated.
    accuracies: Of the clients.

  Returns:
    Their mean and spread, by name.
  """
  path = folder.path / csv_lib.CLIENTS
  file = csv_lib.Table(path)
  rows: dict[str, dict[str, csv_lib.Cell]] = collections.OrderedDict()
  for known in file.rows():
    if known['round'] == str(round):
      rows[known[csv_lib.CLIENT]] = {k: v for k, v in known.items() if k != 'round'}
  for name, of_clients in accuracies.items():
    for client_id, accuracy in of_clients.items():
      row = rows.setdefault(client_id, {csv_lib.CLIENT: client_id})
      row[name + _ACCURACY] = accuracy
  file.replace(round, rows.values())
  return personal.summarize(accuracies)


def table(numbers: results.Numbers) -> str:
  """Lays out personal accuracies: a row for each method and share of the labels.

  Args:
    numbers: Of a run, with those of the global encoder as `fairness/...`.
  """
  rows = []
  for name, value in numbers.items():
    if name.startswith('personal/') and name.endswith(_ACCURACY):
      method, share = name.removeprefix('personal/').removesuffix(_ACCURACY).split('/')
      row = {
        'personal': _TITLES[method],
        'labels': results.labels(share, numbers),
        'clients': int(numbers['personal/clients']),
        'mean': value,
        'deviation': numbers[f'{name}/std'],
        'worst decile': numbers[f'{name}/worst_decile'],
      }
      of_global = numbers.get(f'fairness/{method}/{share}/accuracy/mean')
      rows.append(row if of_global is None else {**row, 'global mean': of_global})
  names = ('mean', 'deviation', 'worst decile', 'global mean')
  shown = [name for name in names if any(name in row for row in rows)]
  return table_lib.text(
    rows, ['personal', 'labels', 'clients', *shown], percent=tuple(shown)
  )


def has(numbers: results.Numbers, method: str) -> bool:
  """Returns whether the numbers of a run have those of a method.

  Args:
    numbers: Of the run.
    method: One of `personal.METHODS`.
  """
  prefix = f'personal/{personal.prefix(method)}/'
  return any(name.startswith(prefix) for name in numbers)
