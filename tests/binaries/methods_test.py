"""The table of methods: what each takes, its values, and what becomes of the rest."""

import json
import re

from absl import flags
import pytest

from binaries.methods import choice
from binaries.methods import table
from tests.binaries import in_process
from tff_ssl.encoders import mlp

_ROWS = [
  (program.name, row) for program in table.PROGRAMS.values() for row in program.methods
]
# Without these, no row of theirs can be run.
_NEEDED = {
  'fedprox': ('--proximal_weight=0.1',),
  'graph': ('--graph=graph.csv',),
}
# Algorithms that take no secure sums, and what is said: of those without a server, or
# without clients; and of those that would show rows of one client.
_WITHOUT_SECURE_SUMS = {
  **dict.fromkeys(
    (
      'centralized',
      'centralized_steps',
      'labelled_only',
      'star',
      'ring',
      'tree',
      'complete',
      'random_graph',
      'graph',
    ),
    '--aggregation is given with --',
  ),
  **dict.fromkeys(('fedca', 'fedmatch'), 'each client sends its own rows'),
}
_DCCO_SERVER = {
  'server_optimizer': 'adam',
  'server_learning_rate': 2e-3,
  'server_schedule': 'cosine',
  'client_learning_rate': 1.0,
  'clients_per_round': 64,
}
_AS_IT_IS = {
  'server_optimizer': 'sgd',
  'server_learning_rate': 1.0,
  'server_schedule': 'constant',
  'client_learning_rate': 0.03,
  'local_epochs': 1,
  'batch_size': None,
  'client_optimizer': 'sgd',
}
_AT_SERVER = {
  'partition': 'iid:clients=100',
  'clients_per_round': 5,
  'local_epochs': 5,
  'batch_size': 128,
  'client_optimizer': 'adam',
  'client_learning_rate': 1e-3,
  'evaluation_methods': ['knn', 'logistic', 'finetune'],
  'label_fractions': ['1'],
}
_WIDE = ['256', '256', '256']
_CONTRASTIVE = ['256', '256', '128']
# What the programs' flags were by default when each program had its own (of README's
# tables), and what the papers say of the rest.
_VALUES = {
  ('dcco', 'dcco'): {
    **_DCCO_SERVER,
    'projector': _WIDE,
    'loss': 'cco',
    'encoder_norm': 'group',
  },
  ('dcco', 'fedavg_cco'): {**_DCCO_SERVER, 'local_epochs': 1, 'projector': _WIDE},
  ('dcco', 'fedavg_nt_xent'): {
    **_DCCO_SERVER,
    'temperature': 0.1,
    'projector': _CONTRASTIVE,
  },
  ('dcco', 'centralized_supervised'): {'supervised_labels': 0.1},
  ('fedavg_ssl', 'fedavg simclr'): {
    **_AS_IT_IS,
    'partition': 'shares:alpha=0.1,clients=5',
    'clients_per_round': 5,
    'batch_size': 128,
    'client_momentum': 0.9,
    'temperature': 0.5,
    'projector': _CONTRASTIVE,
  },
  ('fedavg_ssl', 'fedavg moco_v1'): {'temperature': 0.07, 'target_momentum': 0.999},
  ('fedavg_ssl', 'fed_ssl moco_v2'): {'temperature': 0.2, 'projector': ['256', '128']},
  ('fedavg_ssl', 'fedavg swav'): {'temperature': 0.1, 'prototypes': 256},
  ('fedavg_ssl', 'fedavg dino'): {
    'projector': _WIDE,
    'temperature': 0.1,
    'target_momentum': 0.996,
    'prototypes': 256,
    'local_crops': 4,
  },
  ('fedavg_ssl', 'fedavg vicreg'): {'loss': 'vicreg', 'projector': _WIDE},
  ('fedavg_ssl', 'scaffold simclr'): {
    'client_learning_rate': 0.1,
    'client_momentum': 0.0,
  },
  # Section 5.1 and appendix A of its paper.
  ('fedema', 'fedema'): {
    **_AS_IT_IS,
    'partition': 'classes:per_client=2,clients=5',
    'clients_per_round': 5,
    'local_epochs': 5,
    'batch_size': 128,
    'client_learning_rate': 0.032,
    'client_momentum': 0.9,
    'client_weight_decay': 5e-4,
    'client_schedule': 'cosine',
    'divergence_of': 'global',
    'divergence_norm': 'l2',
    'target_momentum': 0.99,
    'tau': 0.7,
    'personal_methods': [],
  },
  ('fedema', 'fed_simsiam'): {'encoder_norm': 'batch'},
  # The FedEMA authors' momentum; their key network starts each round as the global one.
  ('fedema', 'fed_moco_v1'): {
    'encoder_norm': 'batch',
    'target_momentum': 0.99,
    'reset_target': True,
  },
  ('fedavg_ssl', 'fed_ssl byol'): {
    'encoder_norm': 'batch',
    'reset_target': False,
    # With a tenth of it BYOL and SimSiam learn little in a hundred rounds.
    'client_learning_rate': 0.3,
  },
  ('fedavg_ssl', 'fedavg cco'): {'encoder_norm': 'group'},
  ('fedavg_ssl', 'fedbn simclr'): {'encoder_norm': 'batch'},
  ('fedema', 'fedu'): {'divergence_norm': 'conv_mean', 'threshold': 0.4},
  ('fedema', 'fedca'): {
    'temperature': 0.5,
    'dictionary_size': 16,
    'encoder_norm': 'batch',
  },
  ('ssfl', 'per'): {
    **_AS_IT_IS,
    'clients_per_round': 10,
    'personal_methods': ['logistic'],
    # Section 5.4.1: batches of 32, 8 of them a step; SGD with momentum.
    'batch_size': 32,
    'accumulate': 8,
    'client_momentum': 0.9,
    # The best of its four, where three were tried.
    'client_learning_rate': 0.3,
    'consensus_weight': 0.1,
    'encoder_norm': 'batch',
  },
  # Appendix C.1 of its paper.
  ('dec_ssl', 'fedavg simclr'): {
    'partition': 'skew:beta=0,clients=5',
    'clients_per_round': 5,
    'local_epochs': 5,
    'batch_size': 256,
    'client_optimizer': 'adam',
    'client_learning_rate': 1e-3,
    'client_momentum': 0.0,
    'temperature': 0.5,
  },
  ('dec_ssl', 'random_graph simclr'): {
    'participation': 1.0,
    'local_epochs': 5,
    'edge_probability': 0.7,
  },
  ('dec_ssl', 'fedavg byol'): {
    'client_optimizer': 'sgd',
    'client_learning_rate': 0.03,
    'client_momentum': 0.9,
  },
  ('ssfl', 'global'): {'batch_size': 32, 'accumulate': 8, 'client_momentum': 0.9},
  ('fedsup', 'fedsup'): {**_AT_SERVER, 'predictor_width': 128},
  ('fedsup', 'fixmatch'): {**_AT_SERVER, 'threshold': 0.95, 'encoder_norm': 'batch'},
  ('fedsup', 'finetuned_byol'): {'encoder_norm': 'batch'},
  # FedRGD's advice is group norm; FedMatch's clients have SGD.
  ('fedsup', 'fedrgd'): {**_AT_SERVER, 'encoder_norm': 'group'},
  ('fedsup', 'fedmatch'): {
    'threshold': 0.75,
    'client_optimizer': 'sgd',
    'client_learning_rate': 1e-3,
    'encoder_norm': 'group',
  },
  ('fedsup', 'finetuned_simclr'): {'temperature': 0.5, 'projector': ['128', '128']},
  ('fedsup', 'labelled_only'): {'partition': 'iid:clients=100'},
}


