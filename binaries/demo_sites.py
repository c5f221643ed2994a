r"""Runs three sites and a coordinator on this machine, each a process with a folder.

  python -m binaries.demo_sites --out=runs/sites

The sites are hospitals of made-up patients: each has a folder with pictures of
handwritten digits, four of one digit a patient, and a spreadsheet that says whose they
are. They train with DCCO and never show a picture. At the end there is a table of what
the encoder is worth at each site, what left each, and how a simulation with all
pictures in one place compares. docs/sites.md says how to do this with real hospitals.
"""

import csv
import dataclasses
import pathlib
import shutil
import sys
import time

import numpy as np

from binaries.config import outputs
from binaries.launching import job_runner
from binaries.launching import program
from tff_ssl.computing import kinds

NAMES = ('east', 'north', 'south')
COORDINATOR = 'coordinator'
_SIMULATION, _ACCURACY = 'simulation', 'lda/100%/accuracy'
# Pictures of a patient.
_EACH = 4
_RUN = (
  '--image_size=8',
  '--augmentation=mild',
  '--server=learning_rate=4e-3',
  '--objective=off_diagonal_weight=5',
  '--evaluation=signals_every=0',
)
_POLL_SECONDS = 0.1


@dataclasses.dataclass(frozen=True)
class Options:
  """Where everything goes, and for how long it trains.

  Attributes:
    out: A folder, new or empty.
    rounds: Rounds of training.
    patients: Patients of each site in a round.
  """

  out: str = 'runs/demo_sites'
  rounds: kinds.Count = 60
  patients: kinds.Count = 32


def main(options: Options) -> None:
  """Makes the sites, runs them, and compares with the simulation."""
  out = pathlib.Path(outputs.new_folder(options.out))
  classes = write_pictures(out)
  write_keys(out)
  size = (f'--clients_per_round={options.patients}', f'--rounds={options.rounds}')
  judged = f'--runtime=classes={"/".join(classes)}'
  running = start_all(out, 'dcco', judged, *size, *_RUN)
  print('The coordinator has offered a run; three sites take part.', flush=True)
  _show(out, running[COORDINATOR])
  for name, process in running.items():
    if process.wait():
      raise ValueError(f'{name} has ended early; {out / name}.log says why.')
  _print_result(out)
  _simulate(out, options)


def write_pictures(out: pathlib.Path) -> list[str]:
  """Writes the folder of each site; returns the names of the digits."""
  # Only here, like what follows: they take seconds to import.
  from PIL import Image
  from sklearn import datasets

  digits = datasets.load_digits()
  rows: dict[str, list[tuple[str, str, str]]] = {name: [] for name in NAMES}
  for place, k in enumerate(np.argsort(digits.target, kind='stable').tolist()):
    patient = place // _EACH
    site = NAMES[patient % len(NAMES)]
    folder = out / site / 'pictures'
    folder.mkdir(parents=True, exist_ok=True)
    pixels = (digits.images[k] * 255 / 16).astype(np.uint8)
    Image.fromarray(pixels).save(folder / f'{k:04d}.png')
    row = f'{k:04d}.png', f'patient {patient:03d}', str(digits.target[k])
    rows[site].append(row)
  for site, own in rows.items():
    path = out / site / 'pictures' / 'manifest.csv'
    with path.open('w', encoding='utf-8', newline='') as file:
      csv.writer(file).writerows([('image', 'client_id', 'label'), *own])
  return [str(name) for name in digits.target_names]


def write_keys(out: pathlib.Path) -> None:
  """Makes the keys of all, and gives each the public ones of the others."""
  from tff_ssl.sites import keys

  names = (COORDINATOR, *NAMES)
  public = {name: keys.make(_keys(out, name), name) for name in names}
  for name in names:
    for other, path in public.items():
      if other != name:
        shutil.copy(path, _keys(out, name))


def _keys(out: pathlib.Path, name: str) -> pathlib.Path:
  return out / name / 'keys'


def _start(
  out: pathlib.Path, name: str, module: str, *arguments: str
) -> job_runner.Process:
  """Starts a program of `binaries`, which ends with this one."""
  with (out / f'{name}.log').open('a', encoding='utf-8') as log:
    return job_runner.start(['-m', f'binaries.{module}', *arguments], log)


def start_all(
  out: pathlib.Path, module: str, *arguments: str
) -> dict[str, job_runner.Process]:
  """Starts all as `start_coordinator` does; returns the processes by name."""
  running = {COORDINATOR: start_coordinator(out, module, *arguments)}
  offer = wait_for_offer(out, running[COORDINATOR])
  return {**running, **{name: start_site(out, name, offer) for name in NAMES}}


