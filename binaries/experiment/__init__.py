"""A run from its configuration: `run`, which prepares, trains and evaluates."""

from binaries.config import run_config
from binaries.launching import program


def run(config: run_config.RunConfig) -> None:
  """Runs an experiment in its folder, or resumes it.

    experiment.run(
      run_config.RunConfig(methods.FedAvg(), objectives.Simclr(), run_dir='runs/mine')
    )

  Args:
    config: All of the run.

  Raises:
    ValueError: If the configuration cannot be run, or is not that of the folder's run.
    OSError: If the folder cannot be made.
  """
  # Only here: it imports NumPy, which --help does not need.
  from binaries.config import checks

  checks.check(config)
  # TensorFlow is imported only now, when the command line has been checked.
  program.import_tff()
  from binaries.experiment import running

  running.run(config)
