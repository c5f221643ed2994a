"""What the benchmark's flags stand for, and what they refuse."""

import dataclasses

import pytest

from binaries.benchmarking import settings
from tests.binaries import in_process

REFUSED = {
  '--experiment=fedavg --runtime=hosts': 'runtime is hosts; it must be worker or in_p',
  '--experiment=dcco --batch_size=4': 'it is for fedavg, fedsup',
  '--experiment=fedsup --objective=byol': 'it is for fedavg, precision only',
  '--experiment=precision --precision=bfloat16': '--precision is given with --experim',
  '--experiment=precision --growth=clients': '--growth is given with --experiment=prec',
  '--memory_rounds=20': '--memory_rounds is 20; it must be 0 or more than 20.',
  '--run_dir=somewhere': 'does not take this flag',
  '--experiment=dcco --regime=B': 'its local batches are for fedavg, fedsup',
  '--regime=A --clients=3': '--clients is given with --regime=A; leave one of them out',
  '--regime=C --examples_per_client=1': '--examples_per_client is given with --regime',
  '--experiment=fedavg --regime=B --batch_size=9': '--batch_size is given with --reg',
  '--experiment=fedavg --regime=D --local_epochs=2': '--local_epochs is given with',
  '--regime=A --growth=clients': '--growth is given with --regime=A; leave one',
  '--growth=clients --clients=3': '--clients is given with --growth=clients; leave',
  '--growth=examples --examples_per_client=3': '--examples_per_client is given with',
  '--growth=clients --memory_rounds=30': '--memory_rounds is given with --growth',
  '--growth_points=1,2': '--growth_points is given without --growth',
  '--plot=growth.png': '--plot is given without --growth',
  '--growth=clients --growth_points=8': "is '8'; it must be at least two positive",
  '--growth=clients --growth_points=8,x': "is '8,x'; it must be at least two",
  '--growth=clients --growth_points=8,4': "is '8,4'; it must be",
  '--growth=clients --growth_points=0,4': "is '0,4'; it must be",
  '--growth=population --growth_points=63,100': 'begins with 63; a population must '
  'have at least the 64 clients',
  '--growth=clients --plot=growth.jpg': "--plot is 'growth.jpg'; it must end in .png",
  '--growth=clients --plot=no/such/growth.png': "there must be a folder 'no/such'",
}

# (clients, examples, batch size, epochs, population) of each cohort.
TAKEN = {
  '': [(64, 4, None, 1, None)],
  '--clients=3 --examples_per_client=2': [(3, 2, None, 1, None)],
  '--experiment=fedavg --batch_size=2 --local_epochs=3': [(64, 4, 2, 3, None)],
  '--regime=A --memory_rounds=21': [(128, 4, None, 1, None)],
  '--experiment=fedavg --regime=B': [(5, 500, 50, 1, None)],
  '--experiment=precision --regime=B --objective=byol': [(5, 500, 50, 1, None)],
  '--experiment=dcco --regime=C': [(512, 1, None, 1, None)],
  '--experiment=dcco --regime=D': [(256, None, None, 1, None)],
  '--growth=clients': [(n, 4, None, 1, None) for n in (8, 32, 128, 512, 2048)],
  '--growth=examples': [(16, n, None, 1, None) for n in (1, 4, 16, 64, 256)],
  '--growth=population': [(64, 4, None, 1, n) for n in (100, 1_000, 10_000, 100_000)],
  '--growth=population --clients=2 --growth_points=2,5': [
    (2, 4, None, 1, 2),
    (2, 4, None, 1, 5),
  ],
  '--experiment=fedavg --growth=examples --clients=2 --growth_points=2,4 '
  '--batch_size=2': [(2, 2, 2, 1, None), (2, 4, 2, 1, None)],
}


@pytest.mark.parametrize('line', REFUSED)
def test_refused(line):
  with in_process.parsed(*line.split()), pytest.raises(ValueError) as error:
    settings.check()
  message = str(error.value)
  assert REFUSED[line] in message
  assert message.endswith('.')


@pytest.mark.parametrize('line', TAKEN)
def test_taken(line):
  with in_process.parsed(*line.split()):
    settings.check()
    cohorts = [dataclasses.asdict(each) for each in settings.cohorts()]
  assert [
    (
      each['clients'],
      each['examples_per_client'],
      each['local']['batch_size'],
      each['local']['epochs'],
      each['population'],
    )
    for each in cohorts
  ] == TAKEN[line]
