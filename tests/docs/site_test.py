"""What the site is made of: docstrings, links and the table of methods."""

import pathlib
import re

import pytest

from docs.site import layout
from docs.site import pages

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


@pytest.mark.parametrize(
  ('file', 'target', 'place'),
  [
    ('README.md', 'docs/tasks.md', 'tasks.md'),
    ('README.md', 'docs/programs.md#batch-norm', 'programs.md#batch-norm'),
    ('docs/terms.md', '../README.md', 'index.md'),
    ('docs/terms.md', 'figures/cifar10.png', 'figures/cifar10.png'),
    ('docs/terms.md', '../tff_ssl/losses/cco.py', 'reference/tff_ssl/losses/cco.md'),
    (
      'docs/terms.md',
      '../tff_ssl/losses/__init__.py',
      'reference/tff_ssl/losses/index.md',
    ),
    ('docs/terms.md', '../binaries/dcco.py', 'sources/binaries/dcco.md'),
    ('docs/terms.md', '../requirements.txt', 'sources/requirements.txt'),
    ('docs/terms.md', 'notebooks/own_program.py', 'notebooks/own_program.md'),
    ('docs/notebooks/own_program.py', '../embedding.md', '../embedding.md'),
    ('docs/terms.md', 'https://example.org', 'https://example.org'),
    ('docs/terms.md', '#data', '#data'),
  ],
)
def test_links_lead_to_the_same_place(file, target, place):
  text, sources = pages.with_links(f'See [it]({target}).', file)

  assert text == f'See [it]({place}).'
  assert bool(sources) == place.startswith('sources/')


@pytest.mark.parametrize('target', ['no.md', '../binaries'])
def test_a_link_to_no_file_is_refused(target):
  with pytest.raises(ValueError, match=f'docs/terms.md links to {target}; it must be'):
    pages.with_links(f'[it]({target})', 'docs/terms.md')


def test_code_is_no_link():
  text = '```python\nf[0](x)\n```\n'
  assert pages.with_links(text, 'docs/terms.md') == (text, set())


@pytest.mark.parametrize('package', ['algorithms', 'objectives'])
def test_table_of_methods_has_every_module(package):
  modules = [path.stem for path in (_ROOT / 'tff_ssl' / package).rglob('*.py')]
  table = pages.methods_table(package)
  listed = re.findall(r'^\| \[`(?:\w+\.)*(\w+)`\]', table, re.MULTILINE)

  assert sorted(listed) == sorted(name for name in modules if name != '__init__')


def test_table_of_methods_has_papers():
  # DINO's paper, out of the docstring of its file.
  assert re.search(
    r'\[`dino`\].* a student predicts .*Vision Transformers. ICCV 2021 \|\n',
    pages.methods_table('objectives'),
  )


def test_nothing_of_the_site_comes_from_a_server():
  config = (_ROOT / 'mkdocs.yml').read_text()
  assert 'font: false' in config
  assert 'polyfills: [site/javascripts/iframe-worker.js]' in config
  assert 'http' not in re.sub(r'#.*', '', config)
