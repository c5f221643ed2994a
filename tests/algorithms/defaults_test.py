"""The library's defaults, written out: to change one changes what users compute."""

import inspect

import pytest

from tff_ssl.aggregators import aggregations
from tff_ssl.algorithms import fedavg
from tff_ssl.algorithms import orchestra
from tff_ssl.algorithms import ssd
from tff_ssl.algorithms.labels_at_server import fedmatch
from tff_ssl.algorithms.labels_at_server import fedsup
from tff_ssl.algorithms.labels_at_server import grouping
from tff_ssl.algorithms.ssfl import la_ssfl
from tff_ssl.algorithms.ssfl import maml_ssfl
from tff_ssl.objectives import fixmatch
from tff_ssl.objectives import personal_consensus
from tff_ssl.optimization import schedules
from tff_ssl.settings import learning
from tff_ssl.settings import objectives


def test_metrics_of_a_private_aggregation_are_clipped_to_1():
  given = inspect.signature(aggregations.private).parameters
  assert given['metrics_clip'].default == 1.0


@pytest.mark.parametrize(
  ('method', 'name', 'default'),
  [
    (fedsup.fedsup, 'grouping', grouping.Grouping(groups=2, server_weight=1.0)),
    (fedsup.fedsup, 'feature_weight', schedules.Constant(1.0)),
    # Of its published program.
    (fedmatch.fedmatch, 'sparse_below', 1e-5),
    (maml_ssfl.maml_ssfl, 'inner_rate', 0.01),
    (la_ssfl.la_ssfl, 'rate', 0.01),
    (la_ssfl.la_ssfl, 'batch_size', 256),
    (orchestra.orchestra, 'represented', 128),
    # Of its paper.
    (ssd.ssd, 'scale', 10.0),
    (ssd.ssd, 'separation_weight', 1.0),
    (ssd.ssd, 'distillation_weight', 0.1),
  ],
)
def test_defaults_of_what_is_no_setting(method, name, default):
  assert inspect.signature(method).parameters[name].default == default


def test_without_settings_a_client_takes_a_step_at_rate_1():
  """The DCCO paper, section 4."""
  assert fedavg.Training().clients == learning.SgdClients(learning_rate=1.0)


@pytest.mark.parametrize(
  ('objective', 'name', 'default'),
  [
    # Of Sohn et al., for CIFAR-10.
    (fixmatch.FixMatchObjective, 'settings', objectives.Fixmatch(threshold=0.95)),
    (personal_consensus.PerSSFLObjective, 'consensus_weight', 0.1),
  ],
)
def test_defaults_of_objectives(objective, name, default):
  assert inspect.signature(objective).parameters[name].default == default