def _chosen(program, row):
  """Returns the flags that name a row."""
  choosers = table.PROGRAMS[program].choosers
  named = [f'--{k}={v}' for k, v in zip(choosers, row.split(), strict=True)]
  return (*named, *_NEEDED.get(row.split()[0], ()))


def _read(program, *arguments):
  with in_process.parsed(*arguments):
    return choice.read(program).values()


@pytest.mark.parametrize(('program', 'row'), _ROWS)
def test_a_row_has_a_value_of_each_of_its_flags(program, row):
  method = table.PROGRAMS[program].methods[row]
  assert all(name in flags.FLAGS for name in method.flags())
  values = _read(program, *_chosen(program, row))
  assert values.keys() >= set(method.flags()) - set(method.renamed)
  assert json.loads(json.dumps(values)) == values
  assert values.keys().isdisjoint(('unused_flags', *method.renamed))


@pytest.mark.parametrize(('program', 'row'), _VALUES)
def test_values_of_the_table(program, row):
  values = _read(program, *_chosen(program, row))
  expected = _VALUES[program, row]
  assert {name: values[name] for name in expected} == expected


@pytest.mark.parametrize(('program', 'row'), _ROWS)
def test_secure_sums_are_taken_or_refused_in_one_sentence(program, row):
  arguments = (*_chosen(program, row), '--aggregation=secure')
  expected = _WITHOUT_SECURE_SUMS.get(table.PROGRAMS[program].methods[row].algorithm)
  if expected is None:
    assert _read(program, *arguments)['aggregation'] == 'secure'
    return
  with pytest.raises(ValueError, match=re.escape(expected)) as refused:
    _read(program, *arguments)
  assert str(refused.value).endswith('.') and '\n' not in str(refused.value)


