r"""Runs methods over seeds, and over values of a setting, and compares them.

  python -m binaries.sweep --methods=fedema,fedu,fed_byol,simclr --seeds=0,1,2 \
      --task=cifar10 --data_dir=~/tensorflow_datasets --rounds=100 --out=runs/sweep

  python -m binaries.sweep --methods=dec_ssl:fedavg:simclr,dec_ssl:fedavg:supervised \
      --vary='clients=epochs=1|5|20' --vary='rounds=100|20|5' --out=runs/epochs
  python -m binaries.sweep --methods=simclr,supervised --seeds=0,1 --out=runs/alpha \
      --vary='partition=shares:alpha={0.02|0.1|5},clients=5,balanced=true'

With --vary each method runs with each value of a flag or of its field; braces mark the
part of the value that varies. Repeat it for what changes together with the first. The
comparison then has tables and the figure `over.png` of accuracies against the value,
with a line for each method and the deviation over seeds.

A method is named METHOD, METHOD:OBJECTIVE or OBJECTIVE, as in the program that offers
it. If several programs offer a name, the sweep says which one it used, and PROGRAM:NAME
chooses another (`dec_ssl:simclr`, `fedavg_ssl:fedprox:byol`). All other flags are those
of the programs, and apply to all methods; --method and --objective set fields of the
methods that have them, as in --method=tau=0.5. What a method does not use is reported
once and left out of its runs. What is not given is as in each method's paper, and the
sweep says what differs although a comparison should have one value.

A run's folder is OUT/METHOD/seed_SEED, with --vary OUT/METHOD/NAME=VALUE/seed_SEED. Its
output goes to the file of this name with `.log`. Finished runs are not repeated, and
started ones resume: after Ctrl-C, SIGTERM or a kill, the same command resumes the
sweep. A run that fails is reported, and the others continue. In the end OUT/comparison
has the comparison of all runs by `binaries.compare`, whose flags are taken too.

With --jobs=ray the runs go to the machines of a cluster of Ray (docs/machines.md).
"""

from collections.abc import Sequence
import dataclasses
import os
import sys

from binaries.config import command_line
from binaries.config import comparisons
from binaries.config import outputs
from binaries.experiment import sweep_comparison
from binaries.experiment import sweep_methods
from binaries.experiment import sweeping
from binaries.experiment import vary_grammar
from binaries.launching import job_runner
from binaries.launching import program
from tff_ssl.computing import kinds
from tff_ssl.runs import run_config

_COMPARISON = 'comparison'
_RAY = 'ray'


@dataclasses.dataclass(frozen=True, kw_only=True)
class Options(comparisons.Comparison):
  """What is run and compared.

  Attributes:
    methods: Methods, as in fedema,simclr, or with their programs, as in
      dec_ssl:simclr.
    seeds: The seeds, as in 0,1,2.
    jobs: Runs at a time; none: one per core; ray, or ray:ADDRESS: one per core of a
      cluster.
    out: The folder of the runs' folders.
    vary: Values of a flag, separated by |, as in 'rounds=100|20' or
      'clients=epochs=1|5|20', or of a part of a value in braces, as in
      'partition=shares:alpha={0|0.1|10},clients=5'; repeat it for what changes together
      with the first.
    changes: The flags of the runs.
  """

  methods: tuple[str, ...]
  seeds: tuple[kinds.Natural, ...] = (0,)
  jobs: str | None = None
  out: command_line.Path = 'runs/sweep'
  vary: command_line.Changes = command_line.UNCHANGED
  changes: command_line.RunChanges = command_line.NO_CHANGES

  def __post_init__(self) -> None:
    """Raises ValueError if the jobs are none, seeds are equal, or two axes given."""
    super().__post_init__()
    is_count = self.jobs is None or (self.jobs.isdecimal() and int(self.jobs) > 0)
    if not is_count and self.cluster is None:
      raise ValueError(
        f'jobs is {self.jobs!r}; it must be at least 1, or ray, or ray:ADDRESS.'
      )
    if not self.seeds or len({*self.seeds}) < len(self.seeds):
      given = ','.join(map(str, self.seeds))
      raise ValueError(
        f'seeds is {given!r}; it must be different whole numbers, as in 0,1,2.'
      )
    if self.vary and self.vary_axis:
      raise ValueError(
        '--vary_axis and --vary are both given; --vary decides what is drawn.'
      )

  @property
  def cluster(self) -> str | None:
    """The address of the cluster of Ray that runs go to; None: they stay here."""
    name, _, address = (self.jobs or '').partition(':')
    return (address or 'auto') if name == _RAY else None


def main(options: Options) -> None:
  """Runs the missing jobs, and compares all."""
  if options.cluster is not None:
    # Only here: it imports TFF.
    from tff_ssl.execution import contexts

    contexts.check_ray(options.cluster)
  out = outputs.new_folder(options.out)
  if out.is_dir():
    run_config.check_contained(out)
  points = vary_grammar.parse(options.vary)
  members = sweep_methods.members(options.methods)
  wanted, told = sweeping.jobs(members, options.seeds, out, options.changes, points)
  for flag in ('label', 'vary_axis'):
    sweep_comparison.check_settings(wanted, flag, getattr(options, flag))
  against = sweep_comparison.reference(wanted, options.against)
  sweeping.check(wanted)
  for member in members:
    print(member.describe(), flush=True)
  for line in told:
    print(f'Warning: {line}', file=sys.stderr, flush=True)
  out.mkdir(parents=True, exist_ok=True)
  # Two would write one comparison, and start each run twice.
  with run_config.locked(out):
    failures = _run(wanted, options)
    # Failed runs may have left nothing to compare.
    begun = [job.folder for job in wanted if (job.folder / 'metrics.csv').is_file()]
    if begun:
      axis = sweeping.varied(points) or options.vary_axis
      plain = dataclasses.replace(options, vary=command_line.UNCHANGED)
      shown = dataclasses.replace(plain, vary_axis=axis, against=against)
      # Only now, when there is something to compare: pandas takes a second.
      from binaries.experiment import comparing

      try:
        comparing.compare(begun, out / _COMPARISON, shown)
      except ValueError as error:
        if not failures:
          raise
        print(f'Warning: {error}', file=sys.stderr, flush=True)
    if failures:
      raise ValueError(
        f'{len(failures)} of {len(wanted)} runs failed; the same command tries them '
        f'again: {" ".join(failures)}'
      )


def _run(wanted: Sequence[sweeping.Job], options: Options) -> list[str]:
  """Runs the missing jobs, here or on a cluster; returns what failed."""
  if options.cluster is None:
    at_a_time = int(options.jobs or len(os.sched_getaffinity(0)))
    return sweeping.Runner(at_a_time).run(wanted)
  # Only here: Ray is not everybody's.
  from tff_ssl.execution import ray_programs

  with ray_programs.starting(options.cluster, job_runner.start) as start:
    return sweeping.Runner(ray_programs.cores(), start).run(wanted)


if __name__ == '__main__':
  program.run('sweep')
