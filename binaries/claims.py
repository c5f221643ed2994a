r"""Makes the runs that the papers' claims need, and writes verdicts to docs/claims.md.

  python -m binaries.claims --budget=digits
  python -m binaries.claims --budget=digits --claims=dcco-centralized --seeds=1
  python -m binaries.claims --budget=digits --list

Each run is a separate command, as the page shows it, in its own process. The figures
that the claims need from it go to docs/claims/BUDGET.csv, next to the page. A run is
not repeated if that file has it (by program, flags and seed) or if its folder is
complete. After Ctrl-C or a kill, the same command resumes.

The page always shows all claims of all budgets, whichever are run.
"""

from collections.abc import Mapping, Sequence
import pathlib
import sys

from absl import flags

from binaries.evidence import catalogue
from binaries.evidence import claim as claim_lib
from binaries.evidence import page
from binaries.evidence import runner
from binaries.evidence import store as store_lib
from binaries.evidence import verdicts
from binaries.flags import jobs
from binaries.flags import outputs
from binaries.flags import program
from tff_ssl.runs import run_config
from tff_ssl.storage import files

_BUDGET = flags.DEFINE_enum(
  'budget',
  'digits',
  claim_lib.BUDGETS,
  'Which claims: digits, minutes per run; cifar, minutes to hours per run, on '
  'CIFAR-10, CIFAR-100 and HAM10000.',
)
_CLAIMS = flags.DEFINE_list(
  'claims', [], 'Ids of claims; by default all of the budget.'
)
_DATA = flags.DEFINE_list(
  'data',
  [],
  'Where the data of tasks are, as in cifar10=/data/tfds,ham10000=/data/ham.tar: '
  '--data_dir of their runs, which does not distinguish one run from another.',
)
_RUNS = 'runs/claims'
_OUT = 'docs/claims.md'
_LIST = flags.DEFINE_bool('list', False, 'List the claims and their progress.')
_START = flags.DEFINE_bool(
  'start', True, 'Start missing runs; if false, write the page from existing runs.'
)


def main() -> None:
  """Runs claims, or lists them."""
  claims = {budget: catalogue.claims(budget) for budget in claim_lib.BUDGETS}
  chosen = catalogue.choose(claims[_BUDGET.value], _CLAIMS.value)
  out = pathlib.Path(outputs.OUT.value or _OUT).expanduser()
  if out.suffix != '.md':
    raise ValueError(f'out is {outputs.OUT.value!r}; it must end in .md.')
  stores = {
    budget: store_lib.Store(out.with_suffix('') / f'{budget}.csv', own)
    for budget, own in claims.items()
  }
  store = stores[_BUDGET.value]
  if _LIST.value:
    print(_listed(chosen, store))
    return
  # All errors in the flags come to light before the page is written.
  data = _data(catalogue.tasks(claims[_BUDGET.value]))
  wanted = _wanted(chosen, data) if _START.value else []
  failures = []
  try:
    if wanted:
      run = runner.Runner(store, chosen, jobs.at_a_time(), stream=sys.stderr)
      failures = run.run(wanted)
  finally:
    judged = [
      (claim, stores[budget].values(claim))
      for budget, own in claims.items()
      for claim in own
    ]
    store.write()
    with files.atomic(out) as aside:
      aside.write_text(page.build(judged), encoding='utf-8')
  for claim in chosen:
    print(f'{claim.id}: {verdicts.judge(claim, store.values(claim)).text}')
  print(f'Page: {out}')
  if failures:
    raise ValueError(f'{len(failures)} runs failed: {" ".join(failures)}')


def _wanted(chosen: list[claim_lib.Claim], data: Mapping[str, str]) -> list[runner.Job]:
  """Returns the runs that claims need, whether done or not."""
  seeds = jobs.num_seeds(claim_lib.SEEDS[_BUDGET.value])
  names = outputs.RUNS.value or [_RUNS]
  if len(names) != 1:
    raise ValueError(f'runs is {",".join(names)!r}; it must be one folder.')
  folder = pathlib.Path(names[0]).expanduser() / _BUDGET.value
  # Runs and their logs are written into it, and it may be a stranger's.
  if folder.is_dir():
    run_config.check_contained(folder)
  # Every claim gets its first seed before any claim gets a second.
  return [
    runner.job(folder, run, seed, data)
    for seed in range(seeds)
    for run in catalogue.runs(chosen)
  ]


def _data(tasks: Sequence[str]) -> dict[str, str]:
  """Returns the path of each task's data that --data gives.

  Args:
    tasks: The tasks that it may name.
  """
  found = {}
  for text in _DATA.value:
    task, _, path = text.partition('=')
    if not task or not path:
      raise ValueError(f'data has {text!r}; it must be a task and a path, TASK=PATH.')
    if task not in tasks:
      raise ValueError(
        f'data names {task!r}; with --budget={_BUDGET.value} it may name '
        f'{", ".join(tasks) or "none"}.'
      )
    found[task] = str(pathlib.Path(path).expanduser())
    if not pathlib.Path(found[task]).exists():
      raise ValueError(f'data has {text!r}; {found[task]} does not exist.')
  return found


def _listed(chosen: list[claim_lib.Claim], store: store_lib.Store) -> str:
  """Returns a line for each claim: its id, how many runs are done, its sentence."""
  lines = []
  for claim in chosen:
    done = [
      store.has(run, seed, columns)
      for run, columns in claim_lib.columns([claim]).items()
      for seed in range(claim.seeds)
    ]
    lines.append(
      f'{claim.id}: {sum(done)} of {len(done)} runs, '
      f'{verdicts.judge(claim, store.values(claim)).text}; {claim.paper}, '
      f'{claim.source}: {claim.sentence}'
    )
  return '\n'.join(lines)


if __name__ == '__main__':
  program.run(main)
