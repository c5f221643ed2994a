"""What is read from the files of claims, made up here, and what those of docs hold."""

import ast
import pathlib
import subprocess
import sys
import tomllib

import jinja2
import pytest

from binaries.building import data as building_data
from binaries.config import command_line
from binaries.experiment import running
from docs.campaigns import figures
from docs.claims import data
from docs.claims import page
from docs.claims import verdicts
from tasks import digits
from tests.worlds import campaigns
from tff_ssl.encoders import precision

_ROOT = pathlib.Path(__file__).parents[2]
_ORDER = "{order = ['one', 'two']}"
_CLAIMS = {budget: data.read(budget) for budget in data.SEEDS}
_RUNS = {
  f'{budget} {run.name}': run
  for budget, claims in _CLAIMS.items()
  for run in data.columns(claims)
}


def test_claim_has_what_its_file_says(tmp_path):
  (claim,) = campaigns.claims(tmp_path)
  assert (claim.id, claim.paper, claim.budget) == ('c', 'P', 'cifar')
  assert (claim.source, claim.sentence) == ('Table 9', 'One is better.')
  assert (claim.bounds, claim.seeds) == (('one', 'two'), range(3))
  assert (claim.protocol, claim.decisive, claim.cause) == ('Smaller.', '', '')
  two = figures.Run('two_4', 'fake', ('--accuracy=0.5', '--task=cifar10', '--rounds=4'))
  assert claim.figures['two'] == data.Figure(two, 'linear/10%/accuracy')
  assert list(claim.figures) == ['one', 'two', 'again']
  assert data.columns([claim])[two] == ['linear/10%/accuracy']


def test_claim_has_seeds_protocol_and_column_of_its_own(tmp_path):
  own = "seeds = 10\nprotocol = 'Larger.'\ndecisive = 'All.'\ncolumn = 'knn'\ncompare ="
  show = "['again']", "['personal', 'loss']"
  (claim,) = campaigns.claims(tmp_path, ('compare =', own), show)
  assert claim.seeds == range(10)
  # Others are compared, or are only shown.
  assert [len(claim.seeds_of(name)) for name in ('one', 'personal')] == [10, 1]
  assert (claim.protocol, claim.decisive) == ('Larger.', 'All.')
  columns = {title: figure.column for title, figure in claim.figures.items()}
  assert columns['one'] == 'knn'
  assert columns['personal'] == 'personal/knn'
  assert columns['loss'] == 'loss'


def test_budget_takes_its_part(tmp_path):
  cause = ('compare =', "cause.digits = 'Because of $rounds.'\ncompare =")
  (claim,) = campaigns.claims(tmp_path, cause, budget='digits')
  assert claim.cause == 'Because of 3.'
  assert claim.figures['two'].run.name == 'two_3'
  (claim,) = campaigns.claims(tmp_path, cause)
  assert claim.cause == ''
  only = ('[claims.c]', '[claims.c.cifar]')
  assert campaigns.claims(tmp_path, only, budget='digits') == []


def test_of_a_flag_that_is_given_twice_the_last_value_of_each_field_counts(tmp_path):
  base = ("both = '", "both = '--clients=sgd:epochs=1,batch_size=4 ")
  own = ('=0.75', '=0.75 --clients=epochs=2 --clients=adam --rounds=9')
  (claim,) = campaigns.claims(tmp_path, base, own)
  flags = claim.figures['one'].run.flags
  assert flags[0] == '--clients=adam:epochs=2,batch_size=4'
  assert '--rounds=9' in flags


@pytest.mark.parametrize(
  ('entry', 'terms', 'papers', 'level'),
  [
    (_ORDER, [{'one': 1, 'two': -1}], [None], False),
    (
      "{order = ['one', 'two', 'again'], paper = [10, 5.5]}",
      [{'one': 1, 'two': -1}, {'two': 1, 'again': -1}],
      [0.1, 0.055],
      False,
    ),
    (
      "{first = 'one', of = ['two', 'again']}",
      [{'one': 1, 'two': -1}, {'one': 1, 'again': -1}],
      [None, None],
      False,
    ),
    ("{level = ['one', 'two'], paper = 3}", [{'one': 1, 'two': -1}], [0.03], True),
    (
      "{order = [['one', 'two'], ['again', 'loss']]}",
      [{'one': 1, 'two': -1, 'again': -1, 'loss': 1}],
      [None],
      False,
    ),
    # A figure in both differences counts twice.
    (
      "{order = [['one', 'two'], ['two', 'again']]}",
      [{'one': 1, 'two': -2, 'again': 1}],
      [None],
      False,
    ),
  ],
)
def test_each_kind_of_comparison_is_a_sum_of_figures(
  tmp_path, entry, terms, papers, level
):
  (claim,) = campaigns.claims(tmp_path, (_ORDER, entry))
  assert [dict(each.terms) for each in claim.comparisons] == terms
  assert [each.paper for each in claim.comparisons] == papers
  assert {each.level for each in claim.comparisons} == {level}


