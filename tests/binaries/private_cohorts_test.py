"""Which cohorts of a private run are counted as secret, and which are refused."""

import pathlib
import tempfile
import types
from typing import Any
from unittest import mock

import pytest

from binaries.experiment import private
from tests.binaries import in_process
from tff_ssl.aggregators import aggregations
from tff_ssl.aggregators import combine
from tff_ssl.federated import client_functions
from tff_ssl.federated import phases

_PRIVATE = '--aggregation=private:noise_multiplier=2,update_clip=1'


def _sampling(flags, resumes=False, numbers=(), size=4):
  """Returns how rounds of some of six clients are counted."""
  client: Any = mock.Mock(spec=client_functions.StatefulFunction) if resumes else None
  exchange: Any = phases.Exchange('train', None, client, {'u': combine.UPDATE}, None)
  algorithm = phases.Algorithm(lambda: None, [exchange], client_numbers=numbers)
  noised = aggregations.private(2.0, 1.0, 1.0, None)
  graph = types.SimpleNamespace(algorithm=algorithm, aggregation=noised)
  process = types.SimpleNamespace()
  line = f'{_PRIVATE} --clients_per_round={size} --rounds=1 {flags}'
  config = in_process.read('fedavg_ssl', line)
  rounds = private.with_ledger(config, process, graph, 6)
  with tempfile.TemporaryDirectory() as folder:
    rounds.resume(pathlib.Path(folder), 0)
  card = private.privacy_card(config, rounds, {})['privacy']
  is_secret = card['sampling'].endswith('amplification counted')
  assert is_secret == any('cohort is secret' in each for each in card['assumed'])
  return rounds.terms.sampling, is_secret, rounds.terms.cohort


def test_cohorts_are_counted_as_secret_only_if_clients_keep_no_state():
  said = 'a method whose clients keep a state; it must be passes, or fixed with all'
  for cohorts in ('fixed', 'poisson'):
    flags = f'--aggregation=cohorts={cohorts}'
    with pytest.raises(ValueError, match=f'is {cohorts} for {said}'):
      _sampling(flags, resumes=True)
    assert _sampling(flags) == (cohorts, True, 4)
  passes = '--aggregation=cohorts=passes'
  assert _sampling(passes, resumes=True) == ('passes', False, 4)
  # All take part: there is no secret.
  assert _sampling('', resumes=True, size=6) == ('fixed', False, 6)


def test_clients_with_numbers_do_not_join_at_random():
  with pytest.raises(ValueError, match='have numbers; it must be fixed or passes'):
    _sampling('--aggregation=cohorts=poisson', numbers=['client'])
  assert _sampling('', numbers=['client']) == ('fixed', True, 4)
