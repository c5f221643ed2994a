"""Command lines: what they are read into, and what is said to a person who is wrong."""

import dataclasses
import importlib
import json
import re
from typing import Literal

import hypothesis
from hypothesis import strategies
import pytest

from binaries import dcco
from binaries import evaluate
from binaries import fedsup
from binaries import partition
from binaries import sweep
from binaries.config import command_line
from binaries.config import data
from binaries.config import docstrings
from binaries.config import help_text
from binaries.config import programs
from binaries.config import run_config
from binaries.config import runtimes
from tests.binaries import in_process
from tff_ssl.computing import kinds
from tff_ssl.settings import encoders
from tff_ssl.settings import learning
from tff_ssl.settings import objectives
from tff_ssl.settings import roles

_TEXTS = ['none', 'adam:epochs=2', 'kind=x', '1', '0.5', 'a=b,c']


@dataclasses.dataclass(frozen=True)
class _Options:
  """What a program of this test takes.

  Attributes:
    run: Folder of the run.
    runs: Folders of runs.
    clients: How clients train.
    format: How the result is written.
    number: How many there are.
    quiet: Whether nothing is printed.
    loud: Whether more is printed.
  """

  run: command_line.Path
  runs: tuple[command_line.Path, ...] = ()
  clients: command_line.Changes = command_line.Changes()  # noqa: RUF009
  format: Literal['csv', 'text'] | None = None
  number: kinds.Count = 1
  quiet: bool = False
  loud: bool = True


def _options(*arguments):
  return command_line.parse_options(_Options, arguments)


def test_options_are_read_from_flags():
  assert _options('--run=r') == _Options('r')
  read = _options(
    '--run',
    'r/1',
    '--runs=a/b, c',
    '--clients=adam',
    '--clients=epochs=2',
    '--format=csv',
    '--number=3',
    '--number=4',
    '--quiet',
    '--noloud',
  )
  assert read == _Options(
    'r/1',
    ('a/b', 'c'),
    command_line.Changes(('adam', 'epochs=2')),
    'csv',
    4,
    True,
    False,
  )
  assert not _options('--run=r', '--quiet=False').quiet


@pytest.mark.parametrize(
  ('line', 'said'),
  [
    ('--rum=r', 'There is no flag --rum; did you mean --run?'),
    ('--noloudd', 'There is no flag --noloudd; did you mean --loud?'),
    ('--qqq', 'There is no flag --qqq; --help lists all flags.'),
    ('--run=r --noquiet=1', '--noquiet=1 does not take an argument.'),
    ('--run=r --number', '--number has no value; it must be given as --number=VALUE.'),
    ('--run=r csv', "'csv' is no flag; all arguments must be --flag=value."),
    ('--run=~nobody_x/y', '~nobody_x is not a home folder; write ./~nobody_x/y for a'),
  ],
)
def test_wrong_options_are_refused_in_one_sentence(line, said):
  with pytest.raises(ValueError) as refused:
    _options(*line.split())
  assert said in str(refused.value)
  assert '\n' not in str(refused.value)


def test_each_option_of_a_program_is_described(monkeypatch):
  monkeypatch.setenv('HOME', '/home/me')
  assert all(docstrings.attributes(_Options).values())
  assert _options('--run=~/r', '--runs=~/a,~/b').runs == ('/home/me/a', '/home/me/b')


def test_the_row_of_a_command_line():
  def row(method, objective):
    own = programs.load('fedema').row(method, objective)
    return dataclasses.replace(own, augmentation='mild')

  assert in_process.read('fedema', run_dir=None) == row('fedema', 'byol')
  read = in_process.read('fedema', '--objective=simsiam', run_dir=None)
  assert read == row('fedavg', 'simsiam')
  read = in_process.read('fedema', '--method=fed_ssl:reset_target=false', run_dir=None)
  own = row('fed_ssl', 'moco_v2')
  assert read == roles.replace(own, {'method.reset_target': False})
  # One row after the other, in one process.
  assert in_process.read('fedema', run_dir=None) == row('fedema', 'byol')


def test_a_flag_changes_the_fields_that_it_names():
  read = in_process.read(
    'dcco',
    '--server=learning_rate=0.1 --server=sgd:momentum=0.5 --server=learning_rate=0.2 '
    '--encoder=conv2:width=0.5 --objective=projector=8/8 --data=fit=pad',
  )
  assert read.server == learning.SgdServer(
    learning_rate=0.2, schedule='cosine', momentum=0.5
  )
  assert read.encoder == encoders.Conv('conv2', width=0.5)
  assert read.objective == objectives.Cco(projector=(8, 8))
  assert read.data == data.Data(fit='pad')
  assert read.clients == learning.StepClients()


