"""Names of runs in a sweep's comparison: the method, and the value that varies."""

from collections.abc import Sequence

from binaries.experiment import sweeping
from binaries.flags import varying
from tff_ssl.reporting import run_groups
from tff_ssl.reporting import sensitivity


def short_names(found: Sequence[sweeping.Member]) -> dict[str, str]:
  """Returns short names of methods: the fewest last parts that distinguish them."""
  names = [member.name for member in found]
  between = sweeping.SEPARATOR
  for parts in (1, 2):
    short = [between.join(name.split(between)[-parts:]) for name in names]
    if len({*short}) == len(short):
      return dict(zip(names, short, strict=True))
  return {name: name for name in names}


def label(wanted: Sequence[sweeping.Job], with_value: bool = False) -> run_groups.Label:
  """Returns the label of a sweep's runs: the method, and what varies.

  Args:
    wanted: From `jobs`.
    with_value: Whether the label includes the value, as for groups that have one each.
  """
  short = short_names(list({job.member: None for job in wanted}))
  names = {}
  for job in wanted:
    value = f'{job.point.name} ' if job.point and with_value else ''
    names[job.folder] = f'{value}{short[job.member.name]}'
  varied = next((tuple(job.point.values) for job in wanted if job.point), ())
  told = (*run_groups.CHOOSERS, *(varied if with_value else ()))
  return run_groups.Label(lambda run: names[run.folder], told)


def axis(
  wanted: Sequence[sweeping.Job], variation: varying.Variation | None
) -> sensitivity.Axis | None:
  """Returns the axis for a sweep's accuracies; None if nothing varies.

  Args:
    wanted: From `jobs`.
    variation: The variation that `jobs` was given.
  """
  if variation is None:
    return None
  values = {job.folder: job.point.name for job in wanted if job.point}
  return sensitivity.Axis(
    variation.title, variation.flags, lambda run: values[run.folder], label(wanted)
  )
