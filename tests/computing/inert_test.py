r"""Names of strangers do nothing, wherever they go.

What a medium would do is decided by that medium where it is at hand: HTML by Python's
parser, CSV by Python's reader and by what spreadsheets take for a formula.
"""

import csv
import io
import re
import unicodedata

import hypothesis
from hypothesis import strategies
import pytest

from tests.worlds import html_page
from tff_ssl.computing import inert

NASTY = (
  "=cmd|' '!A0.png",
  '<img src=x onerror=alert(1)>.png',
  '\u202egnp.exe',
  '\x1b[2J\x1b]0;title\x07',
  'a\r\nb\tc',
  'a\u2028b\x85c\x0bd',
  '|',
  r'$\input{/etc/passwd}$',
  '@SUM(A1)',
  '+1+1',
  '-2+3',
  '\t=1+1',
  ' =1+1',
  '＝1+1',
  "'=1+1",
  '[x](javascript:alert(1))',
  '![x](https://example.org/a.png)',
  '`code`',
  '# title',
  '[options]',
  '*',
  'www.example.org',
  '&lt;script&gt;',
  '"onload="alert(1)',
  '\udce4.png',
  '%00^^5cinput',
)
_NAMES = strategies.one_of(
  strategies.sampled_from(NASTY),
  # Not `text()`, which first takes seconds to tell all characters apart.
  strategies.lists(strategies.integers(0, 0x2FFF).map(chr), max_size=12).map(''.join),
  strategies.text(
    alphabet='=+-@\'\t\r\n |<>&"$\\{}[]()*_#`:/w.1e\x1b\u202e', max_size=8
  ),
)
over_names = hypothesis.given(_NAMES)
_ORDINARY = (
  'ISIC_0024306.jpg',
  'sieben Äpfel (2).png',
  'médecin/ünï',
  '病院 1',
  'a.b-c',
)


@pytest.mark.parametrize('name', _ORDINARY)
def test_ordinary_names_are_not_changed(name):
  for medium in (inert.line, inert.cell, inert.html):
    assert medium(name) == name
  assert inert.markdown(name) == name


@pytest.mark.parametrize('name', ['-1.5', '+3', '1e-5', '-1.5E+10', '-.5', '0', ''])
def test_numbers_stay_numbers(name):
  assert inert.cell(name) == name
  assert inert.cell(-1.5) == '-1.5'


def _gives_orders(letter):
  return unicodedata.category(letter) in ('Cc', 'Cs', 'Zl', 'Zp') or (
    unicodedata.bidirectional(letter)
    in ('LRE', 'RLE', 'LRO', 'RLO', 'PDF', 'LRI', 'RLI', 'FSI', 'PDI')
  )


@over_names
def test_lines_have_no_control_characters(name):
  assert not any(map(_gives_orders, inert.line(name)))
  assert inert.line(inert.line(name)) == inert.line(name)
  inert.line(name).encode('utf-8')


@over_names
def test_an_output_keeps_its_lines_alone(name):
  shown = inert.lines(name)
  assert not any(map(_gives_orders, re.sub('[\n\r\t]', '', shown)))
  assert re.findall('[\n\r\t]', shown) == re.findall('[\n\r\t]', name)


@over_names
def test_a_cell_is_no_formula_and_is_read_again(name):
  file = io.StringIO()
  csv.writer(file, lineterminator='\n').writerow([inert.cell(name), 'next'])
  assert file.getvalue().count('\n') == 1
  ((cell, _),) = csv.reader(file.getvalue().splitlines())
  assert inert.of_cell(cell) == inert.line(name)
  # Spreadsheets trim blanks, and take full-width signs too.
  start = unicodedata.normalize('NFKC', cell.strip())[:1]
  if start and start in '=+-@\t\r':
    float(cell)


@over_names
def test_html_shows_the_name_and_has_no_tag(name):
  page = html_page.Page(f'<li title="{inert.html(name)}">{inert.html(name)}</li>')
  assert (page.tags, page.attributes) == (['li'], [('title', inert.line(name))])
  assert page.texts('li') == [inert.line(name)]


@over_names
def test_markdown_has_no_tag_link_formula_or_cell(name):
  text = inert.markdown(name)
  assert not re.search('[<>$\n\r]', text)
  assert '://' not in text
  assert not re.search(r'\bwww\.', text, re.IGNORECASE)
  bare = re.sub(r'\\[\\`*_\[\]|#]', '', text)
  assert not re.search(r'[`*\[\]|#]', bare.replace('&#', ''))
  # What an entity stands for is shown, not obeyed.
  for entity in re.findall('&[^;]*;?', text):
    assert entity in ('&amp;', '&lt;', '&gt;', '&#58;', '&#46;', '&#36;')