def test_another_optimizer_keeps_the_rate_and_leaves_what_it_does_not_have():
  adam = in_process.read('ssfl', '--clients=adam').clients
  sgd = in_process.read('ssfl').clients
  assert (adam.kind, adam.learning_rate) == ('adam', sgd.learning_rate)
  assert adam.beta_2 == 0.999
  with pytest.raises(ValueError, match='momentum=0'):
    in_process.read('ssfl', '--clients=adam:momentum=0.9')


def test_a_number_of_clients_that_is_given_is_not_lowered():
  assert in_process.read('dcco').all_if_fewer
  assert not in_process.read('dcco', '--clients_per_round=64').all_if_fewer
  with pytest.raises(ValueError, match='a cohort has one size'):
    in_process.read('dcco', '--clients_per_round=6 --participation=1')


@pytest.mark.parametrize(
  ('line', 'encoder', 'augmentation', 'partition'),
  [
    ('--task=wine', encoders.Mlp('mlp', norm='batch'), 'noise_mask', 'classes:'),
    ('--task=digits', encoders.ResNet('resnet8', norm='batch'), 'mild', 'classes:'),
    (
      '--task=wine --encoder=width=2',
      encoders.Mlp('mlp', norm='batch', width=2.0),
      'noise_mask',
      'classes:',
    ),
    ('--task=gld23k', encoders.ResNet('resnet8', norm='batch'), None, 'client'),
  ],
)
def test_what_suits_the_task_is_the_default(line, encoder, augmentation, partition):
  read = in_process.read('fedema', line)
  assert read.encoder == encoder
  assert read.augmentation == (augmentation or run_config.RunConfig.augmentation)
  assert read.partition.startswith(partition)


def test_paths_are_expanded_and_commas_are_between_names(monkeypatch):
  monkeypatch.setenv('HOME', '/home/me')
  read = in_process.read(
    'dec_ssl',
    '--method=graph:path=~/g.csv --data=scaling=~/s.csv '
    '--columns=image=Photo,label=Sex/Gender --trackers=',
  )
  assert (read.method.path, read.data.scaling) == ('/home/me/g.csv', '/home/me/s.csv')
  assert read.data.columns == ('image=Photo', 'label=Sex/Gender')
  assert read.trackers == ()
  read = in_process.read('dcco', '--data_dir=~/d --run_dir=~/r')
  assert (read.data.dir, read.run_dir) == ('/home/me/d', '/home/me/r')


def test_runtimes_are_read():
  read = in_process.read('dcco', '--runtime=ray:address=a:1,parts=4,gpus=0.5')
  assert read.runtime == runtimes.Ray(parts=4, address='a:1', gpus=0.5)


@pytest.mark.parametrize(
  ('program', 'line', 'said'),
  [
    ('dcco', '--roundz=3', 'There is no flag --roundz; did you mean --rounds?'),
    ('dcco', '--fit=pad', 'There is no flag --fit; did you mean --data=fit=?'),
    ('dcco', '--momentum=1', 'did you mean --clients=momentum=?'),
    ('dcco', '--encoder=resnet9', 'Did you mean resnet8?'),
    (
      'dcco',
      '--method=fedema',
      'binaries.dcco has dcco, fedsc, fedavg, centralized_st',
    ),
    ('dcco', '--method=fedema', 'It is in binaries.fedema.'),
    ('dcco', '--objective=x', "objective is 'x'; binaries.dcco has cco, vicreg, "),
    ('dcco', '--objective=byol', 'It is in binaries.fedavg_ssl.'),
    ('ssfl', '--objective=simclr', "objective is 'simclr'; binaries.ssfl has simsiam."),
    (
      'dec_ssl',
      '--method=featarc --objective=mae',
      "objective is 'mae'; featarc in binaries.dec_ssl has simclr, simsiam, byol,",
    ),
    ('dcco', '--clients=adam', "has the unknown kind 'adam'; it must be one of steps"),
    (
      'dcco',
      '--clients=adamm',
      'it must be one of steps. Did you mean adam, which other methods take?',
    ),
  ],
)
def test_wrong_flags_are_refused_in_one_sentence(program, line, said):
  with pytest.raises(ValueError) as refused:
    in_process.read(program, line)
  assert said in str(refused.value)
  assert '\n' not in str(refused.value)


@pytest.mark.parametrize('arguments', [(), ('--run_dir=',)])
def test_a_run_needs_a_folder(arguments):
  with pytest.raises(ValueError, match='--run_dir is not given; it must name a folder'):
    command_line.parse_run('dcco', arguments)


def _theirs(folder, line):
  """Returns the flag that begins from a stranger's run of a command line of dcco."""
  config = command_line.parse_run('dcco', ['--run_dir=/theirs', *line.split()])
  stored = json.dumps({'config': run_config.to_json(config)})
  (folder / 'config.json').write_text(stored)
  return f'--config={folder}/config.json'


