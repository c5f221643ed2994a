"""Runs at sites: what they refuse and agree to, and by which numbers sites judge."""

import dataclasses
import io
import re

import numpy as np
import pytest

# isort: split
from binaries import demo_sites
from binaries import site as site_program
from binaries.building import encoders
from binaries.building import sites
from binaries.config import run_config
from binaries.experiment import quality
from binaries.experiment import site_judging
from binaries.experiment import site_part
from tests.binaries import in_process
from tests.sites import parties
from tff_ssl.evaluation import closed_form
from tff_ssl.evaluation import signals
from tff_ssl.sites import chains
from tff_ssl.sites import keys as keys_lib
from tff_ssl.sites import messages

_RUNTIME = '--runtime=sites:mailbox=m,keys=k,names=north/south'
_PRIVATE = '--aggregation=private:noise_multiplier=1'
_CLIPPED = f'{_PRIVATE},update_clip=1,statistics_clip=2'
_NOISE_OF_SITES = '--aggregation=distributed:noise_multiplier=1'
_AT_SITES = f'--task=sites --image_size=8 {_RUNTIME}'


@pytest.mark.parametrize(
  ('program', 'line', 'sentence'),
  [
    ('dcco', f'--task=digits {_RUNTIME}', 'the data are at the sites'),
    ('dcco', '--task=sites --image_size=8', 'the data are at the sites'),
    ('dcco', '--task=sites --runtime=sites:keys=k', 'mailbox of --runtime'),
    ('dcco', f'{_AT_SITES} --partition=iid:clients=3', 'says who its clients are'),
    ('dcco', f'{_AT_SITES},parts=3', 'each site is a part'),
    ('dcco', f'{_AT_SITES},fewest=3', 'must be at most 2'),
    ('dcco', f'{_AT_SITES},masked=true,fewest=1', 'must have two sites'),
    ('dcco', f'{_AT_SITES} --encoder=frozen=0.5', 'no weights that could stay'),
    ('dcco', f'{_AT_SITES} --aggregation=secure', 'private or distributed'),
    ('dcco', f'{_AT_SITES} {_NOISE_OF_SITES}', 'masked of --runtime is false'),
    ('dcco', f'{_AT_SITES} {_PRIVATE}', 'update_clip of --aggregation is none'),
    (
      'dcco',
      f'{_AT_SITES} {_PRIVATE},update_clip=1',
      'statistics_clip of --aggregation is none',
    ),
    ('dcco', f'{_AT_SITES} {_CLIPPED}', 'clients of --runtime is below'),
    (
      'dcco',
      f'{_AT_SITES},clients=64,fewest=1 {_CLIPPED}',
      'fewest of --runtime is given',
    ),
    ('dcco', f'{_AT_SITES},clients=64 {_CLIPPED},cohorts=poisson', 'must be fixed'),
    ('fedema', f'{_AT_SITES} {_PRIVATE},update_clip=1', 'whose clients keep a state'),
    ('fedavg_ssl', f'{_AT_SITES} --objective=supervised', 'learns from labels'),
    ('fedavg_ssl', f'{_AT_SITES} --method=scaffold', 'without numbers'),
  ],
)
def test_a_run_that_cannot_be_at_sites_is_refused(program, line, sentence):
  with pytest.raises(ValueError, match=re.escape(sentence)):
    sites.check(in_process.read(program, line))


def test_an_offer_has_no_path_of_the_coordinator_and_all_that_numbers_depend_on():
  config = in_process.read('dcco', f'{_AT_SITES} --run_dir=secret --rounds=7')

  sent = sites.offered(config)
  stored = run_config.to_json(sent)
  read = run_config.from_json(stored, {'dcco': type(config.method)}, keep_paths=False)

  assert 'secret' not in str(stored) and "'m'" not in str(stored)
  assert read == sent
  assert read.runtime.packs is not None and read.encoder.precision == 'float32'
  assert dataclasses.replace(read, rounds=1) == dataclasses.replace(sent, rounds=1)


