"""Personal encoders in a binary that trains: their evaluation, and files of them.

While a run lasts they are evaluated by kNN, after its last round also by what
`--personal_methods` names. The same command, on a run that has finished, evaluates by
other methods and exports other clients. In a binary where the flags are empty by
default, nothing is done unless one of them asks.
"""

import collections
from collections.abc import Mapping, Sequence
import dataclasses
import functools

from absl import flags
import numpy as np

from binaries import common
from binaries import evaluation_flags
from binaries import partition_flags
from binaries import personal_results
from binaries import results
from binaries import run_parts
from tff_ssl.algorithms import federated_linear
from tff_ssl.evaluation import personal
from tff_ssl.evaluation import suite
from tff_ssl.objectives import base
from tff_ssl.partition import alike
from tff_ssl.partition import spec
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
NAMES = (METHODS.name, _CLIENTS.name, EXPORT.name)
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


def is_asked_for() -> bool:
  """Returns whether a flag asks for something, where that is empty by default."""
  return bool(METHODS.value or EXPORT.value or _CLIENTS.value)


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

  def during(
    self, folder: run_folder.RunFolder, weights: base.Params, round: int
  ) -> results.Numbers:
    """Evaluates all clients' encoders by kNN.

    Args:
      folder: Of the run.
      weights: Of the global model.
      round: That they are of.
    """
    return self._evaluate(folder, weights, round, personal.KNN)

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
    methods = [
      method
      for method in (*personal.KNN, *METHODS.value)
      if not personal_results.has(known, method)
    ]
    if methods:
      found = self._evaluate(folder, weights, rounds, methods)
      results.write(folder.path, rounds, name, {name: found})
      known.update(found)
    print(personal_results.table(known))
    for client_id in EXPORT.value:
      self._export(folder, weights, name, rounds, client_id)

  def _evaluate(
    self,
    folder: run_folder.RunFolder,
    weights: base.Params,
    round: int,
    methods: Sequence[str],
  ) -> results.Numbers:
    encoder_of = functools.partial(self._encoders.encode, weights)
    accuracies = self._evaluation.evaluate(encoder_of, methods)
    return personal_results.write(folder, round, accuracies)

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
    path = folder.save_encoder(encoder.to_keras(params), card, client_id)
    print(f'Encoder of {client_id}: {path}')

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


def _some(tested: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
  """Leaves the clients of the flag, of those that have test examples."""
  having = [client_id for client_id, own in tested.items() if len(own)]
  if _CLIENTS.value is None or _CLIENTS.value >= len(having):
    return tested
  rng = np.random.default_rng([common.SEED.value, _CHOOSING])
  drawn = set(rng.permutation(having)[: _CLIENTS.value].tolist())
  return collections.OrderedDict((k, v) for k, v in tested.items() if k in drawn)
