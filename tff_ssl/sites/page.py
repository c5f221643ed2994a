"""The page that a site shows before the first round: what would leave it."""

from collections.abc import Mapping, Sequence
import math
from typing import Any

import numpy as np

from tff_ssl.execution import tff_values
from tff_ssl.federated import parts as parts_lib

_NEVER = (
  'pictures, the label of any, names of files and folders, who is in a round, and the '
  'sums of any single client, unless one alone takes part'
)


def text(
  name: str,
  run: str,
  config: Mapping[str, object],
  exchanges: Mapping[str, parts_lib.ExchangeParts],
  clients: int,
  examples: int,
  clients_per_round: int,
  masked: bool,
  judged: Mapping[str, Mapping[str, Sequence[int]]],
) -> str:
  """Returns the page.

  Args:
    name: The site's name.
    run: Digest of the offer.
    config: Settings of the run, by name.
    exchanges: What is exchanged in a round, by name, in order.
    clients: Clients that the site has.
    examples: Examples that they have.
    clients_per_round: Clients of the site in a round.
    masked: Whether sums are masked.
    judged: By question, the shapes of the sums by which the encoder is judged, over all
      of the site's examples; empty: the site judges nothing.
  """
  lines = [
    f'Offer {run[:12]} to {name}',
    '',
    'The run',
    *(f'  {each:28} {value}' for each, value in config.items()),
    '',
    f'Of this site: {clients:,} clients with {examples:,} examples.',
    f'{clients_per_round:,} of the clients take part in a round.',
    'The first two of these numbers leave once, when the site joins.',
  ]
  for exchange, computations in exchanges.items():
    down = computations.broadcast.type_signature.result.member
    up = computations.partial.type_signature.result[0].member
    what = (
      'masked sums, which say nothing without those of the others'
      if masked
      else 'sums over the clients of the round'
    )
    leaving = _size(_bytes(up, 8 if masked else None))
    head = f'In exchange {exchange!r} of each round come {_size(_bytes(down))}, and '
    lines += ['', f'{head}{leaving} leave: {what}', *_named(up)]
  if judged:
    lines += ['', 'At the end, and at evaluations, leave sums to judge the encoder by:']
  for question, shapes in judged.items():
    number = sum(math.prod(shape) for shape in shapes.values())
    lines.append(f'  {question:28} {number:,} numbers over all examples of this site')
  if not judged:
    lines += ['', 'The encoder is not judged here.']
  return '\n'.join([*lines, '', f'What never leaves: {_NEVER}.'])


def _named(sums: Any) -> list[str]:
  groups: dict[str, list[int]] = {}
  for each, leaf in tff_values.leaf_types(sums).items():
    groups.setdefault(each.partition('/')[0], []).append(math.prod(leaf.shape))
  return [
    f'  {group:28} {sum(sizes):,} numbers'
    + (f' in {len(sizes)} arrays' if len(sizes) > 1 else '')
    for group, sizes in groups.items()
  ]


def _bytes(value_type: Any, each: int | None = None) -> int:
  return sum(
    math.prod(leaf.shape) * (each or np.dtype(leaf.dtype).itemsize)
    for leaf in tff_values.leaf_types(value_type).values()
  )


def _size(number: int) -> str:
  return f'{number / 1000:,.1f} kB' if number < 10**6 else f'{number / 1e6:,.1f} MB'