def start_coordinator(
  out: pathlib.Path, module: str, *arguments: str
) -> job_runner.Process:
  """Starts the coordinator of the sites in a folder.

  Args:
    out: The folder.
    module: The training program.
    *arguments: More of its command line.
  """
  return _start(
    out,
    COORDINATOR,
    module,
    '--task=sites',
    f'--runtime=sites:mailbox={out}/mailbox,keys={_keys(out, COORDINATOR)}',
    f'--run_dir={out}/run',
    *arguments,
  )


def start_site(out: pathlib.Path, name: str, offer: str) -> job_runner.Process:
  """Starts a site that agrees to an offer, of which the digits are given."""
  return _start(
    out,
    name,
    'site',
    f'--name={name}',
    '--task=cases',
    f'--data_dir={out / name / "pictures"}',
    f'--mailbox={out}/mailbox',
    f'--keys={_keys(out, name)}',
    f'--folder={out / name / "site"}',
    f'--accept={offer}',
  )


def wait_for_offer(out: pathlib.Path, coordinator: job_runner.Process) -> str:
  """Returns the digits of the offer, as the coordinator tells them to the sites."""
  from tff_ssl.sites import chains

  while not (left := chains.read_log(out / 'run' / chains.OUTBOX)):
    _check_runs(out, coordinator)
    time.sleep(_POLL_SECONDS)
  return str(left[0]['digest'])[:12]


def _check_runs(out: pathlib.Path, coordinator: job_runner.Process) -> bool:
  """Returns whether the coordinator still runs; raises ValueError if it has failed."""
  import subprocess

  try:
    status = coordinator.wait(0.0)
  except subprocess.TimeoutExpired:
    return True
  if status:
    raise ValueError(f'The coordinator has ended; {out / COORDINATOR}.log says why.')
  return False


def _show(out: pathlib.Path, coordinator: job_runner.Process) -> None:
  """Shows the coordinator's log while it runs."""
  shown = 0
  path = out / f'{COORDINATOR}.log'
  while True:
    runs = _check_runs(out, coordinator)
    text = path.read_text(encoding='utf-8', errors='replace')
    end = text.rfind('\n') + 1
    sys.stdout.write(text[shown:end])
    sys.stdout.flush()
    shown = max(shown, end)
    if not runs:
      return
    time.sleep(_POLL_SECONDS)


def _print_result(out: pathlib.Path) -> None:
  """Prints what left each site."""
  from tff_ssl.sites import chains

  print('\nWhat left each site (python -m binaries.site --what_left lists it):')
  for name in NAMES:
    left = chains.read_log(out / name / 'site' / chains.OUTBOX)
    total = sum(line['bytes'] for line in left)
    print(f'  {name:8}{len(left):>6} messages, {total / 1e6:,.1f} MB; no picture')


def _simulate(out: pathlib.Path, options: Options) -> None:
  """Runs the same with all pictures in one place, and prints how it compares."""
  from tff_ssl.reporting import run_reader

  everything = out / _SIMULATION / 'pictures'
  everything.mkdir(parents=True)
  rows = []
  for name in NAMES:
    folder = out / name / 'pictures'
    for path in folder.glob('*.png'):
      shutil.copy(path, everything)
    with (folder / 'manifest.csv').open(encoding='utf-8', newline='') as file:
      head, *own = csv.reader(file)
    rows += own
  with (everything / 'manifest.csv').open('w', encoding='utf-8', newline='') as file:
    csv.writer(file).writerows([head, *rows])
  print('\nThe same with all pictures in one place:', flush=True)
  process = _start(
    out,
    _SIMULATION,
    'dcco',
    '--task=cases',
    f'--data_dir={everything}',
    f'--clients_per_round={len(NAMES) * options.patients}',
    f'--rounds={options.rounds}',
    '--evaluation=methods=one_round,label_fractions=1,knn_every=0',
    f'--run_dir={out / _SIMULATION / "run"}',
    *_RUN,
  )
  if process.wait():
    raise ValueError(f'The simulation has failed; {out / _SIMULATION}.log says why.')
  at_sites, simulated = (
    run_reader.read(path) for path in (out / 'run', out / _SIMULATION / 'run')
  )
  for what, name in (('first loss', 'client_work/loss'), ('accuracy', _ACCURACY)):
    values = [
      own.evaluation[name] if name in own.evaluation else own.metrics[name].iloc[0]
      for own in (at_sites, simulated)
    ]
    print(f'  {what:12} at sites {values[0]:.4g}, simulated {values[1]:.4g}')


if __name__ == '__main__':
  program.run('demo_sites', resumes=False)
