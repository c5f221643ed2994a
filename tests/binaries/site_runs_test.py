"""Whole runs at three sites, each a process, beside one process in the same parts.

Private runs are in tests/sites/rounds_test.py.
"""

import collections
import dataclasses

import numpy as np
import pytest
import tensorflow as tf

# isort: split
from binaries import demo_sites
from binaries.building import sites
from binaries.experiment import site_part
from tests.binaries import in_process
from tff_ssl.execution import contexts
from tff_ssl.federated import client_states
from tff_ssl.federated import packs
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
  # Of each site, by the number of a client, if clients keep one.
  kept = {name: {} for name in clients}
  with contexts.in_process():
    state = in_parts.initialize()
    for round in range(1, _ROUNDS + 1):
      known, told = collections.OrderedDict(), []
      drawn = {
        name: own.cohort_with_members(cohorts[name](round))
        for name, own in clients.items()
      }
      for exchange in in_parts.exchanges.values():
        known.update(exchange.broadcast(state))
        total = None
        for name, cohort in drawn.items():
          states = _states(in_parts, clients[name], cohort, kept[name])
          sums, after = exchange.partial(known, *states, cohort.data)
          if states:
            of_clients = [own for pack in after for own in packs.unstack(pack)]
            kept[name].update({int(own.client): own for own in of_clients})
          total = sums if total is None else tf.nest.map_structure(np.add, total, sums)
        state, metrics = exchange.receive(state, [total])
        told.append(metrics)
      yield round_metrics.joined(told)


def _states(in_parts, clients, cohort, kept):
  """Returns the states of a cohort's packs, in a list, if its clients keep some."""
  if in_parts.client_state_type is None:
    return []
  blank = client_states.blank_state(in_parts.client_state_type)
  numbers = [[clients.index(each) for each in pack] for pack in cohort.members]
  states = [
    [kept.get(number, blank._replace(client=np.int32(number))) for number in pack]
    for pack in numbers
  ]
  return [[packs.stack(of_pack) for of_pack in states]]
