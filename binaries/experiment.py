"""One run of one algorithm on one task: what all training binaries have in common."""

import collections
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
import contextlib
import dataclasses
from typing import Any

from binaries import common
from binaries import evaluation
from binaries import evaluation_flags
from binaries import partition_flags
from binaries import results
from binaries import run_parts
from tasks import task as task_lib
from tff_ssl.encoders import network
from tff_ssl.federated import processes
from tff_ssl.objectives import base
from tff_ssl.objectives import context as context_lib
from tff_ssl.objectives import dual_encoder
from tff_ssl.partition import describe
from tff_ssl.runtime import alarm
from tff_ssl.runtime import context
from tff_ssl.runtime import loop
from tff_ssl.runtime import run_config
from tff_ssl.runtime import run_folder
from tff_ssl.runtime import simulation
from tff_ssl.runtime import stateful_rounds

# Flags that may change when a run is resumed.
MAY_DIFFER = (
  *common.MAY_DIFFER,
  *evaluation_flags.MAY_DIFFER,
  'personal_methods',
  'export_clients',
)


@dataclasses.dataclass(frozen=True)
class Experiment:
  """What a binary runs.

  Attributes:
    name: Of the algorithm, in tables and on the encoder's card.
    build_objective: (task, encoder) -> what is minimised.
    build_algorithm: (objective, element_spec) -> what the round loop runs; where
      clients are numbered, (objective, element_spec, how many there are).
    federated: Whether its rounds take cohorts of clients; else batches drawn from all
      examples.
    label_share: Share of the training labels that it is given; None: it sees no label.
    build_personal: Builds clients' own encoders, where they have any.
    numbered: Whether examples name the number of their client.
  """

  name: str
  build_objective: Callable[[task_lib.Task, network.Network], Any]
  build_algorithm: Callable[..., Any]
  federated: bool = True
  label_share: float | None = None
  build_personal: Callable[[run_parts.Parts], run_parts.Personal] | None = None
  numbered: bool = False


def check_flags() -> None:
  """Refuses what can be seen to be wrong without data.

  Raises:
    ValueError: If a flag is missing, out of range, or not that of the folder's run.
  """
  if not common.RUN_DIR.value:
    raise ValueError('run_dir is not given; it must name a folder, new or of this run.')
  common.check_flags()
  evaluation_flags.check()
  run_config.check_flags(common.RUN_DIR.value, common.flag_values(), MAY_DIFFER)


@dataclasses.dataclass(frozen=True)
class Prepared:
  """An experiment with its data and networks.

  Attributes:
    name: Of the algorithm, in tables and on the encoder's card.
    task: What it runs on.
    partition: What the clients are, for `partition.csv`.
    encoder: What is evaluated and left behind.
    objective: What clients minimise, for the alarm.
    algorithm: What the round loop runs.
    cohort_fn: Round -> the data of `algorithm.next`.
    evaluator: Evaluates.
    federated: Whether the algorithm runs TFF computations.
    evaluate: (state, round) -> named numbers, after `evaluate_every` rounds and at the
      end; None: all methods of the flags.
    evaluate_every: None: as the flags say.
    personal: Clients' own encoders, where they have any.
  """

  name: str
  task: task_lib.Task
  partition: describe.PartitionReport
  encoder: network.Network
  objective: Any
  algorithm: Any
  cohort_fn: Callable[[int], Any]
  evaluator: evaluation.Evaluator
  federated: bool = True
  evaluate: loop.EvaluateFn | None = None
  evaluate_every: int | None = None
  personal: run_parts.Personal | None = None

  def weights(self, state: Any) -> network.Params:
    """Returns the parameters that are the result."""
    found = self.algorithm.get_model_weights(state)
    # Population statistics of batch norm are not trainable.
    return collections.OrderedDict(**found.trainable, **found.non_trainable)


