"""Checks that encoder and augmentation fit a task's examples: images or numbers."""

from absl import flags

from binaries.flags import common
from tasks import registry
from tff_ssl.augment import multiview
from tff_ssl.augment import vectors
from tff_ssl.encoders import registry as encoders

_OF_TABLES = ('mlp',)


def check() -> None:
  """Checks the encoder and augmentation that the command line gives.

  Raises:
    ValueError: If one of them cannot process the task's examples.
  """
  is_table = common.TASK.value in registry.TABLES
  for flag, of_tables, every in (
    (common.ENCODER, _OF_TABLES, encoders.NAMES),
    (common.AUGMENTATION, tuple(vectors.CONFIGS), tuple(multiview.CONFIGS)),
  ):
    if flags.FLAGS[flag.name].present and (flag.value in of_tables) != is_table:
      allowed = [name for name in every if (name in of_tables) == is_table]
      what = 'rows of numbers' if is_table else 'images'
      raise ValueError(
        f'--{flag.name}={flag.value} is given with --task={common.TASK.value}, whose '
        f'examples are {what}; it must be one of {", ".join(allowed)}.'
      )
