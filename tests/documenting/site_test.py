"""What the site is made of: docstrings, links, the pages of methods and modules."""

import ast
import json
import pathlib
import re

import pytest

from binaries.documenting import layout
from binaries.documenting import links
from binaries.documenting import methods
from binaries.documenting import notebooks
from binaries.documenting import reference

_ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
  ('docstring', 'markdown'),
  [
    # Markdown would join the steps to the line above.
    (
      'A round:\n  1. the server sends;\n     all of it\n  2. it waits.',
      'A round:\n\n1. the server sends;\n    all of it\n2. it waits.',
    ),
    ('Loss:\n\n    L = a_k  b', 'Loss:\n\n```text\nL = a_k  b\n```'),
    (
      'Use.\n\nTypical use::\n\n  x = f(1)',
      'Use.\n\nTypical use:\n\n```python\nx = f(1)\n```',
    ),
    (
      'Deviations:\n  The mean is plain and\n    not weighted.\n  Steps are counted.',
      'Deviations:\n\n- The mean is plain and\n    not weighted.\n- Steps are counted.',
    ),
    (
      'A:\n  1. takes\n\n         x\n\n     so;\n  2. it.',
      'A:\n\n1. takes\n\n        x\n\n    so;\n\n2. it.',
    ),
    ('Maps [n, *shape] to conv<k>.', r'Maps [n, \*shape] to conv&lt;k>.'),
    ('Maps [n, d] [0, 1].', r'Maps [n, d] \[0, 1].'),
    ('Code `[n, *x]` stays.', 'Code `[n, *x]` stays.'),
    # Before the colon griffe would read a type.
    (
      'Does.\n\nReturns:\n  The mean: a sum.',
      'Does.\n\nReturns:\n  The mean&#58; a sum.',
    ),
    ('Does.\n\nArgs:\n  x: A sum.', 'Does.\n\nArgs:\n  x: A sum.'),
  ],
)
def test_docstrings_become_markdown(docstring, markdown):
  assert layout.to_markdown(docstring) == markdown


def test_modules_that_have_a_page_are_linked():
  text = layout.to_markdown(
    '`tff_ssl.losses.cco`, `tff_ssl.no`', 'tff_ssl.losses.cco'.__eq__
  )
  assert text == '[`tff_ssl.losses.cco`][tff_ssl.losses.cco], `tff_ssl.no`'


@pytest.mark.parametrize(
  ('page', 'target', 'place'),
  [
    ('index.md', 'docs/tasks.md', 'tasks.md'),
    ('index.md', 'docs/programs.md#batch-norm', 'programs.md#batch-norm'),
    ('terms.md', '../README.md', 'index.md'),
    ('terms.md', '../tff_ssl/losses/cco.py', 'reference/tff_ssl/losses/cco.md'),
    ('terms.md', '../binaries/dcco.py', 'sources/binaries/dcco.md'),
    ('terms.md', '../requirements.txt', 'sources/requirements.txt'),
    ('terms.md', '../tff_ssl/algorithms/__init__.py', 'methods.md'),
    ('terms.md', 'notebooks/own_program.py', 'notebooks/own_program.md'),
    ('notebooks/own_program.md', '../embedding.md', '../embedding.md'),
    ('terms.md', 'https://example.org', 'https://example.org'),
    ('terms.md', '#data', '#data'),
  ],
)
def test_links_lead_to_the_same_place(page, target, place):
  needed = []
  text = links.rewrite(f'See [it]({target}).', page, _ROOT, needed.append)

  assert text == f'See [it]({place}).'
  assert bool(needed) == place.startswith('sources/')


@pytest.mark.parametrize('target', ['no.md', '../binaries'])
def test_a_link_to_no_file_is_refused(target):
  with pytest.raises(
    ValueError, match=f'terms.md links to {target}; it must be a file'
  ):
    links.rewrite(f'[it]({target})', 'terms.md', _ROOT, print)


def test_code_is_no_link():
  text = '```python\nf[0](x)\n```\n'
  assert links.rewrite(text, 'terms.md', _ROOT, print) == text


def test_every_algorithm_is_in_the_page_of_methods():
  doc = ast.get_docstring(ast.parse((_ROOT / links.METHODS).read_text()))
  listed = {row.module for row in methods.read_table(doc)}
  page = methods.page(_ROOT).text

  files = {p.stem: p for p in (_ROOT / 'tff_ssl/algorithms').rglob('*.py')}
  defined = {
    name
    for name, path in files.items()
    for node in ast.parse(path.read_text()).body
    if isinstance(node, ast.FunctionDef) and node.name == name
  }
  assert len(defined) > 15 and defined <= listed <= files.keys()
  fedsc = 'reference/tff_ssl/algorithms/statistics/fedsc.md'
  assert f'| FedSC | [`fedsc`]({fedsc}) | Jing et al. 2024 |' in page
  # DINO's paper, out of the docstring of its file.
  assert re.search(
    r'\[`dino`\].* a student predicts .*Vision Transformers. ICCV 2021', page
  )


def test_every_module_has_a_page_that_the_navigation_leads_to():
  modules = {
    path.relative_to(_ROOT).with_suffix('.md').as_posix()
    for path in (_ROOT / 'tff_ssl').rglob('*.py')
    if path.stem != '__init__'
  }
  pages = {
    page.place.removeprefix('reference/'): page for page in reference.pages(_ROOT)
  }
  shown = re.findall(r"'reference/([^']*)'", str(reference.navigation(_ROOT)))

  assert modules == {place for place in pages if not place.endswith('index.md')}
  assert sorted(shown) == sorted(pages)
  assert '::: tff_ssl.losses.cco\n' in pages['tff_ssl/losses/cco.md'].text


def test_every_page_of_docs_is_in_the_navigation():
  nav = (_ROOT / 'mkdocs.yml').read_text().partition('\nnav:\n')[2]
  shown = set(re.findall(r'[\w/]+\.md', nav))
  there = {
    links.place_of(path.relative_to(_ROOT).as_posix())
    for path in (_ROOT / 'docs').glob('*.md')
  }
  there |= {
    f'notebooks/{path.stem}.md' for path in (_ROOT / 'docs/notebooks').glob('*.py')
  }

  assert shown == there | {*links.ROOT_PAGES, 'methods.md'}


def test_a_notebook_becomes_markdown_and_ipynb():
  source = (
    '# %% [markdown]\n# # Title\n#\n# Text.\n\n# %% tags=["parameters"]\nx = 1\ny = 2\n'
  )

  assert (
    notebooks.to_markdown(source)
    == '# Title\n\nText.\n\n```python\nx = 1\ny = 2\n```\n'
  )
  book = json.loads(notebooks.to_ipynb(source))
  assert [cell['cell_type'] for cell in book['cells']] == ['markdown', 'code']
  assert book['cells'][1]['source'] == ['x = 1\n', 'y = 2']
  assert (book['nbformat'], book['nbformat_minor']) == (4, 5)


@pytest.mark.parametrize(
  ('source', 'sentence'),
  [
    ('x = 1\n# %%\n', 'before the line `# %%` of its first cell'),
    ('# %% [markdown]\nx\n', 'must begin with #'),
  ],
)
def test_what_is_no_notebook_is_refused(source, sentence):
  with pytest.raises(ValueError, match=sentence):
    notebooks.cells(source)


def test_nothing_of_the_site_comes_from_a_server():
  config = (_ROOT / 'mkdocs.yml').read_text()
  assert 'font: false' in config
  assert 'polyfills: [site/javascripts/iframe-worker.js]' in config
  assert 'http' not in re.sub(r'#.*', '', config)
