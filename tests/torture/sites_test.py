"""A run at three sites, whose processes are killed and frozen, has undisturbed numbers.

Each is a process with a folder, as in `binaries.demo_sites`; what is killed is started
again by the same command.
"""

import pathlib
import random
import signal
import subprocess
import time

import pytest

from binaries import demo_sites
from tests.torture import trials
from tff_ssl.sites import chains

pytestmark = pytest.mark.torture
# Of clients without a state, and with one.
_RUNS = {
  'dcco': ('dcco', '--server=learning_rate=4e-3'),
  'fedema': ('fedema', '--clients=batch_size=8'),
}
_ROUNDS = 30
_FLAGS = (
  '--image_size=8',
  '--augmentation=mild',
  '--clients_per_round=4',
  f'--rounds={_ROUNDS}',
  '--checkpoint_every=4',
  '--evaluation=signals_every=none',
)
_LONGEST = 900.0


class _Sites:
  """The processes of a run."""

  def __init__(self, out: pathlib.Path, program: str):
    out.mkdir()
    demo_sites.write_pictures(out)
    demo_sites.write_keys(out)
    self.out, (module, *flags) = out, _RUNS[program]
    self._command = module, *_FLAGS, *flags
    self.running = demo_sites.start_all(out, *self._command)
    self._offer = chains.read_log(out / 'run' / chains.OUTBOX)[0]['digest']

  def start(self, name: str) -> None:
    if name == demo_sites.COORDINATOR:
      process = demo_sites.start_coordinator(self.out, *self._command)
    else:
      process = demo_sites.start_site(self.out, name, self._offer)
    self.running[name] = process

  def has_ended(self, name: str) -> bool:
    try:
      return self.running[name].wait(0.0) is not None
    except subprocess.TimeoutExpired:
      return False

  def end(self) -> None:
    for name, process in self.running.items():
      log = (self.out / f'{name}.log').read_text()
      assert process.wait(_LONGEST) == 0, (name, log)

  def numbers(self) -> tuple[bytes, bytes]:
    run = self.out / 'run'
    return (run / 'metrics.csv').read_bytes(), (run / 'encoder.keras').read_bytes()


@pytest.mark.parametrize('program', sorted(_RUNS))
def test_killed_and_frozen_sites_end_with_the_same_bytes(
  program, pytestconfig, tmp_path, tally
):
  undisturbed = _Sites(tmp_path / 'undisturbed', program)
  undisturbed.end()
  kills, rng = trials.counts(pytestconfig)['sites'], random.Random(program)
  sites = _Sites(tmp_path / 'disturbed', program)
  for _ in range(kills):
    time.sleep(rng.uniform(0.5, 12.0))
    name = rng.choice([*sites.running])
    if sites.has_ended(name):
      break
    process = sites.running[name]
    if rng.random() < 0.2:
      process.send_signal(signal.SIGSTOP)
      time.sleep(rng.uniform(0.5, 5.0))
      process.send_signal(signal.SIGCONT)
      tally[f'sites: {program}: frozen'] += 1
      continue
    process.kill()
    process.wait()
    tally[f'sites: {program}: killed {name}'] += 1
    sites.start(name)
  sites.end()

  assert sites.numbers() == undisturbed.numbers()
