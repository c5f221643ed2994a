r"""Kills runs, damages their folders, fills the disk and gives bad input, and counts.

  python -m binaries.torture --minutes=10
  python -m binaries.torture --minutes=600 --enough=kills=300,inputs=300,folders=100
  python -m binaries.torture --again=kills:stateful:7

The groups take turns, and so do the kinds of a group:

  kills    disturbs runs of every kind of process at random instants, repeatedly, and
           compares their bytes with those of an undisturbed run
  inputs   a table of bad command lines and files, with what the program must say
  folders  damages a file of a run folder, which must be refused in a sentence or
           resumed to the same bytes
  ledger   kills private runs, whose ledger must count what was released
  audits   tries `binaries.audit` on sound and broken aggregations
  disk     runs on a small file system, where root may mount one
  attacks  gives programs caches and names of strangers, and closes their streams

A failure is printed with the name of its trial and added to failures.txt; the status is
then 1. The same command continues with the counts in counts.json.
"""

import pathlib
import signal
import sys

from absl import flags

from binaries.flags import paths
from binaries.flags import program
from binaries.torturing import campaign
from binaries.torturing import kills
from tff_ssl.execution import contexts

_MINUTES = flags.DEFINE_float(
  'minutes', 10.0, 'Minutes after which no trial is begun.', lower_bound=0.0
)
_TRIALS = flags.DEFINE_integer(
  'trials', None, 'Most trials to run; by default as many as there is time for.'
)
_GROUPS = flags.DEFINE_list(
  'groups', list(campaign.GROUPS), f'Some of {", ".join(campaign.GROUPS)}.'
)
_KINDS = flags.DEFINE_list(
  'kinds',
  list(kills.Kills.kinds),
  f'For kills: some of {", ".join(kills.Kills.kinds)}.',
)
_ENOUGH = flags.DEFINE_list(
  'enough',
  [],
  'How much of a group is enough, as in kills=300,inputs=300; without it, only time '
  'ends the campaign. Counted are disturbances, inputs, folders, SIGKILLs of the '
  'ledger, audits, and attacks of strangers.',
)
_AGAIN = flags.DEFINE_string('again', None, 'Name of a single trial to repeat.')
_FOLDER = paths.define(
  'torture_dir', 'runs/torture', 'Folder for outputs, and for the counts, which stay.'
)
# The flags that --help lists.
TAKEN = ('minutes', 'trials', 'groups', 'kinds', 'enough', 'again', 'torture_dir')


def main() -> None:
  """Runs the campaign."""
  # In the background of a shell, SIGINT is ignored, and the runs would inherit that.
  signal.signal(signal.SIGINT, signal.default_int_handler)
  folder = pathlib.Path(_FOLDER.value).absolute()
  if _AGAIN.value is not None:
    group = _AGAIN.value.partition(':')[0]
    alone = campaign.Campaign(folder / 'again', [group], kills.Kills.kinds)
    try:
      held = alone.again(_AGAIN.value)
    finally:
      alone.close()
    print(f'{_AGAIN.value} {"held" if held else "did not hold"}')
    sys.exit(0 if held else 1)
  enough = _enough()
  tortured = campaign.Campaign(folder, _GROUPS.value, _KINDS.value)
  try:
    tortured.run(_MINUTES.value, _TRIALS.value, enough)
  finally:
    counts = tortured.counts()
    width = max(map(len, counts))
    for name, value in counts.items():
      print(f'{name.ljust(width)}  {value}')
  if tortured.failed:
    print('Repeat each of these with --again=NAME:')
    print(', '.join(tortured.failed))
    sys.exit(1)


def _enough() -> dict[str, int]:
  """Returns the counts of `--enough`, by group.

  Raises:
    ValueError: If it is malformed.
  """
  found = {}
  for pair in _ENOUGH.value:
    group, _, count = pair.partition('=')
    if group not in campaign.GROUPS or not count.isdecimal():
      raise ValueError(
        f'enough has {pair!r}; it must be GROUP=COUNT, as in kills=300; groups are '
        f'{", ".join(campaign.GROUPS)}.'
      )
    found[group] = int(count)
  return found


if __name__ == '__main__':
  contexts.remove_default()
  program.run(main, TAKEN)
