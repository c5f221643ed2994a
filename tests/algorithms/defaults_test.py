"""The library's defaults, written out: to change one changes what users compute."""

import dataclasses
import inspect

import pytest

from tff_ssl.aggregators import aggregations
from tff_ssl.algorithms import fedavg
from tff_ssl.algorithms import fedca
from tff_ssl.algorithms import federated_linear
from tff_ssl.algorithms import l_dawa
from tff_ssl.algorithms.divergence_aware import fedu
from tff_ssl.algorithms.divergence_aware import online_networks
from tff_ssl.algorithms.labels_at_server import fedmatch
from tff_ssl.algorithms.labels_at_server import fedsup
from tff_ssl.algorithms.labels_at_server import grouping
from tff_ssl.algorithms.labels_at_server import server_training
from tff_ssl.algorithms.ssfl import bilevel_ssfl
from tff_ssl.algorithms.ssfl import la_ssfl
from tff_ssl.algorithms.ssfl import maml_ssfl
from tff_ssl.algorithms.ssfl import per_ssfl
from tff_ssl.algorithms.statistics import dcco
from tff_ssl.federated import local_training
from tff_ssl.federated import optimizers
from tff_ssl.objectives import fixmatch
from tff_ssl.objectives import personal_consensus
from tff_ssl.optimization import schedules

_EXPECTED = {
  # Section 4: one step at rate 1, on fresh statistics.
  dcco.DCCOConfig: {
    'client_learning_rate': 1.0,
    'local_steps': 1,
    'stale_statistics': False,
    'seed': 0,
  },
  fedavg.FedAvgConfig: {
    'client_learning_rate': 1.0,
    'weighting': 'examples',
    'seed': 0,
    'rounds': None,
  },
  # FedU's threshold of its paper, section 4.2.
  fedu.FedUConfig: {
    'threshold': 0.4,
    'norm': 'conv_mean',
    'quantile': None,
    'divergence_of': 'global',
  },
  # FedMatch's published program: helpers of the last ten rounds, psi a fifth.
  fedmatch.FedMatchConfig: {
    'helpers': 2,
    'interval': 10,
    'psi_share': 0.2,
    'sparse_below': 1e-5,
  },
  fedca.FedCAConfig: {'dictionary_size': 16},
  per_ssfl.PerSSFLConfig: {'consensus_weight': 0.1},
  bilevel_ssfl.BiLevelConfig: {'proximity_weight': 0.1},
  maml_ssfl.MamlConfig: {'inner_rate': 0.01},
  la_ssfl.AdaptationConfig: {'rate': 0.01, 'batch_size': 256, 'seed': 0},
  l_dawa.LDAWAConfig: {'divergence_aware': True},
  federated_linear.FederatedLinearConfig: {
    'rounds': 100,
    'epochs': 1,
    'batch_size': 32,
    'learning_rate': 0.1,
    'momentum': 0.9,
    'seed': 0,
  },
  grouping.Grouping: {'groups': 1, 'server_weight': 0.0},
  local_training.LocalPlan: {
    'epochs': 1,
    'batch_size': None,
    'accumulate': 1,
    'proximal_weight': 0.0,
    'drop_last': 'small',
  },
  online_networks.NetworkSharing: {
    'averaged': 'online',
    'replaced': 'online',
    'first_target': 'copy',
  },
  optimizers.OptimizerConfig: {
    'name': 'adam',
    'learning_rate': 1e-3,
    'schedule': 'constant',
    'rounds': None,
    'warmup_rounds': 0,
    'momentum': None,
    'weight_decay': 0.0,
    'boundaries': (),
    'factor': 0.1,
  },
  server_training.ServerPlan: {'learning_rate': 1e-3},
}


@pytest.mark.parametrize('config', _EXPECTED)
def test_defaults(config):
  given = {
    field.name: field.default
    for field in dataclasses.fields(config)
    if field.default is not dataclasses.MISSING
  }
  assert given == _EXPECTED[config]


def test_metrics_of_a_private_aggregation_are_clipped_to_1():
  given = inspect.signature(aggregations.private).parameters
  assert given['metrics_clip'].default == 1.0


def test_fedsup_averages_two_groups_each_with_the_teacher():
  config = fedsup.FedSupConfig()
  assert config.grouping == grouping.Grouping(groups=2, server_weight=1.0)
  assert config.feature_weight == schedules.Constant(1.0)


@pytest.mark.parametrize(
  ('objective', 'name', 'default'),
  [
    # Of Sohn et al., for CIFAR-10.
    (fixmatch.FixMatchObjective, 'threshold', 0.95),
    (personal_consensus.PerSSFLObjective, 'consensus_weight', 0.1),
  ],
)
def test_defaults_of_objectives(objective, name, default):
  assert inspect.signature(objective).parameters[name].default == default
