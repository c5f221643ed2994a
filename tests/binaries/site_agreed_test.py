"""A site before the first round: its key, its log, what a person agrees to."""

import io

import numpy as np
import pytest

from binaries import site
from binaries.experiment import site_part
from tests.sites import parties
from tff_ssl.sites import chains
from tff_ssl.sites import messages


def test_keys_are_made_and_never_over_others(tmp_path, capsys):
  options = site.Options(new_key=True, name='north', keys=str(tmp_path / 'keys'))
  site.main(options)
  assert {path.name for path in (tmp_path / 'keys').iterdir()} == {
    'own.key',
    'north.pub',
  }
  assert 'keys/own.key, which stays here, and' in capsys.readouterr().out
  with pytest.raises(ValueError, match='it must be removed by hand'):
    site.main(options)


def test_what_left_is_what_the_log_says(tmp_path, capsys):
  world = parties.World(tmp_path, ['north'])
  keys, folder = world.keys('north'), world.folder('north')
  outbox = chains.Outbox(world.box, keys, 'north', folder)
  outbox.send('ab', messages.JOIN, {'clients': 1})
  body = {'round': 7, 'exchange': 'train'}
  outbox.send('ab', messages.SUMS, body, {'x': np.array([3.0, 4.0])})
  site.main(site.Options(what_left=True, folder=str(folder)))
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
    site.main(site.Options(**given))


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
