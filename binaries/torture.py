r"""Kills runs, damages their folders, fills the disk and gives bad input, and counts.

  python -m binaries.torture --minutes=10
  python -m binaries.torture --groups=inputs --trials=200
  python -m binaries.torture --groups=kills --kinds=stateful --first_seed=7 --trials=1

The groups are taken by turns: `kills` disturbs runs of every kind of process at random
instants and compares their bytes with those of a run left in peace; `inputs` are a
table of bad command lines and files, with what must be said of each; `folders` damages
a file of a run folder, which must be refused in a sentence or resumed to the same
bytes; `disk` runs on a small file system, where root may mount one. What fails is told
with its seed, and stands in failures.txt; the status is then 1.
"""

import pathlib
import signal
import sys

from absl import flags

from binaries.flags import paths
from binaries.flags import program
from binaries.torturing import campaign
from binaries.torturing import programs
from tff_ssl.runtime import context

_MINUTES = flags.DEFINE_float(
  'minutes', 10.0, 'After which no trial is begun.', lower_bound=0.0
)
_TRIALS = flags.DEFINE_integer(
  'trials', None, 'How many at most; by default as many as there is time for.'
)
_GROUPS = flags.DEFINE_list(
  'groups', list(campaign.GROUPS), f'Some of {", ".join(campaign.GROUPS)}.'
)
_KINDS = flags.DEFINE_list(
  'kinds', list(programs.KINDS), f'Of kills: some of {", ".join(programs.KINDS)}.'
)
_SEED = flags.DEFINE_integer('first_seed', 0, 'Of the first trial.', lower_bound=0)
_FOLDER = paths.define('torture_dir', 'runs/torture', 'For what is made; replaced.')


def main() -> None:
  """Runs the campaign."""
  # A shell that started this in the background has SIGINT ignored, and so would runs.
  signal.signal(signal.SIGINT, signal.default_int_handler)
  tortured = campaign.Campaign(
    pathlib.Path(_FOLDER.value).absolute(), _GROUPS.value, _KINDS.value, _SEED.value
  )
  try:
    tortured.run(_MINUTES.value, _TRIALS.value)
  finally:
    counts = tortured.counts()
    width = max(map(len, counts))
    for name, value in counts.items():
      print(f'{name.ljust(width)}  {value}')
  if tortured.failed:
    same = f'--groups={",".join(_GROUPS.value)} --kinds={",".join(_KINDS.value)}'
    print(f'Each again by: {same} --trials=1 --first_seed=SEED, of')
    print(', '.join(map(str, tortured.failed)))
    sys.exit(1)


if __name__ == '__main__':
  context.remove_default()
  program.run(main)
