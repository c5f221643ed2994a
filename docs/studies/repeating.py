"""Repeats the rounds of a run, and compares clients' models with the global model."""

from collections.abc import Mapping, Sequence
import itertools
import pathlib
from typing import Any

import numpy as np
import tensorflow as tf

from binaries.building import algorithms
from binaries.building import data as building
from binaries.building import encoders
from binaries.building import objectives
from binaries.building import training
from binaries.config import changing
from binaries.config import checks
from binaries.config import run_config
from binaries.experiment import membership
from docs.studies import drift
from docs.studies import figures
from tasks import task_types
from tff_ssl.algorithms import fedavg
from tff_ssl.encoders import network
from tff_ssl.evaluation import feature_sets
from tff_ssl.federated import phases
from tff_ssl.federated import replay
from tff_ssl.objectives import dual_encoder
from tff_ssl.runs import checkpoints
from tff_ssl.simulation import cohort_sampling

_ALGORITHMS = ('fedavg', 'fedprox')
_STUDIED = 5
# The paper's Figure 9 shows the global model and the models of sources 1 and 3.
_MAPPED = (0, 2)
OUTPUT = 'features'


def study(
  folder: pathlib.Path,
  given: Mapping[str, Sequence[str] | str | None],
  wanted: Sequence[int],
  most_clients: int,
  most_images: int,
) -> figures.Study:
  """Repeats the rounds of a run, and compares models after some of them.

  Args:
    folder: The run folder.
    given: Where its data are; see `changing.of_folder`.
    wanted: Rounds, from 1, after which models are compared; none: five, to the last.
    most_clients: Number of a cohort's clients to compare, at most.
    most_images: Number of test images whose features are compared, at most.

  Raises:
    ValueError: If the run is of another algorithm, or its data have changed.
  """
  config = _read(folder, given)
  last = config.rounds
  wanted = wanted or np.unique(np.linspace(1, last, _STUDIED).round().astype(int))
  if max(wanted) > last:
    raise ValueError(f'study_rounds has {max(wanted)}; {folder} has {last} rounds.')
  task, cohorts, data = _data(folder, config)
  models = _Models(config, task, most_images)
  objective = objectives.build(config, models.encoder, task)
  rounds = replay.Replay(
    fedavg.fedavg(
      objective, training.server_optimizer(config), training.client_config(config)
    )
  )
  state, result = rounds.initialize(), figures.Study(folder.name, [], {})
  for number in range(1, int(max(wanted)) + 1):
    cohort = [name for name in cohorts(number - 1) if data.num_examples(name)]
    examples = [data.examples(data.positions(name)) for name in cohort]
    state, locals_, _ = rounds.next(state, examples)
    if number in wanted:
      print(f'{folder}: models after round {number} of {last}', flush=True)
      own = dict(zip(cohort[:most_clients], locals_, strict=False))
      result.rows.extend(models.compare(number, state, own))
  names = [name for k, name in enumerate(own) if k in _MAPPED] or list(own)[:1]
  result.map.update(models.map(state, {name: own[name] for name in names}))
  _tell_how_exact(folder, state, int(max(wanted)))
  return result


def _read(
  folder: pathlib.Path, given: Mapping[str, Sequence[str] | str | None]
) -> run_config.RunConfig:
  """Returns the configuration of a run whose rounds can be repeated."""
  config = changing.of_folder(folder, given)
  if config.method.kind not in _ALGORITHMS:
    raise ValueError(
      f'{folder} is a run of {config.method.kind}; a study needs a run of '
      f'{" or ".join(_ALGORITHMS)}.'
    )
  if changing.read(folder, keep_paths=True).init_from:
    raise ValueError(
      f'{folder} started from another run; a study repeats rounds from the first.'
    )
  if config.is_private:
    raise ValueError(
      f'{folder} is a run with --aggregation={config.aggregation.kind}; a study '
      'repeats rounds without clipping and noise, and would reach other models.'
    )
  changing.check_given_again(folder, config, of_data=True)
  checks.check_data(config)
  return config