def test_one_program_leaves_nothing_to_the_next():
  alone = {name: _read(name) for name in table.PROGRAMS}
  for name in reversed(table.PROGRAMS):
    assert _read(name) == alone[name]


def test_flags_shared_by_programs_are_identical():
  known = {}
  for program in table.PROGRAMS.values():
    for row, method in program.methods.items():
      parts = method.algorithm, method.objective
      assert known.setdefault(row, parts) == parts
    # An alias names a row of its own program, and is none of them.
    assert program.methods.keys() >= set(program.aliases.values())
    assert program.methods.keys().isdisjoint(program.aliases)


def test_an_alias_says_what_it_is_and_is_stored_as_that(capsys):
  values = _read('fedsup', '--method=simclr')
  assert values['method'] == 'finetuned_simclr'
  assert capsys.readouterr().out == '--method=simclr is --method=finetuned_simclr\n'
  assert values == _read('fedsup', '--method=finetuned_simclr')
  _read('fedema', '--method=fed_simclr')
  assert (
    'fed_simclr is binaries.fedavg_ssl --algorithm=fedavg --objective=simclr, with '
    'other defaults\n' in capsys.readouterr().out
  )


def test_fed_simclr_and_fedavg_with_simclr_have_the_same_flags_and_values():
  one = _read('fedema', '--method=fed_simclr')
  # What the FedEMA paper sets (its section 5.1 and appendix A).
  other = _read(
    'fedavg_ssl',
    '--algorithm=fedavg',
    '--objective=simclr',
    '--encoder_norm=batch',
    '--partition=classes:per_client=2,clients=5',
    '--local_epochs=5',
    '--client_learning_rate=0.032',
    '--client_weight_decay=5e-4',
    '--client_schedule=cosine',
  )
  del one['method'], other['algorithm'], other['objective']
  assert one == other


def test_a_value_that_is_given_is_that_of_the_table_if_it_is_the_same():
  """What is stored is resolved: a resume compares values, not who said them."""
  simclr = ('--objective=simclr',)
  assert _read('fedavg_ssl', *simclr, '--temperature=0.5') == _read(
    'fedavg_ssl', *simclr
  )
  assert _read('fedavg_ssl', *simclr, '--temperature=0.4') != _read(
    'fedavg_ssl', *simclr
  )


def test_another_optimizer_than_sgd_has_no_momentum_of_the_table():
  adam = '--client_optimizer=adam'
  assert _read('ssfl', adam)['client_momentum'] == 0
  with pytest.raises(ValueError, match='only sgd takes it, not adam'):
    _read('ssfl', adam, '--client_momentum=0.9')


