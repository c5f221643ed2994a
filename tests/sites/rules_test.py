"""What a site agrees to: its file, and what is refused by it."""

import pytest

from tff_ssl.sites import participation
from tff_ssl.sites import rules as rules_lib


def _read(tmp_path, text):
  (tmp_path / 'rules.toml').write_text(text)
  return rules_lib.read(tmp_path / 'rules.toml')


def test_without_a_file_nothing_is_restricted(tmp_path):
  rules = rules_lib.read(tmp_path / 'rules.toml')
  rules.check_run('anything', 'plain', 10**9, masked=False)
  rules.check_round(1, 1)
  assert rules.judging
  with pytest.raises(FileNotFoundError):
    rules_lib.read(tmp_path / 'rules.toml', must_exist=True)


@pytest.mark.parametrize(
  ('rule', 'run', 'said'),
  [
    (
      'methods = ["dcco", "cco"]',
      ('fedavg', 'plain', 9, True),
      'must be one of dcco, cco',
    ),
    ('methods = []', ('dcco', 'plain', 9, True), 'The method is dcco; by the rules'),
    (
      'aggregations = ["private"]',
      ('dcco', 'plain', 9, True),
      'The aggregation is plain',
    ),
    (
      'most_rounds = 8',
      ('dcco', 'plain', 9, True),
      'The run has 9 rounds; .* at most 8',
    ),
    ('masked = true', ('dcco', 'plain', 9, False), 'Sums are not masked; by the rules'),
  ],
  ids=['methods', 'none', 'aggregations', 'rounds', 'masked'],
)
def test_a_run_is_refused_by_each_rule(tmp_path, rule, run, said):
  rules = _read(tmp_path, rule)
  with pytest.raises(ValueError, match=said):
    rules.check_run(*run)


def test_a_run_that_keeps_all_rules_is_not_refused(tmp_path):
  rules = _read(
    tmp_path,
    'methods = ["dcco"]\naggregations = ["private"]\nmost_rounds = 9\nmasked = true\n',
  )
  rules.check_run('dcco', 'private', 9, masked=True)


def test_a_round_is_declined_for_too_few(tmp_path):
  rules = _read(tmp_path, 'fewest_clients = 3\nfewest_examples = 20\n')
  rules.check_round(3, 20)
  with pytest.raises(participation.DeclinedError, match='2 clients would take part'):
    rules.check_round(2, 20)
  with pytest.raises(
    participation.DeclinedError, match=r'19 examples would .* least 20'
  ):
    rules.check_round(3, 19)


@pytest.mark.parametrize(
  ('text', 'said'),
  [
    ('most_round = 3', "has 'most_round'; it must be one of fewest_clients"),
    ('fewest_clients = "3"', "fewest_clients = '3', which is of a wrong type"),
    ('fewest_clients = true', 'fewest_clients = True, which is of a wrong type'),
    ('fewest_clients = -1', 'fewest_clients = -1, which is of a wrong type'),
    ('most_rounds = 1.5', r'most_rounds = 1\.5, which is of a wrong type'),
    ('masked = 1', 'masked = 1, which is of a wrong type'),
    ('judging = "no"', "judging = 'no', which is of a wrong type"),
    ('methods = "dcco"', "methods = 'dcco', which is of a wrong type"),
    ('methods = [1]', r'methods = \[1\], which is of a wrong type'),
    ('masked', 'is not TOML'),
    ('#' * (2**16 + 1), '65,537 bytes: it must have at most 65,536'),
  ],
  ids=lambda value: value[:18],
)
def test_a_rule_that_is_none_is_not_left_out_in_silence(tmp_path, text, said):
  with pytest.raises(ValueError, match=rf'rules\.toml .*{said}'):
    _read(tmp_path, text)


def test_bytes_that_are_no_text_are_refused(tmp_path):
  (tmp_path / 'rules.toml').write_bytes(b'\xff')
  with pytest.raises(ValueError, match='is not TOML'):
    rules_lib.read(tmp_path / 'rules.toml')
