"""The flag that says where else, apart from its folder, a run's numbers are shown."""

from absl import flags

from tff_ssl.runs import number_trackers

TRACKERS = flags.DEFINE_list(
  'trackers',
  [number_trackers.TENSORBOARD],
  f'Where the numbers of each round are shown in addition to metrics.csv: some of '
  f'{", ".join(number_trackers.NAMES)}, or none if empty. MLflow and Weights & Biases '
  'must be installed, and read their own environment variables (MLFLOW_TRACKING_URI, '
  'WANDB_MODE).',
)
# This flag does not change a run's numbers.
MAY_DIFFER = (TRACKERS.name,)


def check() -> None:
  """Checks the trackers before anything is read.

  Raises:
    ValueError: If one is unknown or not installed.
  """
  number_trackers.check(TRACKERS.value)
