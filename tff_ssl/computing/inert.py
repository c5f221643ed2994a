"""Names from strangers, in a form that does nothing where it is shown.

File names, labels, client ids and the flags of a run may come from anybody. A terminal
obeys escape sequences, a spreadsheet evaluates cells that begin with `=`, and a page
runs what is in tags. Here is one function for each medium. What needs no change is not
changed.
"""

import html as html_lib
import re

# Controls of terminals, and of the direction of text; separators of lines; characters
# that are not seen; halves of characters, as of names that are not UTF-8.
_UNSEEN = re.compile(
  '[\x00-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff'
  '\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]'
)
# Of these, what lays out the lines of an output.
_LAYOUT = '\n\r\t'
# A cell that begins so may be a formula. An apostrophe marks text.
_FORMULA = tuple("=+-@'")
_NUMBER = re.compile(r'[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?|-inf', re.IGNORECASE)
_WIDE = str.maketrans('＝＋－＠', '=+-@')
# Entities where a backslash is not enough in all dialects. A name is no link.
_MARKDOWN = (
  (re.compile(r'[\\`*\[\]|#]|(?<!\w)_|_(?!\w)'), r'\\\g<0>'),
  (re.compile('://'), '&#58;//'),
  (re.compile(r'\bwww\.', re.IGNORECASE), 'www&#46;'),
  (re.compile(r'\$'), '&#36;'),
)
# Letters that the fonts of every document have; then symbols of our own tables, and
# what has a meaning.
_WESTERN = 'ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÑÒÓÔÕÖØÙÚÛÜÝßàáâãäåæçèéêëìíîïñòóôõöøùúûüýÿ'
_LATEX = {
  '±': r'$\pm$',
  '…': r'\dots{}',
  '−': '$-$',
  '↓': r'$\downarrow$',
  '\\': r'\textbackslash{}',
  '~': r'\textasciitilde{}',
  '^': r'\textasciicircum{}',
  '<': r'\textless{}',
  '>': r'\textgreater{}',
  '|': r'\textbar{}',
  '"': "''",
  # Behind the end of a line, an argument of it.
  '[': '{[}',
  '*': '{*}',
  **{sign: f'\\{sign}' for sign in '#$%&_{}'},
}


def line(name: object) -> str:
  r"""Returns a name for a terminal, a log or a figure: one line, as it is read.

  Args:
    name: Any text or value; what is not seen or gives orders becomes an escape, as in
      `\x1b`, `\u202e` or `\udce4`.
  """
  return _UNSEEN.sub(_escape, str(name))


def lines(text: str) -> str:
  """Returns an output for a terminal; see `line`. It keeps its lines and tabs."""
  return _UNSEEN.sub(
    lambda match: match[0] if match[0] in _LAYOUT else _escape(match), text
  )


def _escape(match: re.Match[str]) -> str:
  number = ord(match[0])
  if number < 0x100:
    return f'\\x{number:02x}'
  return f'\\u{number:04x}' if number < 0x10000 else f'\\U{number:08x}'


def cell(name: object) -> str:
  """Returns a name as a cell of a CSV file, which no spreadsheet evaluates.

  Numbers are not changed. Text that may be a formula begins with an apostrophe, and so
  does text that begins with one, so that `of_cell` returns each name.

  Args:
    name: Any text or value; it becomes one line (`line`).
  """
  text = line(name)
  start = text.lstrip()[:1].translate(_WIDE)
  if start in _FORMULA and start and not _NUMBER.fullmatch(text):
    return f"'{text}"
  return text


def of_cell(text: str) -> str:
  """Returns the name of which `cell` made a cell."""
  return text[1:] if text.startswith("'") else text


def markdown(name: object) -> str:
  """Returns a name as Markdown: text, without tags, links, formulas or cells."""
  text = html_lib.escape(line(' '.join(str(name).split())), quote=False)
  for pattern, replacement in _MARKDOWN:
    text = pattern.sub(replacement, text)
  return text


def html(name: object) -> str:
  """Returns a name as HTML, for a text or an attribute in quotes."""
  return html_lib.escape(line(name), quote=True)


def latex(name: object) -> str:
  """Returns a name as LaTeX: text, without commands; `?` where no font has a letter.

  Args:
    name: Any text or value. Letters of Western Europe stay; those of other scripts need
      packages that a document may not have.
  """
  text = line(' '.join(str(name).split()))
  return ''.join(
    _LATEX.get(each, each if each.isascii() or each in _WESTERN else '?')
    for each in text
  )
