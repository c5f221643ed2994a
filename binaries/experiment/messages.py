"""Messages to the user of a run: warnings, and what is saved when a run fails."""

from collections.abc import Iterator, Mapping, Sequence
import contextlib
import sys
from typing import Any

import numpy as np

from binaries.building import data
from binaries.config import run_config
from tff_ssl.execution import failures
from tff_ssl.objectives import batch_norm_statistics
from tff_ssl.objectives import fixmatch
from tff_ssl.partition import describe
from tff_ssl.runs import run_folder
from tff_ssl.settings import learning

# Fewer examples than this are too few for batch norm.
_FEW = 8
# Suffix of the measurements of secure sums that count clipped clients.
_CLIPPED = 'er_clipped_count'


@contextlib.contextmanager
def after_training(path: str) -> Iterator[None]:
  """Says, when evaluation fails, that the trained encoder is saved."""
  try:
    yield
  except Exception as error:
    why = str(error) if isinstance(error, ValueError) else failures.sentence(error)
    if why is None:
      raise
    kind = ValueError if isinstance(error, ValueError) else failures.FailureError
    raise kind(
      f'The training is finished and saved, with encoder.keras, in {path}, but its '
      f'evaluation failed; the same command repeats it: {why}'
    ) from error


@contextlib.contextmanager
def add_resume_hint(folder: run_folder.RunFolder, rounds: int) -> Iterator[None]:
  """Says, when the machine fails, the round from which the run resumes."""
  try:
    yield
  except failures.FailureError:
    raise
  except Exception as error:
    sentence = failures.sentence(error)
    if sentence is None:
      raise
    saved = max(folder.checkpoints.rounds(), default=0)
    raise failures.FailureError(
      f'{sentence} Round {saved} of {rounds} is saved in {folder.path}: the same '
      'command resumes from there.'
    ) from error


def print_cohort_note(config: run_config.RunConfig, clients: int) -> None:
  """Prints that a round has all clients, if there are only few.

  Args:
    config: The run.
    clients: Number of clients.
  """
  wanted = config.clients_per_round
  if config.participation is None and data.cohort_size(config, clients) < wanted:
    print(
      f'each round has all {clients:,} clients, because clients_per_round is {wanted:,}'
    )


def sizes_in_loss(
  config: run_config.RunConfig, report: describe.PartitionReport
) -> list[int]:
  """Returns each client's number of examples that enter the loss.

  Prints how many do not, if it takes examples with a label alone.

  Args:
    config: The run.
    report: Describes the clients.
  """
  if not config.objective.labelled:
    return report.client_sizes.tolist()
  sizes = report.labelled_sizes
  if missing := report.examples - int(np.sum(sizes)):
    print(
      f'{missing:,} of {report.examples:,} examples of clients have no label and do '
      f'not enter the loss; {np.count_nonzero(sizes == 0):,} of {report.clients:,} '
      'clients have none that does'
    )
  return sizes.tolist()


def warn_of_batches(
  config: run_config.RunConfig, objective: Any, sizes: Sequence[int]
) -> None:
  """Warns on stderr if clients have batches that are too small, or too few of them.

  Too small are those of one example that its objective has nothing to compare with, and
  of few that batch norm would normalise; too few are those of an epoch that
  `accumulate` makes a single step of.

  Args:
    config: The run; if the server takes all steps, there is no warning.
    objective: What clients minimise.
    sizes: Number of examples of each client.
  """
  if config.method.steps:
    return
  if config.objective.compares and (alone := sizes.count(1)):
    _warn(
      f'{alone:,} of {len(sizes):,} clients have one example, from which '
      f'{config.objective.kind} learns nothing, because it compares those of a client: '
      'use larger clients, or DCCO, which compares those of a round.'
    )
  if not config.uses('clients.batch_size'):
    return
  plan = config.clients
  mixes = batch_norm_statistics.mixes_examples(objective)
  # Many clients have the same size.
  of_size = {size: plan.batch_sizes(size, mixes) for size in set(sizes) if size}
  batches = [of_size[size] for size in sizes if size]
  small = [min(own) for own in batches if min(own) < _FEW]
  if mixes and small:
    _warn(
      f'batch norm normalises batches of fewer than {_FEW} examples on {len(small)} of '
      f'{len(sizes)} clients (the smallest: {min(small)}), whose steps may be many '
      'times too large: use larger clients or --clients=batch_size= with a larger '
      'number, --clients=drop_last_batch=always if these batches are the last of an '
      'epoch, or --encoder=norm=group.'
    )
  single = [own for own in batches if 1 < len(own) <= plan.accumulate]
  if single:
    _warn(
      f'on {len(single)} of {len(sizes)} clients an epoch is a single step: they have '
      f'at most {plan.accumulate} batches, which --clients=accumulate='
      f'{plan.accumulate} averages into one; a smaller number takes more steps.'
    )


def warn_of_server_batches(
  labels: learning.AdamClients, objective: Any, examples: int
) -> None:
  """Warns on stderr if batch norm would normalise few of the server's examples.

  Args:
    labels: How the server trains, as if it were a client.
    objective: What it minimises.
    examples: Number of its labelled examples.
  """
  mixes = batch_norm_statistics.mixes_examples(objective)
  least = min(labels.batch_sizes(examples, mixes))
  if mixes and least < _FEW:
    _warn(
      f'batch norm normalises a batch of {least} of the {examples} examples at the '
      f'server, fewer than {_FEW}, and its step may be many times too large: use more '
      'labels, another --labels=batch_size= or --encoder=norm=group.'
    )


def warn_of_no_pseudo_label(
  config: run_config.RunConfig, rows: Sequence[Mapping[str, str]]
) -> None:
  """Warns on stderr if the clients had nothing to learn from in the entire run.

  Args:
    config: The run.
    rows: Rows of metrics.csv.
  """
  shares = [
    float(row[name])
    for row in rows
    for name in row
    if name.rpartition('/')[2] == fixmatch.PSEUDO_LABELLED and row[name]
  ]
  if shares and not any(shares):
    objective: Any = config.objective
    _warn(
      f'no image of a client had a pseudo-label in any of {len(shares)} rounds, so the '
      'clients have learnt nothing: no probability reached '
      f'--objective=threshold={objective.threshold:g}.'
    )


def warn_of_clipped_values(rows: Sequence[Mapping[str, str]]) -> None:
  """Warns on stderr if the bounds of secure sums clipped clients' values.

  Args:
    rows: Rows of metrics.csv.
  """
  clipped = [
    round
    for round, row in enumerate(rows, start=1)
    if any(name.endswith(_CLIPPED) and float(value) > 0 for name, value in row.items())
  ]
  if clipped:
    _warn(
      f'in {len(clipped)} of {len(rows)} rounds, first in round {clipped[0]}, values '
      'of clients were clipped by the bounds of secure sums: metrics.csv counts the '
      f'clients (*{_CLIPPED}); a larger --aggregation=bound= clips fewer.'
    )


def _warn(text: str) -> None:
  print(f'Warning: {text}', file=sys.stderr, flush=True)