@pytest.mark.parametrize(
  ('old', 'new', 'said'),
  [
    (_ORDER, "{order = ['one', 'three']}", "claim c has 'three'; it must be in"),
    (_ORDER, '', 'claim c has no comparison'),
    (_ORDER, "{order = ['one', 'two'], buy = 0.1}", 'has order, buy; it must have'),
    (_ORDER, "{order = ['one', 'two'], paper = [1, 2]}", 'paper has 2 differences; it'),
    (_ORDER, "{level = ['one'], paper = 3}", 'has level, paper; it must have order'),
    ('show', 'seeds = 11\nshow', 'seeds of claim c is 11; it must be a whole number'),
    ('protocol', 'protocols', "no 'protocol'; it must have one"),
    ('source', 'sauce', "unexpected keyword argument 'sauce'"),
    ('compare', 'compete', "no 'compare'; it must have one"),
    ("one = 'one'", "one = 'none'", "no 'none'; it must have one"),
    ('$both --accuracy=0.5', '$all', "no 'all'; it must have one"),
    ("--accuracy=0.5'", "--accuracy=0.75'", 'Command fake .* is there 2 times'),
    ("'two_${rounds}'", "'one'", 'Cannot overwrite'),
  ],
)
def test_file_that_says_something_else_is_refused(tmp_path, old, new, said):
  with pytest.raises(ValueError, match=said):
    campaigns.claims(tmp_path, (old, new))


def test_claim_in_two_files_is_refused(tmp_path):
  campaigns.claims(tmp_path)
  (tmp_path / 'q.toml').write_text((tmp_path / 'p.toml').read_text())
  with pytest.raises(ValueError, match='Claim c is there 2 times'):
    data.read('cifar', tmp_path)


@pytest.fixture(scope='module')
def task():
  return digits.load()


def test_flags_of_runs_are_taken_by_their_programs(task, tmp_path, monkeypatch):
  # Runs in bfloat16 are refused where TensorFlow has no convolution for it.
  monkeypatch.setattr(precision, 'fault', str)
  for name, run in _RUNS.items():
    given = (*run.flags, f'--run_dir={tmp_path}/r')
    config = command_line.parse_run(run.program, given)
    # All that a program checks before it loads data.
    running.check(config)
    if config.task == 'digits':
      partition = building_data.partition(config, task)
      size = building_data.cohort_size(config, len(partition))
      assert size <= len(partition), name


def test_hash_is_that_of_program_and_flags():
  key = figures.Run('a', 'dcco', ('--a=1', '--b=2')).key
  assert key == figures.Run('other', 'dcco', ('--b=2', '--a=1')).key
  others = [('dcco', ('--a=1', '--b=3')), ('dcco', ('--a=1',)), ('ssfl', ('--a=1',))]
  assert len({key, *(figures.Run('a', *other).key for other in others)}) == 4


@pytest.mark.parametrize(
  'path', sorted(data.FOLDER.glob('*.toml')), ids=lambda p: p.stem
)
def test_each_run_and_figure_is_of_a_claim(path):
  content = tomllib.loads(path.read_text(encoding='utf-8'))
  claims = [each for own in _CLAIMS.values() for each in own]
  claims = [claim for claim in claims if claim.paper == content['paper']]
  assert {title for claim in claims for title in claim.figures} == {*content['figures']}
  # Names of runs with the texts of one budget or the other.
  names = {run.name for run in data.columns(claims)}
  assert len(names) >= len(content['runs'])
  for name in content['runs']:
    assert '$' in name or name in names, name


def test_a_remark_on_the_protocol_begins_with_a_few_words():
  remarks = [each.decisive for own in _CLAIMS.values() for each in own if each.decisive]
  assert {len(each.partition('. ')[0]) <= 30 for each in remarks} == {True}
  assert all(each.partition('. ')[2] for each in remarks)


def test_no_claim_is_of_figures_that_are_one_in_each_seed():
  for budget, claims in _CLAIMS.items():
    stored = figures.read(data.FOLDER / f'{budget}.csv')
    for claim in claims:
      _, differences = verdicts.judge(claim, claim.values(stored))
      assert all(each.reach > 0 for each in differences), claim.id


def test_page_is_that_of_the_data_and_of_the_stored_figures():
  """If this fails, `python -m docs.claims --seeds=0` writes the page again."""
  stored = (_ROOT / 'docs' / 'claims.md').read_text(encoding='utf-8')
  assert stored == page.text(full=False)


def test_page_of_the_site_needs_jinja2_alone():
  # -I and -S leave out what the environment imports by itself.
  installed = pathlib.Path(jinja2.__file__).parents[1]
  code = f'import sys; sys.path += [{str(_ROOT)!r}, {str(installed)!r}]\n'
  code += 'from docs.claims import page; print(page.text(full=True))\n'
  code += 'print({name.partition(".")[0] for name in sys.modules}'
  code += ' - sys.stdlib_module_names - {"__main__"}, file=sys.stderr)'
  ended = subprocess.run(
    [sys.executable, '-I', '-S', '-c', code], capture_output=True, text=True, check=True
  )
  assert ast.literal_eval(ended.stderr) == {'docs', 'jinja2', 'markupsafe', 'tff_ssl'}
  for claim in _CLAIMS['digits'] + _CLAIMS['cifar']:
    assert f'\n### {claim.id}\n' in ended.stdout