@pytest.mark.parametrize('chosen', ['--method=fed_simsiam', '--method=fed_byol'])
def test_predictor_and_stop_gradient_can_be_left_out(chosen):
  """Figure 2 of the FedEMA paper, of SimSiam as of BYOL."""
  encoder = mlp.build_encoder('mlp', (4,), normalization='batch')
  with in_process.parsed(chosen, '--nopredictor', '--nostop_gradient'):
    objective = choice.read('fedema').objective.build(encoder, 3)
  assert objective.predictor is None
  assert not objective.stop_gradient
  with in_process.parsed(chosen):
    objective = choice.read('fedema').objective.build(encoder, 3)
  assert objective.predictor is not None
  assert objective.stop_gradient


def test_the_queue_of_swav_and_the_raw_teacher_are_flags():
  with in_process.parsed('--objective=swav', '--swav_queue=12'):
    row = choice.read('fedavg_ssl').objective
    assert row.build(mlp.build_encoder('mlp', (4,)), 3).queue_size == 12
  assert _read('fedavg_ssl', '--objective=swav')['swav_queue'] == 0
  assert not _read('fedsup', '--method=fedsup')['raw_teacher']
  assert _read('fedsup', '--method=fedsup', '--raw_teacher')['raw_teacher']


def test_local_steps_are_local_epochs_of_fedavg():
  values = _read('dcco', '--algorithm=fedavg_cco', '--local_steps=3')
  assert values['local_epochs'] == 3
  with pytest.raises(ValueError, match='are two names for one flag'):
    _read('dcco', '--algorithm=fedavg_cco', '--local_steps=3', '--local_epochs=3')


@pytest.mark.parametrize(
  ('program', 'arguments', 'message'),
  [
    (
      'dec_ssl',
      ['--method=featarc', '--objective=mae'],
      "objective is 'mae'; with --method=featarc binaries.dec_ssl has simclr, simsiam",
    ),
    ('dcco', ['--algorithm=fedema'], "algorithm is 'fedema'; binaries.dcco has dcco, "),
    (
      'dcco',
      ['--method=dcco'],
      '--method is given, but binaries.dcco does not have it',
    ),
    ('dcco', ['--tau=0.5'], 'it is for binaries.fedema only.'),
    ('dcco', ['--plot=x.png'], 'it is for another program only.'),
    ('ssfl', ['--objective=simclr'], 'there --method chooses what is run.'),
    (
      'fedavg_ssl',
      ['--algorithm=centralized', '--objective=simclr', '--queue_size=2'],
      '--queue_size is given with --objective=simclr; it is for moco_v1, moco_v2 only.',
    ),
  ],
)
def test_unused_flags_are_refused_in_one_sentence(program, arguments, message):
  with pytest.raises(ValueError, match=re.escape(message)):
    _read(program, *arguments)


def test_unused_flags_are_said_once_and_left_out(capsys):
  arguments = ('--method=fedu', '--tau=0.5', '--queue_size=3', '--threshold=0.2')
  values = _read('fedema', *arguments, '--unused_flags=warn')
  assert capsys.readouterr().err == (
    'Warning: --queue_size, --tau left out: --method=fedu does not use them.\n'
  )
  assert values == _read('fedema', '--method=fedu', '--threshold=0.2')
  with pytest.raises(ValueError, match='--queue_size is given with --method=fedu'):
    _read('fedema', *arguments)


def test_one_command_line_runs_over_all_methods():
  """Each uses what it takes; of the rest it has its own value or none."""
  common = {
    'temperature': 0.3,
    'target_momentum': 0.9,
    'queue_size': 64,
    'local_epochs': 2,
    'tau': 0.6,
    'consensus_weight': 0.5,
    'server_training_rate': 0.01,
  }
  given = [f'--{name}={value}' for name, value in common.items()]
  used = set()
  for program, row in _ROWS:
    method = table.PROGRAMS[program].methods[row]
    values = _read(program, *_chosen(program, row), *given, '--unused_flags=warn')
    for name, value in common.items():
      assert (values.get(name) == value) == (name in method.flags()), (row, name)
      used |= {name} & set(method.flags())
  assert used == common.keys()


def test_an_error_of_a_used_flag_stays_one():
  with pytest.raises(ValueError, match='proximal_weight is 0'):
    _read('fedavg_ssl', '--algorithm=fedprox', '--tau=1', '--unused_flags=warn')
