"""The rows of the training programs: the settings of their papers."""

import dataclasses

import pytest

from binaries.config import programs
from binaries.config import roles
from tests.binaries import in_process

_ROWS = {
  f'{name} {method} {objective}': row
  for name in programs.NAMES
  for method, by_objective in programs.load(name).rows.items()
  for objective, row in by_objective.items()
}
_AT_SERVER = {
  'partition': 'iid:clients=100',
  'clients_per_round': 5,
  'clients': 'adam',
  'clients.epochs': 5,
  'clients.batch_size': 128,
  'clients.learning_rate': 1e-3,
  'evaluation.methods': ('knn', 'linear', 'finetune'),
  'evaluation.label_fractions': (1.0,),
}
_DCCO_SERVER = {
  'server': 'adam',
  'server.learning_rate': 2e-3,
  'server.schedule': 'cosine',
  'clients.learning_rate': 1.0,
  'clients_per_round': 64,
  'encoder.norm': 'group',
}
_AS_IT_IS = {
  'server': 'sgd',
  'server.learning_rate': 1.0,
  'server.schedule': 'constant',
  'clients': 'sgd',
}
_WIDE, _CONTRASTIVE = (256, 256, 256), (256, 256, 128)
# What README's tables and the papers say.
_VALUES = {
  'dcco dcco cco': {
    **_DCCO_SERVER,
    'objective.projector': _WIDE,
    'objective.off_diagonal_weight': 20.0,
  },
  'dcco fedavg cco': {
    **_DCCO_SERVER,
    'clients.epochs': 1,
    'objective.projector': _WIDE,
  },
  'dcco fedavg simclr': {
    **_DCCO_SERVER,
    'objective.temperature': 0.1,
    'objective.projector': _CONTRASTIVE,
  },
  'dcco centralized_steps supervised': {'objective.labels': 0.1},
  'dcco fedsc spectral': {'server.learning_rate': 3e-4},
  'fedavg_ssl fedavg simclr': {
    **_AS_IT_IS,
    'partition': 'shares:alpha=0.1,clients=5',
    'clients_per_round': 5,
    'clients': 'adam',
    'clients.learning_rate': 2e-3,
    'clients.schedule': 'cosine',
    'clients.epochs': 1,
    'clients.batch_size': 32,
    'objective.temperature': 0.5,
    'objective.projector': _CONTRASTIVE,
  },
  'fedavg_ssl centralized simclr': {'clients': 'adam', 'clients.batch_size': 256},
  'fedavg_ssl fedavg supervised': {'clients': 'sgd', 'clients.learning_rate': 0.03},
  'fedavg_ssl fedavg cco': {'clients': 'adam', 'encoder.norm': 'group'},
  'fedavg_ssl scaffold cco': {'clients.learning_rate': 0.003},
  'fedavg_ssl fedavg vicreg': {'objective.mean_distance': True},
  'fedavg_ssl fedavg moco_v1': {
    'objective.temperature': 0.07,
    'objective.target_momentum': 0.999,
  },
  'fedavg_ssl fed_ssl moco_v2': {
    'objective.temperature': 0.2,
    'objective.projector': (256, 128),
    'method.reset_target': False,
  },
  'fedavg_ssl fedavg swav': {
    'objective.temperature': 0.1,
    'objective.queue_size': 0,
  },
  'fedavg_ssl fedavg dino': {
    'objective.projector': _WIDE,
    'objective.temperature': 0.1,
    'objective.target_momentum': 0.996,
  },
  'fedavg_ssl fedavg mae': {'encoder': 'vit_micro', 'objective.mask_ratio': 0.75},
  'fedavg_ssl fedbn simclr': {'encoder.norm': 'batch'},
  'fedavg_ssl scaffold simclr': {'clients.learning_rate': 0.1, 'clients.momentum': 0.0},
  # With a tenth of it BYOL and SimSiam learn little in a hundred rounds.
  'fedavg_ssl fed_ssl byol': {'encoder.norm': 'batch', 'clients.learning_rate': 0.3},
  # Section 5.1 and appendix A of its paper.
  'fedema fedema byol': {
    **_AS_IT_IS,
    'partition': 'classes:per_client=2,clients=5',
    'clients_per_round': 5,
    'clients.epochs': 5,
    'clients.batch_size': 128,
    'clients.learning_rate': 0.032,
    'clients.momentum': 0.9,
    'clients.weight_decay': 5e-4,
    'clients.schedule': 'cosine',
    'method.divergence_of': 'global',
    'method.tau': 0.7,
    'objective.target_momentum': 0.99,
    'evaluation.personal': None,
  },
  'fedema fedavg simsiam': {'encoder.norm': 'batch'},
  'fedema fedu byol': {
    'method.divergence_norm': 'conv_mean',
    'method.threshold': 0.4,
  },
  # The FedEMA authors' momentum; their key network starts each round as the global one.
  'fedema fed_ssl moco_v1': {
    'encoder.norm': 'batch',
    'objective.target_momentum': 0.99,
    'method.reset_target': True,
  },
  'fedema fedca fedca': {
    'objective.temperature': 0.5,
    'method.dictionary_size': 16,
    'encoder.norm': 'batch',
  },
  'ssfl per simsiam': {
    **_AS_IT_IS,
    'clients_per_round': 10,
    'evaluation.personal': ('linear',),
    # Section 5.4.1: batches of 32, 8 of them a step; SGD with momentum.
    'clients.batch_size': 32,
    'clients.accumulate': 8,
    'clients.momentum': 0.9,
    # The best of its four, where three were tried.
    'clients.learning_rate': 0.3,
    'method.consensus_weight': 0.1,
    'encoder.norm': 'batch',
  },
  # Appendix C.1 of its paper.
  'dec_ssl fedavg simclr': {
    'partition': 'skew:beta=0,clients=5',
    'clients_per_round': 5,
    'clients': 'adam',
    'clients.epochs': 5,
    'clients.batch_size': 256,
    'clients.learning_rate': 1e-3,
    'objective.temperature': 0.5,
  },
  'dec_ssl random_graph simclr': {
    'participation': 1.0,
    'clients.epochs': 5,
    'method.edge_probability': 0.7,
  },
  'dec_ssl fedavg byol': {
    'clients': 'sgd',
    'clients.learning_rate': 0.03,
    'clients.momentum': 0.9,
  },
  'dec_ssl ring mae': {'clients': 'adamw', 'clients.weight_decay': 0.05},
  'fedsup fedsup fedsup': {
    **_AT_SERVER,
    'objective.predictor_width': 128,
    'labels.share': 0.1,
  },
  'fedsup server_finetuned fixmatch': {
    **_AT_SERVER,
    'objective.threshold': 0.95,
    'encoder.norm': 'batch',
  },
  # FedRGD's advice is group norm; FedMatch's clients have SGD.
  'fedsup fedrgd fixmatch': {**_AT_SERVER, 'encoder.norm': 'group'},
  'fedsup fedmatch fedmatch': {
    'objective.threshold': 0.75,
    'clients': 'sgd',
    'clients.learning_rate': 1e-3,
    'encoder.norm': 'group',
  },
  'fedsup server_finetuned simclr': {
    'objective.temperature': 0.5,
    'objective.projector': (128, 128),
  },
  'fedsup labelled_only supervised': {'partition': 'iid:clients=100'},
}


@pytest.mark.parametrize('name', _VALUES)
def test_values_of_the_rows(name):
  values = _ROWS[name].settings()
  expected = _VALUES[name]
  assert {name: values[name] for name in expected} == expected


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
