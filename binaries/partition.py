r"""Describes and draws a partition of a task's training examples, without training.

  python -m binaries.partition --task=digits --partition=dirichlet:alpha=0.1,examples=4
  python -m binaries.partition --task=cifar10 --partition=skew:beta=0.1,clients=5 \
      --plot=skew.png --csv=skew.csv

The same `--task`, `--partition` and `--seed` give the same clients as in a run.
`--plot` draws a stacked bar of labels for each of the first clients. `--csv` writes the
label counts of all clients, like a run's `partition.csv`.
"""

import dataclasses

from binaries.config import changing
from binaries.config import command_line
from binaries.config import data as data_lib
from binaries.config import methods
from binaries.config import objectives
from binaries.config import outputs
from binaries.config import run_config
from binaries.launching import program
from tasks import task_types
from tff_ssl.computing import kinds
from tff_ssl.partition import describe
from tff_ssl.reporting import plain_text

# Changes of the images, which labels do not show.
_IMAGES = {
  'rotation': '{who} k of {count} has its images rotated by k/{count} of a turn.',
  'style': '{who} k of {count} has its images in the k-th colours and tone.',
}
_ROWS = 10
_DRAWN = 100
_LARGEST_CLASSES = 3


@dataclasses.dataclass(frozen=True)
class Options:
  """A task and a partition, as in a training program, and what is drawn.

  Attributes:
    task: Data set.
    data_dir: Where the data are.
    data: How else they are read, as in validation=0.1,partition_encoder=FILE.
    columns: The table's own names of columns, as in image=Photo,label=Diagnosis.
    image_size: Height and width of the images; none: the task's own.
    partition: How training examples are dealt to clients, as in
      dirichlet:alpha=0.1,examples=4; none: what suits the data.
    seed: Seed of every draw.
    plot: PNG file for a figure of the first clients.
    csv: CSV file for the label counts of each client.
    max_clients: Most clients to draw, the first ones; none: 100.
  """

  task: str = 'digits'
  data_dir: str | None = None
  data: command_line.Changes = command_line.UNCHANGED
  columns: tuple[str, ...] | None = None
  image_size: kinds.Count | None = None
  partition: str | None = None
  seed: run_config.Seed = 0
  plot: str | None = None
  csv: str | None = None
  max_clients: kinds.Count | None = None


def main(options: Options) -> None:
  """Deals the examples, and prints and draws what the clients have."""
  config = _config(options)
  outputs.check_file('plot', options.plot, '.png')
  outputs.check_file('csv', options.csv, '.csv')
  if options.max_clients is not None and options.plot is None:
    raise ValueError('--max_clients is given without --plot; it is for the plot only.')
  # Only here: it imports NumPy, which --help does not need.
  from binaries.config import checks

  checks.check_data(config)
  # TensorFlow is imported only now, when the command line has been checked.
  from binaries.building import data

  task = data.load_task(config)
  partition = data.partition(config, task)
  report = describe.describe(partition, task.train.label, task.num_classes)
  text = data.partition_text(config, task)
  print(f'{text}: {report.line()}')
  if (kind := text.partition(':')[0]) in _IMAGES:
    source = data.source_of(config, task)
    if source is None:
      print(_IMAGES[kind].format(who='Client', count=len(partition)))
    else:
      count = int(source.max()) + 1
      mixed = describe.describe(partition, source, count)
      print(
        f'{_IMAGES[kind].format(who="Source", count=count)} Mean earth-mover distance '
        "from the clients' sources to those of all clients: "
        f'{mixed.mean_emd:.3f}.'
      )
  print(_table(report, task))
  if options.csv is not None:
    report.write_csv(options.csv)
  if options.plot is not None:
    # Imported only here: on its first import matplotlib writes its cache, and may
    # print a message about it.
    from binaries.experiment import partition_plot

    title = f'{task.name}, {text}'
    most = options.max_clients or _DRAWN
    partition_plot.write(report, task.label_names, title, most, options.plot)


def _config(options: Options) -> run_config.RunConfig:
  """Returns a run with this task, partition and seed; nothing of it is trained."""
  config = run_config.RunConfig(
    methods.FedAvg(),
    objectives.Simclr(),
    task=options.task,
    data=data_lib.Data(
      dir=options.data_dir, columns=options.columns, image_size=options.image_size
    ),
    partition=options.partition,
    seed=options.seed,
  )
  return changing.changed(config, {'data': options.data})


def _table(report: describe.PartitionReport, task: task_types.Task) -> str:
  """Lays out the first clients: their examples, classes, and largest classes."""
  rows = []
  for client in range(min(report.clients, _ROWS)):
    counts = report.histograms[client]
    size = int(report.client_sizes[client])
    largest = [k for k in (-counts).argsort(kind='stable') if counts[k]]
    rows.append(
      {
        'client': report.client_ids[client],
        'examples': size,
        'classes': len(largest),
        'largest': ', '.join(
          f'{task.label_names[k]}: {counts[k] / size:.0%}'
          for k in largest[:_LARGEST_CLASSES]
        ),
      }
    )
  left = report.clients - len(rows)
  return plain_text.text(rows) + (f'\nand {left:,} more' if left else '')


if __name__ == '__main__':
  program.run('partition')
