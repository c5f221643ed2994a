"""What a run's configuration becomes in the library, before anything is trained."""

import types

import pytest

from binaries.building import aggregation
from binaries.building import algorithms
from binaries.building import data
from binaries.building import encoders
from binaries.building import execution
from binaries.building import objectives
from binaries.building import resolved
from binaries.config import changing
from binaries.config import programs
from tests.binaries import in_process
from tff_ssl.algorithms.labels_at_server import grouping

_ROWS = [
  config
  for name in programs.NAMES
  for of_method in programs.load(name).rows.values()
  for config in of_method.values()
]
# Methods that take no secure sums: those without clients, or without a server, have no
# sums at all; those of the second kind would show rows of one client.
_WITHOUT_SUMS = {
  'centralized',
  'centralized_steps',
  'labelled_only',
  'star',
  'ring',
  'tree',
  'complete',
  'random_graph',
  'graph',
}
_OF_ROWS = {'fedca', 'fedmatch', 'fedu2', 'orchestra'}


def _objective(program, line):
  """Returns the objective of a command line."""
  config = resolved.resolve_defaults(in_process.read(program, line))
  task = data.load_task(config)
  return objectives.build(config, encoders.build(config, task), task)


@pytest.mark.parametrize(
  ('line', 'side'),
  [
    ('--encoder=resnet8', 15),
    ('--encoder=vit_micro:patch=2', 14),
    ('--encoder=vit_micro:patch=6', 12),
    # At least one patch.
    ('--encoder=vit_micro:patch=30', 30),
  ],
)
def test_local_crops_are_half_of_the_side_in_whole_patches(line, side):
  line = f'--task=digits --image_size=30 --objective=dino {line}'
  dino = _objective('fedavg_ssl', line)
  assert {crop.image_size for crop in dino.local_crops} == {side}


def test_a_mean_distance_is_over_the_dimensions_of_projections():
  line = '--task=wine --objective=vicreg:projector=16/8,mean_distance=true'
  assert _objective('dcco', line).kind.invariance_weight == 25 / 8


def _secure(config, *fields):
  """Returns a row with secure sums, as a command line would give them."""
  text = f'secure:{",".join(fields)}'.rstrip(':')
  return resolved.resolve_defaults(changing.changed(config, {'aggregation': text}))


@pytest.mark.parametrize(
  ('runtime', 'most'),
  [
    ('in_process', None),
    ('in_process:parts=2', None),
    ('worker', 1_500_000_000),
    ('worker:parts=2', 3_000_000_000),
    ('ray', None),
  ],
)
def test_states_are_bounded_where_they_are_sent_in_messages(runtime, most):
  config = resolved.resolve_defaults(in_process.read('fedema', f'--runtime={runtime}'))
  assert execution.most_bytes(config) == most


def test_fedu2_sends_rows_for_its_unified_aggregator_alone():
  row = programs.load('fedavg_ssl').rows['fedu2']['simclr']
  assert algorithms.of(row).rows_of_one_client(row)
  plain = changing.changed(row, {'method': 'fedu2:unified=false'})
  assert not algorithms.of(plain).rows_of_one_client(plain)


def _of_sums(row, sends_rows, *fields):
  """Returns what is said to secure sums of a row; '' if they are taken."""
  try:
    aggregation.check(_secure(row, *fields), sends_rows)
  except ValueError as error:
    assert str(error).endswith('.') and '\n' not in str(error)
    return str(error)
  return ''


def test_secure_sums_are_taken_or_refused_in_one_sentence():
  for row in _ROWS:
    sends_rows = algorithms.of(row).rows_of_one_client(row)
    assert sends_rows == (row.method.kind in _OF_ROWS), row.title
    said = [
      _of_sums(row, sends_rows, *fields)
      for fields in ((), ('rows_of_one_client=true',))
    ]
    if row.method.kind in _WITHOUT_SUMS:
      assert '--aggregation is given with --m' in said[0], row.title
    elif sends_rows:
      assert 'each client sends its own rows' in said[0] and not said[1], row.title
    else:
      assert not said[0] and 'it is for FedCA, FedM' in said[1], row.title


