"""The rows of the training programs: the settings of their papers."""

import dataclasses

import pytest

from binaries.config import programs
from tests.binaries import in_process
from tff_ssl.settings import roles


@pytest.mark.parametrize(
  ('program', 'line', 'views'),
  [
    ('fedavg_ssl', '--objective=simclr --task=cifar10', 'small'),
    ('fedavg_ssl', '--objective=simclr --task=cifar10 --image_size=33', 'byol_no_blur'),
    ('fedavg_ssl', '--objective=simclr --task=ham10000 --image_size=32', 'small'),
    ('fedavg_ssl', '--objective=simclr --task=ham10000', 'byol_no_blur'),
    ('fedavg_ssl', '--objective=simclr --task=digits', 'mild'),
    ('fedavg_ssl', '--objective=byol --task=cifar10', 'byol_no_blur'),
    ('dcco', '--task=cifar10', 'byol_no_blur'),
  ],
)
def test_small_pictures_have_small_views_in_rows_of_our_own(program, line, views):
  assert in_process.read(program, line).augmentation == views


@pytest.mark.parametrize('objective', ['simclr', 'simsiam'])
def test_the_same_method_in_two_programs_differs_in_its_defaults_alone(objective):
  one = programs.load('fedema').row('fedavg', objective)
  # Clients, views and norm of SimSiam, for SimCLR too.
  rows = programs.load('fedavg_ssl').rows['fedavg']
  same = dataclasses.replace(rows['simsiam'], objective=rows[objective].objective)
  # What the FedEMA paper sets (its section 5.1 and appendix A).
  other = roles.replace(
    same,
    {
      'partition': 'classes:per_client=2,clients=5',
      'clients.epochs': 5,
      'clients.learning_rate': 0.032,
      'clients.weight_decay': 5e-4,
      'clients.schedule': 'cosine',
    },
  )
  assert one == other


def test_a_run_from_python_has_an_objective_that_a_program_offers_with_its_method():
  own = programs.load('fedsup').row('fedsup', None)
  programs.check(own)
  other = programs.load('fedavg_ssl').row('fedavg', 'simclr').objective
  with pytest.raises(ValueError, match='with the method fedsup it must be one of fed'):
    programs.check(dataclasses.replace(own, objective=other))
