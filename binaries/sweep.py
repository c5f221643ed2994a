r"""Runs methods over seeds, and over values of a flag, and compares them.

  python -m binaries.sweep --methods=fedema,fedu,fed_byol,simclr --seeds=0,1,2 \
      --task=cifar10 --data_dir=~/tensorflow_datasets --rounds=100 --out=runs/sweep

  python -m binaries.sweep --methods=dec_ssl:fedavg:simclr,dec_ssl:fedavg:supervised \
      --vary='local_epochs=1|5|20' --vary='rounds=100|20|5' --out=runs/epochs
  python -m binaries.sweep --methods=simclr,supervised --seeds=0,1 --out=runs/alpha \
      --vary='partition=shares:alpha={0.02|0.1|5},clients=5,balanced=true'

With --vary each method runs with each value of a flag; braces mark the part of the
value that varies. Repeat it for flags that change together with the first. The
comparison then has tables and the figure `over.png` of accuracies against the value,
with a line for each method and the deviation over seeds.

Methods are named as in the program that offers them. If several programs offer a name,
the sweep says which one it used, and PROGRAM:NAME chooses another (`dec_ssl:simclr`,
`fedavg_ssl:fedprox:byol`). All other flags are those of the programs, and apply to all
methods. A flag that a method does not use is reported once and left out of its runs.
Flags that are not given have each method's own defaults, and the comparison says which
differ.

A run's folder is OUT/METHOD/seed_SEED, with --vary OUT/METHOD/FLAG=VALUE/seed_SEED. Its
output goes to the file of this name with `.log`. Finished runs are not repeated, and
started ones resume: after Ctrl-C, SIGTERM or a kill, the same command resumes the
sweep. A run that fails is reported, and the others continue. In the end OUT/comparison
has the comparison of all runs by `binaries.compare`, whose flags are taken too.
"""

import dataclasses
import pathlib
import sys

from absl import flags

from binaries import compare
from binaries.flags import jobs
from binaries.flags import outputs
from binaries.flags import program
from binaries.flags import varying
from tff_ssl.runs import run_config

_OUT = 'runs/sweep'
_COMPARISON = 'comparison'
_METHODS = flags.DEFINE_list(
  'methods',
  [],
  'For sweep: methods by name, as in fedema,simclr, or by program and name, as in '
  'dec_ssl:simclr.',
)
_OWN = ('methods', 'seeds', 'jobs', 'out', 'vary', *compare.OF_COMPARISON)


def main() -> None:
  """Runs the missing jobs, and compares all."""
  _check()
  out = _out()
  # Imported only here, because it imports TensorFlow.
  from binaries.experiment import sweeping

  members = sweeping.members(_METHODS.value)
  variation = varying.read()
  wanted, told = sweeping.jobs(members, jobs.seeds(), out, _OWN, variation)
  for line in told:
    print(f'Warning: {line}', file=sys.stderr, flush=True)
  failures = sweeping.run(wanted, jobs.at_a_time())
  # Failed runs may have left nothing to compare.
  begun = [job.folder for job in wanted if (job.folder / 'metrics.csv').is_file()]
  if begun:
    own = compare.options()
    if variation:
      own = dataclasses.replace(own, vary_axis=tuple(variation.flags))
    compare.compare_folders(begun, out / _COMPARISON, own)
  if failures:
    raise ValueError(
      f'{len(failures)} of {len(wanted)} runs failed; the same command tries them '
      f'again: {" ".join(failures)}'
    )


def _out() -> pathlib.Path:
  return pathlib.Path(outputs.OUT.value or _OUT).expanduser()


def _check() -> None:
  """Checks the sweep's own flags."""
  program.check_required({_METHODS.name: 'methods, as in fedema,simclr'})
  jobs.seeds()
  if varying.read() and compare.options().vary_axis:
    raise ValueError(
      '--vary_axis and --vary are both given; --vary decides what is drawn.'
    )
  compare.check_out(_out())
  if _out().is_dir():
    run_config.check_contained(_out())


def taken() -> set[str]:
  """Returns the flags that --help lists: its own, and those of all runs."""
  # Only here, because errors in its own flags are reported before TensorFlow is
  # imported.
  from binaries.methods import choice
  from binaries.methods import table

  return {*_OWN, *(name for each in table.PROGRAMS for name in choice.flags_of(each))}


if __name__ == '__main__':
  program.check_first(_check, _OWN)
  names = taken()
  from binaries.flags import common

  common.run(main, names)