_NOISE = '--aggregation=private:noise_multiplier=1,update_clip=1,statistics_clip=1'


@pytest.mark.parametrize(
  ('program', 'line', 'why'),
  [
    (
      'fedavg_ssl',
      '--method=fedu2 --objective=simclr',
      'its server stores the rows of',
    ),
    ('fedavg_ssl', '--method=orchestra', 'its server stores the rows of each client'),
    ('fedema', '--method=fedca', 'its server stores the rows of each client'),
    ('fedavg_ssl', '--method=fedbn --objective=simclr', 'its encoder has the mean of'),
    ('dec_ssl', '--method=featarc', 'the clients of a cluster are counted in the cle'),
    ('dec_ssl', '--method=align_only', 'the clients of a cluster are counted in the'),
    ('fedema', '--method=autoscaler=first_round', 'new clients are counted in the cl'),
  ],
)
def test_noise_is_refused_without_data_where_it_cannot_be(program, line, why):
  kind = in_process.checked(program, line).method.kind
  said = f'aggregation is private; with --method={kind} it must be plain or secure, bec'
  with pytest.raises(ValueError, match=f'{said}.*{why}'):
    in_process.checked(program, f'{line} {_NOISE}')


@pytest.mark.parametrize(
  ('program', 'line', 'keeps'),
  [
    ('dcco', '', False),
    ('dcco', '--method=fedsc', True),
    ('fedavg_ssl', '', False),
    ('fedavg_ssl', '--method=fed_ssl', True),
    ('fedavg_ssl', '--method=scaffold', True),
    ('fedavg_ssl', '--method=fedprox --clients=proximal_weight=1', False),
    ('fedavg_ssl', '--method=l_dawa', False),
    ('fedavg_ssl', '--method=fedu2:unified=false --objective=simclr', False),
    ('fedavg_ssl', '--method=ssd', False),
    ('fedema', '', True),
    ('fedema', '--method=fedu', True),
    ('fedema', '--method=fed_byol', True),
    ('ssfl', '--method=la', False),
    ('ssfl', '--method=maml', False),
    ('ssfl', '--method=bilevel', True),
    ('ssfl', '--method=per', True),
  ],
)
def test_poisson_cohorts_are_refused_where_clients_keep_a_state(program, line, keeps):
  config = in_process.checked(program, f'{line} --encoder=conv2 {_NOISE}')
  algorithm, encoder = algorithms.of(config), encoders.of_shape(config, (8, 8, 1))
  objective = objectives.build(config, encoder, types.SimpleNamespace(num_classes=2))
  population = [5] if algorithm.numbered else []
  assert algorithm.build(config, objective, *population).is_stateful == keeps
  poisson = f'{line} --encoder=conv2 {_NOISE},cohorts=poisson'
  if not keeps:
    assert in_process.checked(program, poisson)
    return
  with pytest.raises(ValueError, match='cohorts of --aggregation is poisson for a met'):
    in_process.checked(program, poisson)


@pytest.mark.parametrize(
  ('fields', 'expected'),
  [
    ('fedsup', grouping.Grouping(2, 1.0)),
    ('fedsup:grouped=false', grouping.Grouping(1, 1.0)),
    ('fedsup:server_weight=0.25', grouping.Grouping(2, 0.25)),
    ('fedsup:grouped=false,server_weight=0', grouping.FEDAVG),
    ('fedrgd:grouped=false', grouping.Grouping(1, 1.0)),
  ],
)
def test_groups_and_the_weight_of_the_server_are_set_apart(fields, expected):
  config = in_process.read('fedsup', f'--task=wine --method={fields}')
  assert algorithms.of(config).group(config, 5) == expected
