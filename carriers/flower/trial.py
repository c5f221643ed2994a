r"""Runs three sites on this machine, over Flower and over a folder, and compares.

  python -m carriers.flower.trial --flower=build/flower --work=build/sites-flower

`make sites-flower` makes Flower's environment first. The sites' pictures are digits.
Each party has a mailbox of its own, between which Flower alone carries: a SuperLink
with TLS, and three SuperNodes whose keys are registered there. Then the same run is
made with one mailbox for all. metrics.csv must be the same to the byte. All processes
end with this one; their logs stay in --work.
"""

import argparse
import hashlib
import itertools
import json
import os
import pathlib
import secrets
import shutil
import socket
import statistics
import sys
import time
from typing import NamedTuple

import numpy as np
from PIL import Image
from sklearn import datasets

from carriers.flower import started

_HERE = pathlib.Path(__file__).resolve().parent
_SITES = ('east', 'north', 'south')
_COORDINATOR = 'coordinator'
_BITS = 256
# What keeps Flower from installing packages, from telling its makers that it runs, and
# from asking them for a newer release.
_SEALED = {
  'FLWR_TELEMETRY_ENABLED': '0',
  'FLWR_DISABLE_UPDATE_CHECK': '1',
  'FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION': '1',
  'UV_OFFLINE': '1',
  # Whatever else would go out: nobody listens there.
  'HTTP_PROXY': 'http://127.0.0.1:9',
  'HTTPS_PROXY': 'http://127.0.0.1:9',
  'NO_PROXY': '127.0.0.1,localhost',
}


class Times(NamedTuple):
  """Seconds of a run.

  Attributes:
    joined: From the offer to the first question, with the sites' own start.
    rounds: Of each round.
    whole: From the offer to the end.
  """

  joined: float
  rounds: list[float]
  whole: float


def make_pictures(folder: pathlib.Path) -> None:
  """Deals scikit-learn's digits to the sites, each with patients of four pictures."""
  digits = datasets.load_digits()
  for index, image in enumerate(digits.images):
    site = _SITES[index % len(_SITES)]
    patient = folder / site / f'patient_{index // 12:03d}'
    patient.mkdir(parents=True, exist_ok=True)
    values = (image * (_BITS - 1) / image.max()).astype(np.uint8)
    Image.fromarray(values).save(patient / f'{index:04d}.png')


def make_keys(own: started.Started, folder: pathlib.Path) -> None:
  """Makes the keys of all parties, and gives each the public ones of the others."""
  parties = (_COORDINATOR, *_SITES)
  for name in parties:
    which = (f'--name={name}', f'--keys={folder / name}')
    own.run([sys.executable, '-m', 'binaries.site', '--new_key', *which])
  for name in parties:
    for other in parties:
      if other != name:
        shutil.copy(folder / other / f'{other}.pub', folder / name)


def start_flower(
  own: started.Started, work: pathlib.Path, programs: pathlib.Path
) -> None:
  """Starts SuperLink and SuperNodes, and the app that carries.

  Args:
    own: Starts processes.
    work: Folder in which parties have their mailboxes.
    programs: Folder of Flower's programs.
  """
  flower, address = work / 'flower', f'127.0.0.1:{free_port()}'
  own.run(['sh', str(_HERE / 'certificates.sh'), str(flower), '127.0.0.1'])
  roots = str(flower / 'ca.pem')
  # Who speaks with a SuperLink or SuperNode on its own machine, to do its tasks.
  secret = flower / 'secret'
  secret.write_bytes(secrets.token_bytes(32))
  secret_is = f'--superexec-auth-secret-file={secret}'
  # TOML writes these strings as JSON does.
  connection = f'address={json.dumps(address)}\nroot-certificates={json.dumps(roots)}\n'
  (flower / 'config.toml').write_text(f'[superlink.here]\n{connection}')
  own.start(
    'superlink',
    str(programs / 'flower-superlink'),
    *(f'--ssl-certfile={flower / "link.pem"}', f'--ssl-keyfile={flower / "link.key"}'),
    *(f'--ssl-ca-certfile={roots}', '--enable-supernode-auth'),
    *('--disable-runtime-dependency-installation', '--isolation=process', secret_is),
    *(f'--host={address.split(":")[0]}', f'--port={address.split(":")[1]}'),
  )
  log = own.log('superlink')
  own.wait_until('SuperLink', lambda: 'Uvicorn running' in log.read_text())
  own.start(
    'superexec',
    str(programs / 'flower-superexec'),
    *(f'--runtime-api-address={address}', f'--root-certificates={roots}', secret_is),
  )
  for name in _SITES:
    key, port = flower / name, free_port()
    own.run(['ssh-keygen', '-q', '-t', 'ecdsa', '-b', '384', '-N', '', '-f', str(key)])
    public = str(key.with_suffix('.pub'))
    own.run(
      [str(programs / 'flwr'), 'supernode', 'register', public, 'here', '--name', name]
    )
    own.start(
      f'supernode_{name}',
      str(programs / 'flower-supernode'),
      *(f'--superlink={address}', f'--root-certificates={roots}'),
      *(f'--auth-supernode-private-key={key}', f'--port={port}'),
      *('--isolation=process', secret_is, '--node-config'),
      f'site={json.dumps(name)} mailbox={json.dumps(str(work / name / "mailbox"))}',
    )
    own.start(
      f'lasting_{name}',
      *(str(programs / 'python'), str(_HERE / 'lasting.py')),
      *(f'--runtime=127.0.0.1:{port}', f'--secret={secret}'),
    )
  mailbox = json.dumps(str(work / _COORDINATOR / 'mailbox'))
  config = f'mailbox={mailbox} sites="{"/".join(_SITES)}"'
  own.run([str(programs / 'flwr'), 'run', str(_HERE), 'here', '--run-config', config])


