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
from binaries.config import outputs
from binaries.config import run_config
from binaries.launching import program
from tff_ssl.computing import kinds
from tff_ssl.settings import methods
from tff_ssl.settings import objectives


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
  from binaries.experiment import partition_report

  partition_report.deal(config, options.plot, options.csv, options.max_clients)


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


if __name__ == '__main__':
  program.run('partition', resumes=False)