def test_a_run_begins_from_another_without_its_paths_addresses_and_orders(tmp_path):
  theirs = _theirs(
    tmp_path,
    '--rounds=7 --encoder=conv2 --data_dir=/theirs --trackers=wandb '
    '--runtime=ray:address=theirs:1,packs=3',
  )
  config = command_line.parse_run('dcco', [theirs, '--seed=5', '--run_dir=r'])
  assert (config.rounds, config.encoder.kind, config.seed) == (7, 'conv2', 5)
  assert config.runtime == runtimes.InProcess(packs=3)
  assert config.trackers == ('tensorboard',)
  assert config.data.dir is None
  with pytest.raises(ValueError, match='--run_dir is not given'):
    command_line.parse_run('dcco', [theirs])


@pytest.mark.parametrize(
  ('path', 'again'),
  [
    ('--init_from=/theirs', '--init_from=mine'),
    ('--init_from=/theirs', '--init_from=none'),
    ('--data=partition_encoder=/theirs', '--data=partition_encoder=mine'),
    ('--data=follow_links=true', '--data=follow_links=true'),
  ],
)
def test_a_path_on_which_numbers_depend_must_be_given_again(tmp_path, path, again):
  theirs = _theirs(tmp_path, path)
  flag = path.rpartition('=')[0]
  with pytest.raises(ValueError, match=f'not taken from another run: give {flag}= on'):
    command_line.parse_run('dcco', [theirs, '--run_dir=r'])
  assert command_line.parse_run('dcco', [theirs, again, '--run_dir=r'])


@hypothesis.given(
  strategies.lists(
    strategies.builds(
      '--{}={}'.format,
      strategies.sampled_from([*command_line.of_runs()]),
      strategies.text() | strategies.sampled_from(_TEXTS),
    )
  )
)
@hypothesis.example(['--data=0\n'])
def test_any_command_line_is_read_or_refused_by_one_sentence(arguments):
  try:
    command_line.parse_run('dcco', [a for a in arguments if '--config' not in a])
  except ValueError as error:
    assert str(error)
    assert '\n' not in str(error)


@pytest.mark.parametrize('flag', [*run_config.KINDS, 'method'])
def test_help_says_what_a_kind_is_in_python(flag):
  table = run_config.KINDS.get(flag) or programs.all_methods()
  for name, cls in table.items():
    said = re.findall(r'  in Python: (\S+)\.(\w+)\((.*)\)', help_text.build(dcco, name))
    # A name may be one of several flags.
    found = {getattr(importlib.import_module(m), own): a for m, own, a in said}
    has_name = 'kind' in {field.name for field in dataclasses.fields(cls)}
    assert found[cls].startswith(f"kind='{name}'") == has_name


def test_help_lists_the_flags_and_the_fields_of_kinds():
  text = help_text.build(dcco, '')
  assert text.startswith(dcco.__doc__.strip())
  for name in command_line.of_runs():
    assert (f'\n  --{name}' in text) == (name != 'labels'), name
  listed = re.findall(r'^  --(\w+)', text, re.MULTILINE)
  # Neither flags of TFF and absl, nor of methods that the program does not offer.
  assert len({*listed} - {'verbosity', 'logtostderr', 'tau'}) == len(listed)
  assert '  --task=digits\n' in text
  assert 'Rounds between checkpoints; none: 10' in text
  text = help_text.build(dcco, 'dcco')
  assert 'stale_statistics=false  (true or false)' in text
  assert 'How pictures become squares' in help_text.build(dcco, 'data')
  assert 'dirichlet:' in help_text.build(dcco, 'partition')
  assert 'digits' in help_text.build(dcco, 'task')
  with pytest.raises(ValueError, match='Did you mean fedavg'):
    help_text.build(dcco, 'fedavgg')


def test_help_shows_every_flag_that_takes_a_kind_and_plain_flags():
  # A method and its objective have one name, and so have clients and server.
  text = help_text.build(fedsup, 'fedsup')
  assert '--method=fedsup:' in text
  assert '--objective=fedsup:' in text
  assert '--server=adam:' in help_text.build(dcco, 'adam')
  # Of all objectives, those of the program.
  assert '--objective=swav' not in help_text.build(fedsup, 'objective')
  assert help_text.build(dcco, 'rounds').startswith('  --rounds=100\n      Number')
  # Flags with fields that only one program has.
  assert '    rounds=100  (' in help_text.build(evaluate, 'federated')


def test_the_flags_that_a_sweep_sets_itself_are_not_in_its_help():
  text = help_text.build(sweep, '')
  for name in command_line.OF_ONE_RUN:
    assert f'\n  --{name}\n' not in text
  assert '\n  --seed=0\n' in help_text.build(partition, '')


@pytest.mark.parametrize(
  ('arguments', 'about'),
  [
    (['--help'], ''),
    (['--task=digits', '-help'], ''),
    (['-?'], ''),
    (['--help=adam'], 'adam'),
    (['--', '--help'], None),
    (['help'], None),
  ],
)
def test_help_is_asked_for_by_a_flag(arguments, about):
  assert help_text.asked(arguments) == about
