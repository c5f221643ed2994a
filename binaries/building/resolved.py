"""Fields of a run that follow from others, and from the run's folder."""

from collections.abc import Mapping
import dataclasses
import pathlib
import secrets
import sys
from typing import Any

from binaries.config import run_config
from binaries.config import runtimes
from tff_ssl.computing import inert
from tff_ssl.computing import processor
from tff_ssl.encoders import network
from tff_ssl.encoders import precision
from tff_ssl.runs import run_config as stored_config
from tff_ssl.runs.privacy import accounting
from tff_ssl.settings import encoders

# Independent of the machines, so that a run's numbers are independent of them too.
_PARTS_OF_RAY = 8
_CHECKPOINT_EVERY = 10
# Seeds up to the first can be tried; those drawn are int64 above the second.
_GUESSED_BELOW, _DRAWN_ABOVE = 2**48, 2**62


def resolve_defaults(config: run_config.RunConfig) -> run_config.RunConfig:
  """Returns a run in which no field is None that follows from others.

  A seed is drawn where cohorts must be secret, unless it is given or the folder's:
  everybody knows the default, and with it all cohorts. Its message goes to stderr.
  The precision auto is that of the folder's run; for a new run it stays (see
  `experiment.choosing_precision`).

  Args:
    config: A run; its folder need not exist.

  Raises:
    ValueError: If the folder's config.json cannot be read, or its run cannot go on here
      in its precision.
  """
  runtime = config.runtime
  if isinstance(runtime, runtimes.Ray):
    parts = runtime.parts or _PARTS_OF_RAY
    # An actor computes as many packs of a part at the same time.
    packs = parts * runtime.cpus if runtime.packs is None else runtime.packs
    runtime = dataclasses.replace(runtime, parts=parts, packs=packs)
  if config.is_secure and runtime.packs is None:
    # Each client masks its own values.
    runtime = dataclasses.replace(runtime, packs=0)
  # Repeating rounds after a kill costs privacy again.
  every = 1 if config.is_private else _CHECKPOINT_EVERY
  return dataclasses.replace(
    config,
    runtime=runtime,
    checkpoint_every=config.checkpoint_every or every,
    seed=_seed(config),
    encoder=_encoder(config),
  )


def _stored(config: run_config.RunConfig) -> Mapping[str, Any]:
  """Returns what config.json of the run's folder holds; nothing if there is none."""
  folder = pathlib.Path(config.run_dir or '.')
  is_old = config.run_dir and (folder / stored_config.NAME).is_file()
  return stored_config.read(folder) if is_old else {'config': {}}


def _encoder(config: run_config.RunConfig) -> encoders.Encoder:
  """Returns the encoder, with the precision of the folder's run in place of auto."""
  encoder, folder = config.encoder, config.run_dir
  if encoder.precision != encoders.AUTO:
    return encoder
  stored = _stored(config)
  known = stored_config.settings(stored['config']).get('encoder.precision')
  if known not in network.PRECISIONS:
    return encoder
  if known == network.BFLOAT16 and (wrong := precision.fault()):
    raise ValueError(
      f'{folder} is a run in {known}; it cannot go on on this machine, where '
      f'TensorFlow {wrong}.'
    )
  here = processor.bfloat16_units()
  if (was := stored.get('processor', here)) != here:
    print(
      f'{folder}: goes on in {known}, as it began; its processor had '
      f'{inert.line(was)} for bfloat16, this one has {here}, and a new run might '
      'choose otherwise.',
      flush=True,
    )
  return dataclasses.replace(encoder, precision=known)


def _seed(config: run_config.RunConfig) -> int:
  if not config.is_amplified:
    return config.random_seed
  if config.seed is None:
    known = _stored(config)['config'].get('seed')
    if isinstance(known, int):
      return known
    return _DRAWN_ABOVE + secrets.randbelow(_DRAWN_ABOVE)
  if is_guessed(config.seed):
    print(
      f'Warning: --seed={config.seed} can be guessed, and tells who was in which '
      'cohort; epsilon holds only where nobody does: leave --seed out, and one is '
      f'drawn, or take --aggregation=cohorts={accounting.PASSES}.',
      file=sys.stderr,
      flush=True,
    )
  return config.seed


def is_guessed(seed: int) -> bool:
  """Returns whether all seeds up to this one can be tried, one after the other."""
  return seed < _GUESSED_BELOW