@pytest.mark.parametrize(
  ('line', 'sentence'),
  [
    ('--name=no/rth --keys=k --new_key', "'no/rth'; it must have letters"),
    ('--name=a --keys=k --mailbox=nowhere --folder=f', "'nowhere', which is not there"),
    ('--what_left --folder=nowhere', 'which is no folder'),
  ],
)
def test_a_site_says_what_it_needs(line, sentence):
  assert sentence in in_process.said(site_program, [line])[line]


def test_a_private_run_counts_clients_of_all_sites_as_the_ledger_does():
  config = in_process.read(
    'dcco', f'{_AT_SITES},clients=100 {_CLIPPED} --clients_per_round=8'
  )
  sites.check(config)

  together, population = sites.of_all_sites(config)

  # A client of a site with 100 is in a round with 8 / 100, as one of 200 with 16 / 200.
  assert (together.clients_per_round, population) == (16, 200)


def test_an_offer_of_another_checkout_is_refused():
  own = sites.source()
  sites.check_source(own)
  with pytest.raises(ValueError, match='must be the same checkout'):
    sites.check_source({**own, 'digest': '0'})


@pytest.fixture(scope='module')
def judged(tmp_path_factory):
  """Two sites with pictures of digits, an encoder, and what the sites answer."""
  out = tmp_path_factory.mktemp('judged')
  classes = demo_sites.write_pictures(out)
  line = f'{_AT_SITES},classes={"/".join(classes)} --encoder=width=0.25'
  config = sites.offered(in_process.read('dcco', line))
  judges, tasks = {}, {}
  for name in ('north', 'south'):
    data = dataclasses.replace(config.data, dir=str(out / name / 'pictures'))
    own = dataclasses.replace(config, task='cases', data=data, partition=None)
    tasks[name], held = site_part.read(own, name)
    encoder = encoders.build(own, tasks[name])
    judges[name] = site_judging.Judge(own, tasks[name], encoder, held, True)
  params = [encoder.init(np.array([seed, 0], np.int32)) for seed in (1, 2)]

  def ask(question, arrays, shapes):
    message = messages.Message(
      keys_lib.COORDINATOR,
      1,
      messages.JUDGE,
      body={'exchange': question},
      arrays=arrays,
    )
    answers = {name: judge(message) for name, judge in judges.items()}
    for own in answers.values():
      assert {name: np.shape(value) for name, value in own.items()} == shapes
    return answers

  found = site_judging.judge(ask, encoder, *params, classes)
  return found, tasks, encoder, params, classes, judges


def test_signals_of_sites_are_those_of_all_their_examples(judged):
  found, _, _, params, _, judges = judged
  views = [judge._views.features(params[0], judge._chosen) for judge in judges.values()]
  together = [np.concatenate(each) for each in zip(*views, strict=True)]

  expected = quality.named(signals.signals(signals.moments(*together)))

  for name, value in expected.items():
    np.testing.assert_allclose(found.numbers[name], value, rtol=1e-6)


def test_accuracy_of_sites_is_that_of_lda_on_all_their_examples(judged):
  found, tasks, encoder, params, classes, _ = judged

  def of(split):
    parts = [getattr(task, split) for task in tasks.values()]
    names = [np.array(task.label_names) for task in tasks.values()]
    labels = [
      [classes.index(name) for name in known[part.label]]
      for known, part in zip(names, parts, strict=True)
    ]
    images = np.concatenate([part.image for part in parts])
    return np.asarray(encoder.infer(params[0], images / 255)), np.concatenate(labels)

  train, labels = of('train')
  head = closed_form.fit_lda(closed_form.moments(train, labels, 10)).classifier
  test, truth = of('test')

  got = found.numbers['lda/100%/accuracy']
  assert abs(got - np.mean(head.predict(test) == truth)) < 0.01
  assert 0.3 < got < 1.0
  assert found.lines[-2].startswith('all sites') and f'{got:.1%}' in found.lines[-2]


