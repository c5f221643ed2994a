"""Clients' personal encoders in a run: evaluation and export.

During a run they are evaluated by kNN, and after its last round also by the methods of
`--evaluation=personal=`. On a finished run, the same command evaluates by further
methods and exports further clients. In a program where these fields are empty by
default, nothing is done unless one of them is given.

Each evaluation adds a row for each client to `clients.csv`, with its accuracies under
the names of `evaluation.personal_encoders`; `binaries.compare` draws them.
"""

import collections
from collections.abc import Mapping, Sequence
import functools

import numpy as np

from binaries.building import data
from binaries.building import evaluation
from binaries.config import run_config
from binaries.experiment import encoder_card
from binaries.experiment import evaluation_clients
from binaries.experiment import results
from tasks import task_types
from tff_ssl.encoders import network
from tff_ssl.evaluation import method_names
from tff_ssl.evaluation import personal_encoders
from tff_ssl.evaluation import scores
from tff_ssl.objectives import base
from tff_ssl.partition import matching
from tff_ssl.partition import partitions
from tff_ssl.partition import spec
from tff_ssl.reporting import plain_text
from tff_ssl.runs import personal_models
from tff_ssl.runs import round_table as csv_lib
from tff_ssl.runs import run_config as stored_config
from tff_ssl.runs import run_folder
from tff_ssl.settings import learning

_ACCURACY = '/accuracy'
_NOT_PRIVATE = (
  'none: this encoder is what its client keeps, to which no noise was added; it must '
  'stay with the client'
)
_TITLES = {**results.COLUMNS, personal_encoders.LOCAL_KNN: 'local kNN'}
# Streams of a run's seed: for dealing test examples to clients, for choosing the
# clients to evaluate, and for assigning sources to test examples.
_DEALING, _CHOOSING, _MATCHING = 2, 3, 4


def check_exported(
  config: run_config.RunConfig, partition: partitions.Partition
) -> None:
  """Checks that the clients whose encoders are wanted are there.

  Args:
    config: The run.
    partition: Client id -> positions among the training examples.

  Raises:
    ValueError: If a client is not in the run, or its name cannot be the name of a
      folder.
  """
  for client_id in config.evaluation.export_clients:
    if client_id not in partition:
      raise ValueError(
        f'export_clients of --evaluation has {client_id!r}; the clients are '
        f'{next(iter(partition))} to {list(partition)[-1]}.'
      )
    stored_config.check_client(client_id)


class Personal:
  """The personal encoders of a run; without any label they are only exported."""

  def __init__(
    self,
    config: run_config.RunConfig,
    task: task_types.Task,
    encoder: network.Network,
    partition: partitions.Partition,
    model: personal_models.PersonalModel,
  ):
    """Deals the test examples; does not encode yet.

    Args:
      config: The run.
      task: Its task.
      encoder: Its encoder.
      partition: Client id -> positions among the training examples.
      model: The models of its clients.
    """
    self._config, self._task = config, task
    self._encoder, self._partition = encoder, partition
    self._encoders = personal_models.PersonalEncoders(encoder, model)
    self._evaluation = None if task.why_unlabelled() else self._build_evaluation()

  def _build_evaluation(self) -> personal_encoders.PersonalEvaluation:
    """Deals the test examples; does not encode yet."""
    config, task, partition = self._config, self._task, self._partition
    labelled = np.flatnonzero(task.test.label >= 0)
    dealt = self.deal(task.test.label[labelled], task.test.case[labelled])
    tested = collections.OrderedDict((k, labelled[own]) for k, own in dealt.items())
    source = data.source_of(config, task)
    federated = None
    if method_names.FEDERATED_LINEAR in (config.evaluation.personal or ()):
      federated = evaluation_clients.probe(
        config, task, partition, learning.FederatedLinear()
      )
    return personal_encoders.PersonalEvaluation(
      data.client_examples(config, task, task.train, partition, source),
      data.client_examples(
        config, task, task.test, tested, self._sources(source, tested)
      ),
      partition,
      _some(config, tested),
      num_classes=task.num_classes,
      fractions=config.evaluation.label_fractions,
      seed=config.random_seed,
      federated=federated,
      field=self._encoder.field,
      knn_config=evaluation.knn_config(config),
    )

  @property
  def deal_of_global(self) -> scores.Deal | None:
    """Deals test examples for the global encoder; None: they are not the clients'."""
    # If cases are classified, fairness deals positions of cases, not of images. And the
    # global encoder is tested on images as they are, which clients may hold changed.
    text = data.partition_text(self._config, self._task)
    return None if self._task.case_level or spec.changes_images(text) else self.deal

  def deal(self, labels: np.ndarray, cases: np.ndarray) -> Mapping[str, np.ndarray]:
    """Deals test examples like the training examples (`scores.Deal`).

    Args:
      labels: int [n], labels of the test examples.
      cases: Not used: images are dealt one by one.
    """
    del cases
    return matching.deal_matching(
      self._partition,
      self._task.train.label,
      labels,
      np.random.default_rng([self._config.random_seed, _DEALING]),
    )

  def _sources(
    self, source: np.ndarray | None, tested: partitions.Partition
  ) -> np.ndarray | None:
    """Returns the source of each test example, if the training examples have one."""
    if source is None:
      return None
    rng = np.random.default_rng([self._config.random_seed, _MATCHING])
    num_tested = len(self._task.test.label)
    return matching.match_sources(self._partition, source, tested, num_tested, rng)

  def during(
    self, folder: run_folder.RunFolder, weights: base.Params, round: int
  ) -> results.Numbers:
    """Evaluates all clients' encoders by kNN.

    Args:
      folder: The run folder.
      weights: Weights of the global model.
      round: Their round.
    """
    return self._evaluate(folder, weights, round, personal_encoders.KNN)

  def finish(
    self, folder: run_folder.RunFolder, weights: base.Params, rounds: int
  ) -> None:
    """Evaluates by the remaining methods, prints a table, and exports encoders.

    Args:
      folder: The run folder.
      weights: Weights of the global model after the last round.
      rounds: Number of the last round.
    """
    if self._evaluation is not None:
      known = results.read(folder.path, rounds)
      methods = [
        method
        for method in (
          *personal_encoders.KNN,
          *(self._config.evaluation.personal or ()),
        )
        if not has(known, method)
      ]
      if methods:
        found = self._evaluate(folder, weights, rounds, methods)
        name = self._config.title
        results.write(folder.path, rounds, name, {name: found})
        known.update(found)
      print(table(known))
    for client_id in self._config.evaluation.export_clients:
      self._export(folder, weights, rounds, client_id)

  def _evaluate(
    self,
    folder: run_folder.RunFolder,
    weights: base.Params,
    round: int,
    methods: Sequence[str],
  ) -> results.Numbers:
    if self._evaluation is None:
      return collections.OrderedDict()
    encoder_of = functools.partial(self._encoders.encode, weights)
    accuracies = self._evaluation.evaluate(encoder_of, methods)
    return write(folder, round, accuracies)

  def _export(
    self,
    folder: run_folder.RunFolder,
    weights: base.Params,
    rounds: int,
    client_id: str,
  ) -> None:
    """Writes a client's encoder and its card to `clients/CLIENT_ID`."""
    encoder = self._encoder
    params = self._encoders.params(weights, client_id)
    more: dict[str, object] = {'client': client_id}
    if self._config.is_private:
      more['privacy'] = {'promise': _NOT_PRIVATE}
    card = encoder_card.build(self._config, self._task, encoder, rounds, more)
    path = folder.save_encoder(encoder.to_keras(params), card, client_id)
    print(f'Encoder of {client_id}: {path}')


