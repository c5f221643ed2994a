"""Options of a sweep's comparison, checked before the runs and not after them."""

from collections.abc import Sequence

from binaries.experiment import sweep_methods
from binaries.experiment import sweeping
from tff_ssl.computing import near_names
from tff_ssl.reporting import titles


def check_settings(
  wanted: Sequence[sweeping.Job], flag: str, names: Sequence[str]
) -> None:
  """Refuses names of settings that no run has.

  Args:
    wanted: The runs.
    flag: The flag that names the settings.
    names: The names.

  Raises:
    ValueError: If no run has one of them.
  """
  known = {each for job in wanted for each in job.config.settings()}
  for name in names:
    if name not in known:
      near = near_names.question(name, sorted(known))
      raise ValueError(f'{flag} has {name!r}; no run has this setting.{near}')


def reference(wanted: Sequence[sweeping.Job], against: str | None) -> str | None:
  """Returns a reference as a comparison names it.

  Args:
    wanted: The runs.
    against: A name of --methods, or another name of a method (`titles.is_named`);
      None: there is none.

  Raises:
    ValueError: If it is the name of no method of the sweep, or of several.
  """
  if against is None:
    return None
  by_name = {
    job.member.name: (job.config.method.kind, job.config.objective.kind)
    for job in wanted
  }
  if any(against.startswith(f'{titles.of_method(*own)}, ') for own in by_name.values()):
    # A name in print with settings, which only the comparison knows.
    return against
  if against in by_name:
    found = [by_name[against]]
  else:
    found = [own for own in by_name.values() if titles.is_named(against, *own)]
  if len(found) != 1:
    what = 'several methods have this name' if found else 'no run has this method'
    raise ValueError(
      f'against has {against!r}; {what}: it must be one of {", ".join(by_name)}.'
      f'{near_names.question(against, by_name)}'
    )
  return sweep_methods.SEPARATOR.join(found[0])
