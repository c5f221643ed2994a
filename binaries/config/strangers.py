"""Configurations of runs in folders that may be a stranger's."""

from collections.abc import Mapping, Sequence
import os

from binaries.config import changing
from binaries.config import roles
from binaries.config import run_config
from binaries.config import runtimes

# Paths on which the examples or the partition depend, and the leave to follow links.
_GIVEN_AGAIN = ('dir', 'follow_links', 'scaling', 'partition_encoder')


def read(
  folder: str | os.PathLike[str], given: Mapping[str, Sequence[str] | str | None]
) -> run_config.RunConfig:
  """Returns the configuration of a run, without its paths, for work on its encoder.

  Neither the run's baselines nor what executed its rounds are part of it.

  Args:
    folder: The run folder.
    given: Changes; see `changing.changed`.

  Raises:
    ValueError: If it is not the folder of a run, or a change is not allowed: of what
      the data are, only paths may be given.
  """
  own = changing.read(folder, keep_paths=False)
  here = runtimes.InProcess(packs=own.runtime.packs)
  config = roles.replace(own, {'evaluation.baselines': False, 'runtime': here})
  config = changing.changed(config, given)
  for name, value, field in roles.fields(config.data):
    if not roles.is_path(field) and value != getattr(own.data, name):
      raise ValueError(
        f'--data={name}={value} is given, but the run has '
        f'{name}={getattr(own.data, name)}; only paths may differ.'
      )
  return config


def check_given(folder: str | os.PathLike[str], config: run_config.RunConfig) -> None:
  """Refuses a configuration without a path that the data of its run need.

  Args:
    folder: The run folder.
    config: From `read`.

  Raises:
    ValueError: If such a path is missing.
  """
  theirs = changing.read(folder, keep_paths=True).data
  for name in _GIVEN_AGAIN:
    if (value := getattr(theirs, name)) and getattr(config.data, name) is None:
      flag = '--data_dir' if name == 'dir' else f'--data={name}'
      raise ValueError(
        f'The run has {flag}={value}, which is not taken from the folder of a run: '
        f'give {flag} on the command line.'
      )
