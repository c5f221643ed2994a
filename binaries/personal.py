"""Personal encoders in a binary that trains: their evaluation, and files of them.

While a run lasts they are evaluated by kNN, after its last round also by what
`--personal_methods` names. The same command, on a run that has finished, evaluates by
other methods and exports other clients.
"""

import collections
from collections.abc import Mapping
import dataclasses
import functools

from absl import flags
import numpy as np

from binaries import common
from binaries import evaluation_flags
from binaries import partition_flags
from binaries import results
from binaries import run_parts
from tff_ssl.algorithms import federated_linear
from tff_ssl.evaluation import personal
from tff_ssl.evaluation import suite
from tff_ssl.objectives import base
from tff_ssl.partition import alike
from tff_ssl.partition import spec
from tff_ssl.reporting import table as table_lib
from tff_ssl.runtime import federated_probe
from tff_ssl.runtime import personal_models
from tff_ssl.runtime import run_folder

_AFTERWARDS = tuple(m for m in personal.METHODS if m not in personal.KNN)
METHODS = flags.DEFINE_list(
  'personal_methods',
  ['logistic'],
  "How clients' own encoders are evaluated after the last round, beside kNN: some of "
  f'{", ".join(_AFTERWARDS)}; empty: not.',
)
_CLIENTS = flags.DEFINE_integer(
  'personal_clients',
  None,
  'So many clients, drawn, are evaluated; by default all that have test examples.',
  lower_bound=1,
)
EXPORT = flags.DEFINE_list(
  'export_clients', [], 'Clients whose encoders are written to RUN_DIR/clients.'
)
# Streams of a run's seed: whose the test examples are, and which clients are evaluated.
_DEALING, _CHOOSING = 2, 3


def check_flags() -> None:
  """Checks the flags, without data.

  Raises:
    ValueError: If one is out of range, or would do nothing.
  """
  for method in METHODS.value:
    if method not in _AFTERWARDS:
      raise ValueError(
        f'personal_methods has {method!r}; allowed are {", ".join(_AFTERWARDS)}.'
      )


