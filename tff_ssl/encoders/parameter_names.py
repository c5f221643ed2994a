"""The prefix of a parameter's name, which says to which network it belongs."""

import collections
from collections.abc import Collection, Mapping
from typing import Any


def with_prefix(
  params: Mapping[str, Any], prefix: str
) -> collections.OrderedDict[str, Any]:
  """Returns the parameters under the names 'prefix/name'."""
  return collections.OrderedDict(
    (f'{prefix}/{name}', value) for name, value in params.items()
  )


def prefix_of(name: str) -> str:
  """Returns the prefix of a parameter's name, which says whose parameter it is."""
  return name.split('/', 1)[0]


def of_networks(
  params: Mapping[str, Any], prefixes: Collection[str]
) -> collections.OrderedDict[str, Any]:
  """Returns the parameters of some networks, by the prefixes of their names."""
  return collections.OrderedDict(
    (name, value) for name, value in params.items() if prefix_of(name) in prefixes
  )


def select(params: Mapping[str, Any], prefix: str) -> collections.OrderedDict[str, Any]:
  """Returns the parameters named 'prefix/name' under 'name': undoes `with_prefix`.

  An empty result is valid (the identity has no parameters); if parameters were
  expected, `network.Network.apply` names the missing ones.
  """
  start = f'{prefix}/'
  return collections.OrderedDict(
    (name.removeprefix(start), value)
    for name, value in params.items()
    if name.startswith(start)
  )