def test_keys_are_made_and_never_over_others(tmp_path, capsys):
  options = site_program.Options(
    new_key=True, name='north', keys=str(tmp_path / 'keys')
  )
  site_program.main(options)
  assert {path.name for path in (tmp_path / 'keys').iterdir()} == {
    'own.key',
    'north.pub',
  }
  assert 'keys/own.key, which stays here, and' in capsys.readouterr().out
  with pytest.raises(ValueError, match='it must be removed by hand'):
    site_program.main(options)


def test_what_left_is_what_the_log_says(tmp_path, capsys):
  world = parties.World(tmp_path, ['north'])
  keys, folder = world.keys('north'), world.folder('north')
  outbox = chains.Outbox(world.box, keys, 'north', folder)
  outbox.send('ab', messages.JOIN, {'clients': 1})
  body = {'round': 7, 'exchange': 'train'}
  outbox.send('ab', messages.SUMS, body, {'x': np.array([3.0, 4.0])})
  site_program.main(site_program.Options(what_left=True, folder=str(folder)))
  join, sums, total = capsys.readouterr().out.splitlines()
  contents = [world.box.get('north', number) for number in (1, 2)]
  assert join.endswith(messages.digest(contents[0])[:12])
  assert 'round 7 exchange train' in sums
  assert f'{len(contents[1]):,} bytes  norm 5.0' in sums
  assert total == f'2 messages, {sum(map(len, contents)):,} bytes'


@pytest.mark.parametrize('missing', ['name', 'keys', 'mailbox', 'folder'])
def test_what_is_not_given_is_asked_for(missing):
  given = {'name': 'a', 'keys': 'k', 'mailbox': 'm', 'folder': 'f', missing: None}
  with pytest.raises(ValueError, match=f'--{missing} is not given; it must '):
    site_program.main(site_program.Options(**given))


def test_no_two_sites_have_an_example_of_one_id():
  own = np.array([0, 1, 2**32 - 1])
  ids = {
    name: site_part.example_ids(name, own) for name in ('north', 'south', 'x' * 40)
  }
  everything = np.concatenate([*ids.values()])
  assert len(np.unique(everything)) == 9
  # An id is an int64 that is not negative, at each site the same in each run.
  assert everything.dtype == np.int64 and np.all(everything >= 0)
  np.testing.assert_array_equal(ids['north'] - ids['north'][0], own)
  np.testing.assert_array_equal(ids['north'], site_part.example_ids('north', own))


def test_a_folder_of_another_run_is_refused(tmp_path):
  world = parties.World(tmp_path, ['north'])
  name = parties.COORDINATOR
  offering = chains.Outbox(world.box, world.keys(name), name, world.folder(name))
  run = offering.send('', messages.OFFER, {})
  assert world.answerer('north').offer().kind == messages.OFFER
  own = chains.Outbox(world.box, world.keys('north'), 'north', world.folder('north'))
  own.send(run, messages.JOIN, {})
  assert world.answerer('north').offer().kind == messages.OFFER
  own.send('ab' * 32, messages.JOIN, {})
  with pytest.raises(ValueError, match='is of another run; a site must have a new'):
    world.answerer('north').offer()


def test_an_offer_is_agreed_to_by_its_first_digits(tmp_path, monkeypatch):
  run = 'ab12' * 16

  def agree(accept):
    settings = site_part.Settings('north', 'm', 'k', str(tmp_path), accept=accept)
    site_part._agree(settings, run)

  # No terminal.
  monkeypatch.setattr(site_part.sys, 'stdin', io.StringIO())
  for right in (run, run[:12], run[:20]):
    agree(right)
  for wrong in ('', run[:11], run[1:13], f'{run}0'):
    with pytest.raises(ValueError, match=r'--accept is .*; the offer is ab12ab12ab12'):
      agree(wrong)
  with pytest.raises(ValueError, match=r'Nobody has agreed .*--accept=ab12ab12ab12'):
    agree(None)
