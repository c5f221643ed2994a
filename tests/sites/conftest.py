"""What tests of sites share."""

import pytest

from tff_ssl.sites import participation


@pytest.fixture
def plain_parts(monkeypatch):
  """Takes a process that is in parts already, as `plain_parts.build` returns it."""
  monkeypatch.setattr(participation.parts_lib, 'build_parts', lambda built, _: built)