def free_port() -> int:
  """Returns the number of a port that nobody listens at."""
  with socket.create_server(('127.0.0.1', 0)) as server:
    return int(server.getsockname()[1])


def train(
  own: started.Started, work: pathlib.Path, common: pathlib.Path, rounds: int, box: str
) -> Times:
  """Runs the coordinator and the sites.

  Args:
    own: Starts processes.
    work: Folder of the run, in which each party has one.
    common: Folder with `keys` and `pictures`.
    rounds: Number of rounds.
    box: Mailbox of a party, whose name stands for {}.

  Returns:
    What took how long.
  """
  mailbox, keys = box.format(_COORDINATOR), common / 'keys'
  out = work / _COORDINATOR / 'run'
  python = (sys.executable, '-m')
  name = f'{work.name}_{_COORDINATOR}'
  coordinator = own.start(
    name,
    *(*python, 'binaries.dcco', '--task=sites', '--image_size=8'),
    *('--augmentation=mild', '--clients_per_round=8', f'--rounds={rounds}'),
    f'--runtime=sites:mailbox={mailbox},keys={keys / _COORDINATOR},deadline=600',
    f'--run_dir={out}',
  )
  offer = pathlib.Path(mailbox) / _COORDINATOR / '00000001.message'
  own.wait_until('The offer', offer.exists)
  for site in _SITES:
    pathlib.Path(box.format(site)).mkdir(parents=True, exist_ok=True)
  digest, began = hashlib.sha256(offer.read_bytes()).hexdigest(), time.monotonic()
  sites = [
    own.start(
      f'{work.name}_{site}',
      *(*python, 'binaries.site', f'--name={site}', '--task=folder'),
      *(f'--data_dir={common / "pictures" / site}', '--data=folders=client'),
      *(f'--mailbox={box.format(site)}', f'--keys={keys / site}'),
      *(f'--folder={work / site / "site"}', f'--accept={digest[:12]}'),
    )
    for site in _SITES
  ]
  starts: dict[int, float] = {}

  def has_ended() -> bool:
    for line in (out / 'outbox.log').read_text().splitlines():
      # The last line may still be written.
      if line.endswith('}') and (round := json.loads(line).get('round')):
        starts.setdefault(int(round), time.monotonic())
    return coordinator.poll() is not None

  own.wait_until('The run', has_ended)
  ended = time.monotonic()
  if coordinator.returncode:
    raise RuntimeError(f'The coordinator has failed; see {own.log(name)}.')
  own.wait_until('The end at sites', lambda: all(s.poll() is not None for s in sites))
  at = [starts[round] for round in sorted(starts)]
  each = [after - before for before, after in itertools.pairwise(at)]
  return Times(at[0] - began, each, ended - began)


def main() -> None:
  """Makes both runs, compares them, and prints seconds a round."""
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument('--flower', type=pathlib.Path, default='build/flower')
  parser.add_argument('--work', type=pathlib.Path, default='build/sites-flower')
  parser.add_argument('--rounds', type=int, default=5)
  options = parser.parse_args()
  work = options.work.resolve()
  shutil.rmtree(work, ignore_errors=True)
  programs = (options.flower / 'bin').resolve()
  environment = {
    **_SEALED,
    'FLWR_HOME': str(work / 'over_flower' / 'flower'),
    # Flower starts its programs by their names.
    'PATH': f'{programs}:{os.environ["PATH"]}',
  }
  with started.Started(work / 'logs', environment) as own:
    make_pictures(work / 'pictures')
    make_keys(own, work / 'keys')
    over = {name: work / name for name in ('over_folder', 'over_flower')}
    shared = str(over['over_folder'] / 'mailbox')
    folder = train(own, over['over_folder'], work, options.rounds, shared)
    began = time.monotonic()
    start_flower(own, over['over_flower'], programs)
    start = time.monotonic() - began
    apart = f'{over["over_flower"]}/{{}}/mailbox'
    carried = train(own, over['over_flower'], work, options.rounds, apart)
    (over['over_flower'] / _COORDINATOR / 'mailbox' / 'stop').touch()
    runs = [str(programs / 'flwr'), 'list', 'here', '--format=json']
    own.wait_until('The end of Flower', lambda: 'finished:completed' in own.run(runs))
  print(f'Flower: {start:.1f} s until all its processes were started')
  for name, times in (('folder', folder), ('Flower', carried)):
    print(
      f'{name}: {statistics.median(times.rounds):.2f} s a round (median of '
      f'{len(times.rounds)}), {times.joined:.1f} s from the offer to the first '
      f'question, {times.whole:.1f} s in all'
    )
  metrics = [each / _COORDINATOR / 'run' / 'metrics.csv' for each in over.values()]
  if metrics[0].read_bytes() != metrics[1].read_bytes():
    sys.exit('metrics.csv of the two runs differ; they must not.')
  print('metrics.csv of both are the same, to the byte')


if __name__ == '__main__':
  main()
