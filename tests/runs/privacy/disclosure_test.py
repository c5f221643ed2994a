"""The rules on what may be given away: each name has one, and the documents say so."""

import itertools
import pathlib

import pytest

from tff_ssl.federated import clients
from tff_ssl.runs import run_folder
from tff_ssl.runs.privacy import disclosure

_DOCS = pathlib.Path(__file__).parents[3] / 'docs'
_TABLES = {
  'file': disclosure.FILES,
  'column of `metrics.csv`': disclosure.METRICS,
  'entry of `encoder.json`': disclosure.ENTRIES,
  'refused': disclosure.REFUSED,
  'made by `binaries.`': disclosure.OUTPUTS,
}


def _table(title, rules):
  """A table as docs/privacy.md has it: rules in a row that say the same are one."""
  lines = [f'| {title} | | why |', '| --- | --- | --- |']
  for (kind, why), some in itertools.groupby(rules, lambda rule: (rule.kind, rule.why)):
    names = ', '.join(f'`{rule.name}`' for rule in some)
    lines.append(f'| {names} | {kind.value} | {why} |')
  return '\n'.join(lines) + '\n'


@pytest.mark.parametrize('title', _TABLES)
def test_the_documents_have_the_tables_of_the_code(title):
  expected = _table(title, _TABLES[title])
  assert expected in (_DOCS / 'privacy.md').read_text(), expected


def test_the_documents_say_what_each_kind_means():
  text = ' '.join((_DOCS / 'privacy.md').read_text().split())
  for kind in disclosure.Kind:
    assert f'- **{kind.value}**: {disclosure.MEANINGS[kind]}' in text, kind


def test_no_rule_is_hidden_by_an_earlier_one():
  for rules, find in (
    (disclosure.FILES, disclosure.of_file),
    (disclosure.METRICS, disclosure.of_metric),
    (disclosure.ENTRIES, disclosure.of_entry),
  ):
    for rule in rules:
      assert find(rule.name.replace('*', 'x')) == rule


def test_each_file_that_a_run_folder_documents_has_a_rule():
  listed = run_folder.__doc__.split('\n\n')[1].splitlines()
  names = [line.split()[0] for line in listed if not line.startswith(' ')]
  assert {'config.json', 'clients/', 'worker.log'} <= set(names)
  for name in names:
    rule = disclosure.of_file(name + 'x' if name.endswith('/') else name)
    assert rule.is_named, name


def test_counts_without_noise_are_private():
  for name in clients.no_counts():
    rule = disclosure.of_metric(f'client_work/{name}')
    assert rule.is_named, name
    # The number of clients is that of the flags, which the rounds check.
    assert rule.is_public == (name == 'clients')


def test_names_without_a_rule_are_private():
  for find in (disclosure.of_file, disclosure.of_metric, disclosure.of_entry):
    rule = find('new')
    assert not rule.is_public and not rule.is_named
  # Nor is a name that only begins like one.
  assert not disclosure.of_file('encoder.keras.bak').is_named
  assert not disclosure.of_metric('client_work/loss_of_one').is_named
