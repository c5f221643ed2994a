"""The form of an error: what is wrong and its value, then what it must be."""

import ast
import pathlib
import re

import pytest

_ROOT = pathlib.Path(__file__).parents[1]
_TOPS = ('tff_ssl', 'tasks', 'binaries', 'carriers', 'docs')
_FILES = sorted(path for top in _TOPS for path in (_ROOT / top).rglob('*.py'))


def _text(node: ast.expr) -> str:
  """Returns a message with its values as {}; empty if it is made elsewhere."""
  if isinstance(node, ast.Constant):
    return str(node.value)
  if isinstance(node, ast.JoinedStr):
    return ''.join(
      str(part.value) if isinstance(part, ast.Constant) else '{}'
      for part in node.values
    )
  return ''


def _messages() -> list[tuple[str, str]]:
  """Lists the messages of `ValueError`s, with their places."""
  return [
    (f'{path.relative_to(_ROOT)}:{node.lineno}', _text(node.args[0]))
    for path in _FILES
    for node in ast.walk(ast.parse(path.read_text(encoding='utf-8')))
    if isinstance(node, ast.Call)
    and isinstance(node.func, ast.Name)
    and node.func.id == 'ValueError'
    and node.args
  ]


def _is_of_the_form(message: str) -> bool:
  """Tells whether a message has "X is V; it must be R.", if it says what must be.

  Forms of other libraries ("X must be R, got V", "allowed are") are none of ours.
  """
  if re.search(r', got |allowed are|[Ii]nvalid |[Uu]nexpected |expected ', message):
    return False
  before, must, _ = message.partition(' must ')
  return not must or bool(re.search(r'[;,:] ', before))


def test_errors_name_the_value_and_then_what_it_must_be():
  messages = _messages()

  assert len(messages) > 500
  assert [place for place, text in messages if not _is_of_the_form(text)] == []


@pytest.mark.parametrize(
  ('message', 'expected'),
  [
    ('rate is {}; it must be above 0.', True),
    ('{} is not a file', True),
    ('rate must be above 0, got {}.', False),
    ('rate must be above 0.', False),
    ('kind is {}; allowed are {}.', False),
    ('Invalid rate {}.', False),
  ],
)
def test_the_form_is_told_from_others(message, expected):
  assert _is_of_the_form(message) == expected
