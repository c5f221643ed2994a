"""Flag of where the numbers of a run are shown besides its folder."""

from absl import flags

from tff_ssl.runtime import trackers

TRACKERS = flags.DEFINE_list(
  'trackers',
  [trackers.TENSORBOARD],
  f'Where the numbers of each round are shown besides metrics.csv: some of '
  f'{", ".join(trackers.NAMES)}, or none where it is empty. MLflow and Weights & '
  'Biases are to be installed, and read variables of their own (MLFLOW_TRACKING_URI, '
  'WANDB_MODE).',
)
# It does not change the numbers.
MAY_DIFFER = (TRACKERS.name,)


def check() -> None:
  """Checks the trackers before anything is read.

  Raises:
    ValueError: If one is unknown or not installed.
  """
  trackers.check(TRACKERS.value)