def _some(
  config: run_config.RunConfig, tested: Mapping[str, np.ndarray]
) -> Mapping[str, np.ndarray]:
  """Draws as many of the clients with test examples as the run says."""
  wanted = config.evaluation.personal_clients
  having = [client_id for client_id, own in tested.items() if len(own)]
  if wanted is None or wanted >= len(having):
    return tested
  rng = np.random.default_rng([config.random_seed, _CHOOSING])
  drawn = set(rng.permutation(having)[:wanted].tolist())
  return collections.OrderedDict((k, v) for k, v in tested.items() if k in drawn)


def write(
  folder: run_folder.RunFolder, round: int, accuracies: personal_encoders.Accuracies
) -> results.Numbers:
  """Writes the accuracies of clients to `clients.csv`.

  Rows of the same round by other methods remain. Rows of later rounds are from a run
  that was killed, and are removed.

  Args:
    folder: The run folder.
    round: The round whose encoders were evaluated.
    accuracies: Accuracies of the clients.

  Returns:
    Their mean and spread, by name.
  """
  path = folder.path / csv_lib.CLIENTS
  file = csv_lib.Table(path)
  rows: dict[str, dict[str, csv_lib.Cell]] = collections.OrderedDict()
  for known in file.rows():
    if known['round'] == str(round):
      rows[known[csv_lib.CLIENT]] = {k: v for k, v in known.items() if k != 'round'}
  for name, of_clients in accuracies.items():
    for client_id, accuracy in of_clients.items():
      row = rows.setdefault(client_id, {csv_lib.CLIENT: client_id})
      row[name + _ACCURACY] = accuracy
  file.replace(round, rows.values())
  return personal_encoders.summarize(accuracies)


def table(numbers: results.Numbers) -> str:
  """Lays out personal accuracies: a row for each method and share of the labels.

  Args:
    numbers: Numbers of a run, with the global encoder's as `fairness/...`.
  """
  rows = []
  for name, value in numbers.items():
    if name.startswith('personal/') and name.endswith(_ACCURACY):
      method, share = name.removeprefix('personal/').removesuffix(_ACCURACY).split('/')
      row = {
        'personal': _TITLES[method],
        'labels': results.labels(share, numbers),
        'clients': int(numbers['personal/clients']),
        'mean': value,
        'deviation': numbers[f'{name}/std'],
        'worst decile': numbers[f'{name}/worst_decile'],
      }
      of_global = numbers.get(f'fairness/{method}/{share}/accuracy/mean')
      rows.append(row if of_global is None else {**row, 'global mean': of_global})
  names = ('mean', 'deviation', 'worst decile', 'global mean')
  shown = [name for name in names if any(name in row for row in rows)]
  return plain_text.text(
    rows, ['personal', 'labels', 'clients', *shown], percent=tuple(shown)
  )


def has(numbers: results.Numbers, method: str) -> bool:
  """Returns whether a method is among the numbers of a run.

  Args:
    numbers: Numbers of the run.
    method: One of `personal_encoders.METHODS`.
  """
  prefix = f'personal/{method}/'
  return any(name.startswith(prefix) for name in numbers)
