"""Command lines of the programs that make figures and tables of pages."""

import argparse
from typing import NoReturn


class Parser(argparse.ArgumentParser):
  """A parser that refuses wrong arguments in one sentence, with exit status 1."""

  def error(self, message: str) -> NoReturn:
    """Ends the program."""
    self.exit(1, f'Error: {message.rstrip(".")}.\n')
