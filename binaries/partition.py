r"""Describes and draws a partition of a task's training examples, without training.

  python -m binaries.partition --task=digits --partition=dirichlet:alpha=0.1,examples=4
  python -m binaries.partition --task=cifar10 --partition=skew:beta=0.1,clients=5 \
      --plot=skew.png --csv=skew.csv

The same `--task`, `--partition` and `--seed` give the same clients as in a run.
`--plot` draws a stacked bar of labels for each of the first clients. `--csv` writes the
label counts of all clients, like a run's `partition.csv`.
"""

from absl import flags

from binaries.flags import common
from binaries.flags import dealing
from binaries.flags import outputs
from binaries.flags import paths
from tasks import task_types
from tff_ssl.partition import describe
from tff_ssl.partition import partitions
from tff_ssl.reporting import plain_text

_CSV = paths.define('csv', None, 'CSV file for the label counts of each client.')
_MAX_CLIENTS = flags.DEFINE_integer(
  'max_clients', 100, 'Most clients to draw, the first ones.', lower_bound=1
)

# The flags that --help lists.
TAKEN = (
  'task',
  'data_dir',
  'download',
  'image_size',
  'classify',
  'fit',
  'folders',
  'pixel_range',
  'columns',
  'follow_links',
  'strict',
  'seed',
  'partition',
  'partition_encoder',
  'scaling',
  'examples_per_client_at_most',
  'plot',
  'csv',
  'max_clients',
  'validation',
)
# Changes of the images, which labels do not show.
_IMAGES = {
  'rotation': '{who} k of {count} has its images rotated by k/{count} of a turn.',
  'style': '{who} k of {count} has its images in the k-th colours and tone.',
}
_ROWS = 10
_LARGEST_CLASSES = 3


def main() -> None:
  """Deals the examples, and prints and draws what the clients have."""
  _check_flags()
  task = common.load_task()
  partition = common.build_partition(task)
  report = describe.describe(partition, task.train.label, task.num_classes)
  text = dealing.text(task)
  print(f'{text}: {report.line()}')
  if (kind := text.partition(':')[0]) in _IMAGES:
    print(_changes(kind, task, partition))
  print(_table(report, task))
  if _CSV.value is not None:
    report.write_csv(_CSV.value)
  if outputs.PLOT.value is not None:
    # Imported only here: on its first import matplotlib writes its cache, and may
    # print a message about it.
    from binaries.experiment import partition_plot

    partition_plot.write(
      report,
      task.label_names,
      f'{task.name}, {text}',
      _MAX_CLIENTS.value,
      outputs.PLOT.value,
    )


def _check_flags() -> None:
  """Refuses flags that would do nothing, and files that cannot be written."""
  for name in common.given():
    if name not in TAKEN:
      raise ValueError(
        f'--{name} is given, and nothing is trained here; flags must be among '
        f'{", ".join(TAKEN)}.'
      )
  common.check_flags()
  outputs.check(outputs.PLOT, '.png')
  outputs.check(_CSV, '.csv')
  if flags.FLAGS[_MAX_CLIENTS.name].present and outputs.PLOT.value is None:
    raise ValueError('--max_clients is given without --plot; it is for the plot only.')


def _changes(kind: str, task: task_types.Task, partition: partitions.Partition) -> str:
  """Describes how images are changed, and how far the sources are mixed, if at all."""
  source = dealing.source_of(task)
  if source is None:
    return _IMAGES[kind].format(who='Client', count=len(partition))
  count = int(source.max()) + 1
  mixed = describe.describe(partition, source, count)
  return (
    f'{_IMAGES[kind].format(who="Source", count=count)} Mean earth-mover distance from '
    f"the clients' sources to those of all clients: {mixed.mean_emd:.3f}."
  )


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
  common.run(main, TAKEN)
