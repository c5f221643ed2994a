"""Whole runs at three sites, each a process, beside one process in the same parts.

Private runs are in tests/sites/rounds_test.py.
"""

import dataclasses

import pytest

# isort: split
from binaries import demo_sites
from binaries.building import sites
from binaries.experiment import site_part
from tests.binaries import in_process
from tests.sites import one_process
from tff_ssl.execution import contexts
from tff_ssl.federated import parts
from tff_ssl.federated import round_metrics
from tff_ssl.runs import flat_metrics
from tff_ssl.runs import round_table
from tff_ssl.simulation import simulated_clients

_ROUNDS = 3
_RUNS = {
  'byol': ('fedavg_ssl', '--objective=byol --encoder=norm=batch'),
  'dcco': ('dcco', ''),
  'fedema': ('fedema', '--objective=byol --encoder=norm=batch'),
  'lejepa': ('dcco', '--objective=lejepa'),
  'simclr': ('fedavg_ssl', '--objective=simclr'),
}


@pytest.mark.long
@pytest.mark.parametrize('name', sorted(_RUNS))
def test_metrics_of_sites_are_those_of_one_process_in_their_parts(name, tmp_path):
  program, line = _RUNS[name]
  line = f'{line} --image_size=8 --augmentation=mild --clients_per_round=4'
  line += f' --rounds={_ROUNDS} --evaluation=signals_every=none'
  demo_sites.write_pictures(tmp_path)
  demo_sites.write_keys(tmp_path)
  running = demo_sites.start_all(tmp_path, program, *line.split())
  for process in running.values():
    assert process.wait(500.0) == 0, (tmp_path / 'coordinator.log').read_text()

  runtime = f'--runtime=sites:mailbox=m,keys=k,names={"/".join(demo_sites.NAMES)}'
  config = in_process.checked(program, f'--task=sites {runtime} {line}')
  expected = round_table.Table(tmp_path / 'expected.csv')
  for round, metrics in enumerate(_rounds(sites.offered(config), tmp_path), start=1):
    expected.append(round, flat_metrics.flatten(metrics))

  got = round_table.Table(tmp_path / 'run' / 'metrics.csv').rows()
  # Sites are counted beside the process's own metrics.
  counted = {'sites/counted': '3', 'sites/absent': '0'}
  assert got == [{**row, **counted} for row in expected.rows()]


def _rounds(config, folder):
  """Yields the metrics of rounds whose parts are the clients of the sites."""
  clients, cohorts = {}, {}
  for name in demo_sites.NAMES:
    data = dataclasses.replace(config.data, dir=str(folder / name / 'pictures'))
    own = dataclasses.replace(config, task='cases', data=data, partition=None)
    task, held = site_part.read(own, name)
    built = sites.build(own, task, held.element_type_structure)
    cohorts[name] = site_part.cohorts_of(name, own, held)
    clients[name] = simulated_clients.Clients(held, num_packs=config.runtime.packs)
  in_parts = parts.build_parts(built.graph)
  with contexts.in_process():
    rounds = one_process.rounds(
      in_parts, clients, lambda name, round: cohorts[name](round), _ROUNDS
    )
    for _, told, _ in rounds:
      yield round_metrics.joined(told)
