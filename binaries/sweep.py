r"""Runs methods over seeds, side by side, and compares them.

  python -m binaries.sweep --methods=fedema,fedu,fed_byol,simclr --seeds=0,1,2 \
      --task=cifar10 --data_dir=~/tensorflow_datasets --rounds=100 --out=runs/sweep

A method is named as in the program that offers it; of a name that several have, the
sweep says which it took, and PROGRAM:NAME takes another (`dec_ssl:simclr`,
`fedavg_ssl:fedprox:byol`). All other flags are those of the programs, the same for all
methods; one that a method does not use is told once and left out of its runs. Where
none is given, each method has its own defaults, and the comparison says what differs.

A run is a folder OUT/METHOD/seed_SEED, and what it says goes to the file of this name
with `.log`. Finished ones are not run again, and those that were begun go on: stopped
by Ctrl-C or SIGTERM, or killed, the same command takes the sweep up again. A run that
fails is told, and the others go on. In the end OUT/comparison has what
`binaries.compare` makes of all, whose flags are taken too.
"""

import pathlib
import sys

from absl import flags

from binaries import compare
from binaries.flags import jobs
from binaries.flags import outputs
from binaries.flags import program
from tff_ssl.reporting import groups as groups_lib

_OUT = 'runs/sweep'
_COMPARISON = 'comparison'
_METHODS = flags.DEFINE_list(
  'methods',
  [],
  'Of sweep: methods by name, as in fedema,simclr, or by program and name, as in '
  'dec_ssl:simclr.',
)
_OWN = ('methods', 'seeds', 'jobs', 'out', *compare.OF_COMPARISON)


def main() -> None:
  """Runs what is missing, and compares all."""
  _check()
  out = _out()
  # Only here: it imports TensorFlow.
  from binaries.experiment import sweeping

  members = sweeping.members(_METHODS.value)
  wanted, told = sweeping.jobs(members, jobs.seeds(), out, _OWN)
  for line in told:
    print(f'Warning: {line}', file=sys.stderr, flush=True)
  failures = sweeping.run(wanted, jobs.at_a_time())
  labels = {job.folder: job.member.name for job in wanted}
  # What has failed may have left nothing to compare.
  begun = [folder for folder in labels if (folder / 'metrics.csv').is_file()]
  if begun:
    label = groups_lib.Label(lambda run: labels[run.folder], groups_lib.CHOOSERS)
    compare.compare_folders(begun, out / _COMPARISON, label)
  if failures:
    raise ValueError(
      f'{len(failures)} of {len(wanted)} runs failed; the same command tries them '
      f'again: {" ".join(failures)}'
    )


def _out() -> pathlib.Path:
  return pathlib.Path(outputs.OUT.value or _OUT).expanduser()


def _check() -> None:
  """Checks the sweep's own flags."""
  if not _METHODS.value:
    raise ValueError('methods is not given; it must name methods, as in fedema,simclr.')
  jobs.seeds()
  compare.check_flags()
  compare.check_out(_out())


if __name__ == '__main__':
  # What is wrong with its own flags is said before TensorFlow is imported.
  program.check_first(_check, _OWN)
  from binaries.flags import common
  from binaries.methods import choice
  from binaries.methods import table

  common.run(
    main, {*_OWN, *(name for p in table.PROGRAMS for name in choice.flags_of(p))}
  )
