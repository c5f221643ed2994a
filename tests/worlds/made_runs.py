"""Makes run folders as a run leaves them, of numbers that are given."""

from collections.abc import Mapping, Sequence
import csv
import json
import pathlib

from tff_ssl.reporting import run_groups
from tff_ssl.reporting import run_reader
from tff_ssl.runs import class_names

SETTINGS = {'method': 'dcco', 'clients_per_round': 4, 'rounds': 3, 'seed': 0}
NEUTRAL = ('evaluation', 'run_dir', 'runtime')


def nested(settings: Mapping[str, object]) -> dict[str, object]:
  """Returns a configuration whose settings these are (`run_config.settings`)."""
  result: dict[str, object] = {}
  for name, value in sorted(settings.items()):
    part, dot, field = name.partition('.')
    if dot:
      own = result.setdefault(part, {})
      if not isinstance(own, dict):
        own = result[part] = {'kind': own}
      own[field] = value
    else:
      result[name] = value
  return result


def run(
  folder: pathlib.Path,
  settings: Mapping[str, object] | None = None,
  metrics: Mapping[str, Sequence[object]] | None = None,
  system: Mapping[str, Sequence[object]] | None = None,
  evaluation: Mapping[str, object] | None = None,
  classes: Sequence[str] = (),
  **config: object,
) -> pathlib.Path:
  """Makes a run folder.

  Args:
    folder: Made, with its parents.
    settings: Those that are not as in `SETTINGS`, such as {'clients.epochs': 5}.
    metrics: Columns of metrics.csv besides `round`; by default of the loss.
    system: Columns of system.csv besides `round`; no file without one.
    evaluation: Contents of evaluation.json besides `round`; no file without one.
    classes: Names of the classes; no file without any.
    **config: Further contents of config.json.

  Returns:
    The folder.
  """
  folder.mkdir(parents=True)
  own = {**SETTINGS, 'run_dir': str(folder), **(settings or {})}
  content = {
    'config': nested(own),
    'neutral': NEUTRAL,
    'task': 'abcdef0123456789',
    **config,
  }
  (folder / 'config.json').write_text(json.dumps(content))
  _table(folder / 'metrics.csv', metrics or {'client_work/loss': [3.0, 2.0, 1.0]})
  if system:
    _table(folder / 'system.csv', system)
  if evaluation:
    content = {'round': own['rounds'], **evaluation}
    (folder / 'evaluation.json').write_text(json.dumps(content))
  if classes:
    class_names.write(folder, classes)
  return folder


def groups(*folders: pathlib.Path, **options: object) -> list[run_groups.Group]:
  """Groups the runs of folders, as a comparison does."""
  return run_groups.group([run_reader.read(folder) for folder in folders], **options)


def _table(path: pathlib.Path, columns: Mapping[str, Sequence[object]]) -> None:
  with path.open('w', newline='') as file:
    writer = csv.writer(file, lineterminator='\n')
    writer.writerow(['round', *columns])
    for round, cells in enumerate(zip(*columns.values(), strict=True), start=1):
      writer.writerow([round, *cells])