def _data(
  folder: pathlib.Path, config: run_config.RunConfig
) -> tuple[task_types.Task, Any, Any]:
  """Returns the task of a run, its cohorts by round, and its clients' data."""
  task = building.load_task(config)
  membership.check_same(folder, task, 'its rounds cannot be repeated')
  partition = building.partition(config, task)
  labelled = config.objective.labelled
  data = building.client_data_of(config, task, partition, labelled)
  size = building.cohort_size(config, len(partition))
  return task, cohort_sampling.Cohorts(data.ids, size, config.random_seed), data


def _tell_how_exact(
  folder: pathlib.Path, state: phases.ServerState, round: int
) -> None:
  """Prints the repeated model's distance from the run's, if a checkpoint has that."""
  # Somebody who needed the space may have removed the checkpoints.
  if not any((folder / 'checkpoints').glob('*.npz')):
    return
  saved, params = checkpoints.read_newest(folder / 'checkpoints', algorithms.TRAINABLE)
  if saved != round:
    return
  mine = state.global_model_weights.trainable
  gap = sum(float(np.sum((mine[name].numpy() - params[name]) ** 2)) for name in params)
  size = sum(float(np.sum(value**2)) for value in params.values())
  print(
    f'{folder}: after round {round} the repeated weights differ from the checkpoint by '
    f'{np.sqrt(gap / size):.1e} of their norm.'
  )


class _Models:
  """Compares a run's encoders on some test images."""

  def __init__(
    self, config: run_config.RunConfig, task: task_types.Task, most_images: int
  ):
    self.encoder = encoders.build(config, task)
    self._prefix = dual_encoder.encoder_prefix(self.encoder)
    inputs = task.test[self.encoder.field]
    # The same images for all runs of a task.
    order = np.random.default_rng(0).permutation(len(inputs))
    self._inputs = tf.constant(inputs[np.sort(order[:most_images])])

  def compare(
    self, number: int, state: phases.ServerState, own: Mapping[str, Any]
  ) -> list[figures.Row]:
    """Returns the distances and similarities after a round.

    Args:
      number: Number of the round, from 1.
      state: The server state after it.
      own: Clients' models, by client id.
    """
    center = self._global(state)
    encoders = {
      name: network.select(model, self._prefix) for name, model in own.items()
    }
    pairs = [(figures.GLOBAL, center, name, model) for name, model in encoders.items()]
    pairs += [
      (*one, *other) for one, other in itertools.combinations(encoders.items(), 2)
    ]
    rows = [
      figures.Row(number, figures.DISTANCE, a, b, layer, value)
      for a, first, b, second in pairs
      for layer, value in drift.distances(
        self._trained(first), self._trained(second)
      ).items()
    ]
    layers = self._layers(center)
    for name, model in encoders.items():
      for layer, value in self._layers(model).items():
        similarity = drift.linear_cka(layers[layer], value)
        rows.append(
          figures.Row(number, figures.CKA, figures.GLOBAL, name, layer, similarity)
        )
    return rows

  def map(
    self, state: phases.ServerState, own: Mapping[str, Any]
  ) -> dict[str, np.ndarray]:
    """Returns features of the global and the clients' models in one plane, [n, 2]."""
    models = {figures.GLOBAL: self._global(state)}
    models |= {name: network.select(model, self._prefix) for name, model in own.items()}
    return drift.shared_projection(
      {name: self._layers(model)[OUTPUT] for name, model in models.items()}
    )

  def _global(self, state: phases.ServerState) -> network.Params:
    weights = state.global_model_weights
    everything = {**weights.trainable, **weights.non_trainable}
    return network.select(everything, self._prefix)

  def _trained(self, params: network.Params) -> dict[str, np.ndarray]:
    return {name: params[name].numpy() for name in self.encoder.specs}

  def _layers(self, params: network.Params) -> dict[str, np.ndarray]:
    """Returns the images' features by layer, the encoder's output last."""
    return {name: value.numpy() for name, value in self._run(dict(params)).items()}

  @tf.function(autograph=False)
  def _run(self, params: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
    taps: dict[str, tf.Tensor] = {}
    output = self.encoder.infer(params, feature_sets.scale(self._inputs), taps)
    return {**taps, OUTPUT: output}
