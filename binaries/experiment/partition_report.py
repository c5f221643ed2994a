"""Deals a task's training examples: prints and draws what the clients have."""

from binaries.building import data
from binaries.config import run_config
from tasks import task_types
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


def deal(
  config: run_config.RunConfig,
  plot: str | None,
  csv: str | None,
  max_clients: int | None,
) -> None:
  """Deals the examples, and prints and draws what the clients have.

  Args:
    config: A run, of which task, partition and seed count.
    plot: File for a figure of the first clients; None: no figure.
    csv: File for the label counts of each client; None: no file.
    max_clients: Most clients to draw; None: `_DRAWN`.
  """
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
  if csv is not None:
    report.write_csv(csv)
  if plot is not None:
    # Imported only here: on its first import matplotlib writes its cache, and may
    # print a message about it.
    from binaries.experiment import partition_plot

    title = f'{task.name}, {text}'
    most = max_clients or _DRAWN
    partition_plot.write(report, task.label_names, title, most, plot)


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