class Personal:
  """The personal encoders of a run (`run_parts.Personal`)."""

  def __init__(self, parts: run_parts.Parts, model: personal_models.PersonalModel):
    """Deals the test examples; encodes nothing yet.

    Args:
      parts: Of the run.
      model: Its clients' models.

    Raises:
      ValueError: If a client to export is none of the run's.
    """
    for client_id in EXPORT.value:
      if client_id not in parts.partition:
        raise ValueError(
          f'export_clients has {client_id!r}; the clients are '
          f'{next(iter(parts.partition))} to {next(reversed(parts.partition))}.'
        )
    self._parts = parts
    self._encoders = personal_models.PersonalEncoders(parts.encoder, model)
    task, text = parts.task, partition_flags.text(parts.task)
    labelled = np.flatnonzero(task.test.label >= 0)
    dealt = self.deal(task.test.label[labelled], task.test.case[labelled])
    tested = collections.OrderedDict((k, labelled[own]) for k, own in dealt.items())
    held = parts.partition
    images, test_images = (
      spec.client_images(text, examples.image, whose)
      for examples, whose in ((task.train, held), (task.test, tested))
    )
    self._evaluation = personal.PersonalEvaluation(
      dataclasses.replace(task.train, image=images),
      dataclasses.replace(task.test, image=test_images),
      held,
      _some(tested),
      num_classes=task.num_classes,
      fractions=evaluation_flags.fractions(),
      seed=common.SEED.value,
      federated=self._build_federated(),
    )

  def deal(self, labels: np.ndarray, cases: np.ndarray) -> Mapping[str, np.ndarray]:
    """Deals test examples as the training examples were dealt (`scores.Deal`).

    Args:
      labels: int [n], of the test examples.
      cases: Not used: images are dealt, one by one.
    """
    del cases
    return alike.deal_alike(
      self._parts.partition,
      self._parts.task.train.label,
      labels,
      np.random.default_rng([common.SEED.value, _DEALING]),
    )

  def during(self, weights: base.Params) -> results.Numbers:
    """Evaluates all clients' encoders by kNN.

    Args:
      weights: Of the global model.
    """
    encoder_of = functools.partial(self._encoders.encode, weights)
    return self._evaluation.evaluate(encoder_of, personal.KNN)

  def finish(
    self, folder: run_folder.RunFolder, weights: base.Params, name: str, rounds: int
  ) -> None:
    """Evaluates by what is left, prints a table, and exports encoders.

    Args:
      folder: Of the run.
      weights: Of the global model, after the last round.
      name: Of the algorithm.
      rounds: Number of the last round.
    """
    known = results.read(folder.path, rounds)
    methods = [m for m in METHODS.value if not _has(known, m)]
    if not _has(known, 'knn'):
      methods = [*personal.KNN, *methods]
    if methods:
      encoder_of = functools.partial(self._encoders.encode, weights)
      found = self._evaluation.evaluate(encoder_of, methods)
      results.write(folder.path, rounds, name, {name: found})
      known.update(found)
    print(table(known))
    for client_id in EXPORT.value:
      self._export(folder, weights, name, rounds, client_id)

  def _export(
    self,
    folder: run_folder.RunFolder,
    weights: base.Params,
    name: str,
    rounds: int,
    client_id: str,
  ) -> None:
    """Writes a client's encoder and its card to `clients/CLIENT_ID`."""
    encoder = self._parts.encoder
    params = self._encoders.params(weights, client_id)
    card = results.card(self._parts.task, encoder, name, rounds)
    card['client'] = client_id
    folder.save_encoder(encoder.to_keras(params), card, client_id)

  def _build_federated(self) -> suite.Federated | None:
    if suite.FEDERATED_LINEAR not in METHODS.value:
      return None
    partition = self._parts.partition
    return federated_probe.FederatedProbe(
      partition,
      self._parts.task.num_classes,
      common.cohort_size(len(partition)),
      federated_linear.FederatedLinearConfig(seed=common.SEED.value),
      common.PACKS.value,
    ).fit


def table(numbers: results.Numbers) -> str:
  """Lays out personal accuracies: a row for each method and share of the labels.

  Args:
    numbers: Of a run, with those of the global encoder as `fairness/...`.
  """
  rows = []
  end = '/accuracy/mean'
  for name, value in numbers.items():
    if name.startswith('personal/') and name.endswith(end):
      method, share = name.removeprefix('personal/').removesuffix(end).split('/')
      row = {
        'personal': method,
        'labels': share,
        'clients': int(numbers['personal/clients']),
        'mean': value,
        'deviation': numbers[name.replace('/mean', '/std')],
        'worst decile': numbers[name.replace('/mean', '/worst_decile')],
      }
      of_global = numbers.get(f'fairness/{method}/{share}{end}')
      rows.append(row if of_global is None else {**row, 'global mean': of_global})
  names = ('mean', 'deviation', 'worst decile', 'global mean')
  shown = [name for name in names if any(name in row for row in rows)]
  return table_lib.text(
    rows, ['personal', 'labels', 'clients', *shown], percent=tuple(shown)
  )


def _has(numbers: results.Numbers, method: str) -> bool:
  prefix = f'personal/{personal.prefix(method)}/'
  return any(name.startswith(prefix) for name in numbers)


def _some(tested: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
  """Leaves the clients of the flag, of those that have test examples."""
  having = [client_id for client_id, own in tested.items() if len(own)]
  if _CLIENTS.value is None or _CLIENTS.value >= len(having):
    return tested
  rng = np.random.default_rng([common.SEED.value, _CHOOSING])
  drawn = set(rng.permutation(having)[: _CLIENTS.value].tolist())
  return collections.OrderedDict((k, v) for k, v in tested.items() if k in drawn)
