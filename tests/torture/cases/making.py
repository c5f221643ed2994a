"""The parts of cases: a command line, and files that are made for it."""

from collections.abc import Callable
import json
import pathlib
from typing import NamedTuple

from binaries.config import programs
from binaries.config import run_config

# Makes files in a case's folder.
Make = Callable[[pathlib.Path], object]

RUN = '--run_dir={d}/run'


class Case(NamedTuple):
  """One bad input.

  Attributes:
    program: A program of `binaries`, or the full name of another module.
    arguments: Its command line, separated by blanks, with {d} for a folder of its own.
    words: Texts that the sentence must have.
    make: Makes files in that folder.
  """

  program: str
  arguments: str
  words: tuple[str, ...]
  make: Make


def case(
  program: str, arguments: str, words: tuple[str, ...] | str, *makes: Make
) -> Case:
  """Returns a case with one word or several, and what is made in turn."""
  words = (words,) if isinstance(words, str) else words
  return Case(program, arguments, words, every(*makes))


def text(name: str, content: str) -> Make:
  """Returns a function that writes a file; each character is a byte."""
  return binary(name, content.encode('latin-1'))


def binary(name: str, content: bytes) -> Make:
  """Returns a function that writes a file."""

  def make(folder: pathlib.Path) -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content)

  return make


def run(**changes: object) -> Make:
  """Returns a function that makes a stranger's run folder.

  Args:
    **changes: Values of its configuration, as JSON, in place of those of dcco.
  """
  own = run_config.to_json(programs.load('dcco').row(None, None))
  return text('run/config.json', json.dumps({'config': {**own, **changes}}))


def every(*makes: Make) -> Make:
  """Returns a function that does all of these in turn."""
  return lambda folder: [make(folder) for make in makes]


def large(name: str) -> Make:
  """Returns a function that makes a file that is large and takes no room."""

  def make(folder: pathlib.Path) -> None:
    text(name, '')(folder)
    with (folder / name).open('wb') as file:
      file.truncate(2**40)

  return make