def run(experiment: Experiment) -> None:
  """Runs an experiment, or goes on with it.

  Args:
    experiment: What is run; the flags say on what, and for how long.
  """
  task = common.load_task()
  partition = common.build_partition(task)
  report = describe.describe(partition, task.train.label, task.num_classes)
  print(report.line(), flush=True)
  data = partition_flags.build_client_data(
    task, partition, labelled=experiment.label_share is not None
  )
  if experiment.numbered:
    data = data.numbered(context_lib.CLIENT)
  clients = simulation.Clients(data, num_packs=common.PACKS.value)
  encoder = common.build_encoder(task)
  spec = clients.element_spec if experiment.federated else data.element_type_structure
  objective = experiment.build_objective(task, encoder)
  counted = (len(partition),) if experiment.numbered else ()
  algorithm = experiment.build_algorithm(objective, spec, *counted)
  take: Callable[[Iterable[str]], Any] = clients.cohort
  if isinstance(algorithm, processes.StatefulProcess):
    algorithm = stateful_rounds.StatefulRounds(algorithm, clients)
    take = algorithm.cohort
  cohort_fn = run_parts.build_cohorts(
    task,
    data,
    partition,
    take if experiment.federated else None,
    experiment.label_share,
  )
  logits = objective.logits if isinstance(objective, base.Classifier) else None
  parts = run_parts.Parts(task, encoder, partition, data, objective, algorithm)
  personal = experiment.build_personal and experiment.build_personal(parts)
  # Positions of a deal are of cases where these are classified, not of images.
  deal = personal.deal if personal and not task.case_level else None
  execute(
    Prepared(
      experiment.name,
      task,
      report,
      encoder,
      objective,
      algorithm,
      cohort_fn,
      evaluation.Evaluator(task, encoder, deal=deal, logits=logits),
      experiment.federated,
      personal=personal,
    )
  )


def execute(prepared: Prepared) -> None:
  """Runs what is prepared, or goes on with it, saves it, then evaluates it.

  Args:
    prepared: What is run.
  """
  path, rounds = common.RUN_DIR.value, common.ROUNDS.value
  evaluator, evaluate_every = prepared.evaluator, prepared.evaluate_every
  personal = prepared.personal

  def keep(state: Any) -> None:
    params = network.select(prepared.weights(state), dual_encoder.ENCODER)
    results.save_encoder(
      folder, prepared.task, prepared.encoder, params, prepared.name, rounds
    )

  def evaluate(state: Any, round: int) -> Mapping[str, float]:
    if round < rounds:
      return numbers_of(state, round)
    with _after_training(path):
      return numbers_of(state, round)

  def numbers_of(state: Any, round: int) -> Mapping[str, float]:
    if prepared.evaluate is not None:
      return prepared.evaluate(state, round)
    weights = prepared.weights(state)
    numbers = evaluator.evaluate_model(weights)
    if personal is not None:
      numbers.update(personal.during(folder, weights, round))
    return numbers

  with run_folder.RunFolder(
    path, common.flag_values(), prepared.task.fingerprint(), MAY_DIFFER
  ) as folder:
    prepared.partition.write_csv(folder.path / 'partition.csv')
    done = max(folder.checkpoints.rounds(), default=0)
    if 0 < done < rounds:
      print(f'{path}: going on after round {done} of {rounds}', flush=True)
    with _open_context(prepared.federated, folder) as execution:
      state = loop.run(
        prepared.algorithm,
        prepared.cohort_fn,
        folder,
        rounds,
        evaluate,
        common.EVALUATE_EVERY.value if evaluate_every is None else evaluate_every,
        common.CHECKPOINT_EVERY.value,
        execution=execution,
        alarm=_build_alarm(prepared.objective),
        keep_fn=keep,
      )
      weights = prepared.weights(state)
      if personal is not None:
        with _after_training(path):
          personal.finish(folder, weights, prepared.name, rounds)
    params = network.select(weights, dual_encoder.ENCODER)
    with _after_training(path):
      known = results.read(path, rounds)
      evaluation.report(evaluator, path, rounds, prepared.name, params, known)
  print(f'Run folder: {path}')


@contextlib.contextmanager
def _after_training(path: str) -> Iterator[None]:
  """Says of bad input to an evaluation that the training is saved all the same."""
  try:
    yield
  except (ValueError, OSError) as error:
    raise ValueError(
      f'The training is finished and saved, with encoder.keras, in {path}, but its '
      f'evaluation failed, which the same command repeats: {error}'
    ) from error


def _build_alarm(objective: Any) -> alarm.CollapseAlarm | None:
  """Builds what watches the encodings, of objectives that can collapse."""
  if not isinstance(objective, base.Watched):
    return None
  return alarm.CollapseAlarm(objective.collapsed_below)


def _open_context(
  federated: bool, folder: run_folder.RunFolder
) -> contextlib.AbstractContextManager[context.Context | None]:
  """Opens what executes TFF's computations; centralized training has none."""
  if not federated:
    return contextlib.nullcontext()
  return context.local(
    worker_address=common.WORKER_ADDRESS.value, log_path=folder.worker_log
  )


def refuse_strays(takers: dict[str, Collection[str]], chooser: str) -> None:
  """Refuses flags that were given where they would do nothing.

  Args:
    takers: By the name of a flag, the values of `chooser` with which it does something.
    chooser: The name of the flag that decides.

  Raises:
    ValueError: If there is one.
  """
  for name, values in takers.items():
    common.refuse_stray(name, chooser, values)
