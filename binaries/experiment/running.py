"""One run of one algorithm on one task: the common part of all training binaries."""

import collections
from collections.abc import Callable, Collection, Mapping, Sequence
import contextlib
import dataclasses
from typing import Any

import numpy as np

from binaries.experiment import evaluating
from binaries.experiment import membership
from binaries.experiment import personal
from binaries.experiment import private
from binaries.experiment import results
from binaries.experiment import starting
from binaries.experiment import telling
from binaries.experiment import two_towers
from binaries.flags import common
from binaries.flags import dealing
from binaries.flags import evaluation
from binaries.flags import fitting
from binaries.flags import hosts
from binaries.flags import methods
from binaries.flags import own_data
from binaries.flags import privacy
from binaries.flags import program
from binaries.flags import tracking
from binaries.methods import algorithms
from binaries.methods import choice
from tasks import task_types
from tff_ssl.encoders import network
from tff_ssl.encoders import precision
from tff_ssl.evaluation import label_fractions
from tff_ssl.execution import contexts
from tff_ssl.execution import partial_rounds
from tff_ssl.federated import processes
from tff_ssl.objectives import contextual
from tff_ssl.objectives import dual_encoder
from tff_ssl.partition import describe
from tff_ssl.partition import partitions
from tff_ssl.reporting import graph
from tff_ssl.reporting import model_card
from tff_ssl.runs import alarms as alarms_lib
from tff_ssl.runs import loop
from tff_ssl.runs import run_config
from tff_ssl.runs import run_folder
from tff_ssl.runs import stateful_rounds
from tff_ssl.simulation import client_data
from tff_ssl.simulation import cohort_sampling
from tff_ssl.simulation import simulated_clients
from tff_ssl.storage import files

# Operations of the kNN during training, as a share of the training's own.
_WATCHING = 0.02


def check_flags(chosen: choice.Choice) -> None:
  """Refuses flags that are wrong, as far as that shows without data.

  Args:
    chosen: The method to run.

  Raises:
    ValueError: If a flag is missing, out of range, or differs from the folder's run.
    OSError: If the folder cannot be made.
  """
  program.check_required({common.RUN_DIR.name: 'a folder, new or of this run'})
  common.check_flags()
  precision.check(common.PRECISION.value)
  fitting.check()
  methods.check()
  hosts.check()
  evaluation.check()
  files.check_folder(common.RUN_DIR.value)
  starting.check(common.RUN_DIR.value, chosen)
  run_config.check_flags(
    common.RUN_DIR.value, chosen.values(), choice.MAY_DIFFER, chosen.may_grow()
  )


@dataclasses.dataclass(frozen=True)
class Prepared:
  """An experiment with its data and networks.

  Attributes:
    chosen: The method.
    task: The task it runs on.
    partition: Description of the clients, for `partition.csv`.
    encoder: The network that is evaluated and saved.
    objective: What clients minimise, for the alarm.
    algorithm: What the round loop runs.
    cohort_fn: Round -> the data of `algorithm.next`.
    evaluator: Evaluates the encoder.
    evaluate: (state, round) -> named numbers, every `evaluate_every` rounds and at the
      end; None: all methods of the flags.
    evaluate_every: Rounds between evaluations; None: as the flags say.
    own: Clients' own encoders, if they have any.
    clip_norms: Norms to which a private run clips clients' values, by name.
  """

  chosen: choice.Choice
  task: task_types.Task
  partition: describe.PartitionReport
  encoder: network.Network
  objective: Any
  algorithm: Any
  cohort_fn: Callable[[int], Any]
  evaluator: evaluating.Evaluator
  evaluate: loop.EvaluateFn | None = None
  evaluate_every: int | None = None
  own: personal.Personal | None = None
  clip_norms: Mapping[str, object] = dataclasses.field(default_factory=dict)

  @property
  def name(self) -> str:
    """Name of the method, in tables and on the encoder's card."""
    return self.chosen.title

  def weights(self, state: Any) -> network.Params:
    """Returns the result's parameters, and what else clients' own models need."""
    found = self.algorithm.get_model_weights(state)
    of_clients = self.chosen.algorithm.of_clients
    own = {} if of_clients is None else of_clients(state)
    # Population statistics of batch norm are not trainable.
    return collections.OrderedDict(**found.trainable, **found.non_trainable, **own)

  def of_encoder(self, weights: network.Params) -> network.Params:
    """Returns the parameters of the encoder that is evaluated and saved."""
    return network.select(weights, dual_encoder.encoder_prefix(self.encoder))


def run(program: str) -> None:
  """Runs the experiment that the flags name, or resumes it.

  Args:
    program: The program, whose part of the table of methods is offered.
  """
  # All errors in the flags come to light before the run folder is made.
  chosen = choice.read(program)
  check_flags(chosen)
  execute(prepare(chosen))


def prepare(chosen: choice.Choice) -> Prepared:
  """Loads the data and builds what is run.

  Args:
    chosen: The method.
  """
  algorithm, share = chosen.algorithm, chosen.label_share
  task = common.load_task()
  private.check_task(task)
  if chosen.objective.labelled and not np.any(task.train.label >= 0):
    raise ValueError(
      f'The task {task.name!r} has no train labels; {chosen.title} learns from them.'
    )
  partition = common.build_partition(task)
  report = describe.describe(partition, task.train.label, task.num_classes)
  print(report.line(), flush=True)
  telling.tell_of_whole_cohorts(len(partition))
  data = dealing.build_client_data(task, partition, labelled=share is not None)
  if algorithm.numbered:
    data = data.numbered(contextual.CLIENT)
  sizes = telling.sizes_in_loss(chosen, report)
  clients = simulated_clients.Clients(data, num_packs=hosts.num_packs())
  encoder = common.build_encoder(task)
  spec = clients.element_spec if algorithm.federated else data.element_type_structure
  objective = chosen.objective.of_task(encoder, task)
  share_bound, of_statistics = _sent_of_encodings(algorithm, objective)
  aggregation = privacy.build(sizes, share_bound)
  clip_norms = privacy.clip_norms(sizes, share_bound)
  telling.warn_of_batches(
    chosen, objective, sizes if algorithm.federated else [_batch_of_all(sizes)]
  )
  counted = (len(partition),) if algorithm.numbered else ()
  process, graph = algorithm.build(objective, *counted), None
  if algorithm.federated:
    process = processes.build(process, spec, aggregation)
    graph = process.graph

  def take(client_ids: Collection[str]) -> Any:
    # If cohorts have random sizes, one may be empty.
    return clients.cohort(client_ids) if client_ids else clients.empty_cohort()

  if algorithm.federated:
    process = in_parts(process)
  if graph is not None and graph.algorithm.is_stateful:
    process = stateful_rounds.StatefulRounds(process, clients)
    take = process.cohort
  own = None
  if (build_own := chosen.build_personal) is not None:
    parts = personal.Parts(task, encoder, partition)
    own = personal.Personal(parts, build_own(process, objective, data))
  process = private.counted(process, graph, len(partition), clip_norms, of_statistics)
  cohort_fn = _build_cohorts(
    task, data, partition, take if algorithm.federated else None, share
  )
  logits = objective.logits
  # If cases are classified, fairness deals positions of cases, not of images.
  deal = own.deal if own and not task.case_level else None
  return Prepared(
    chosen,
    task,
    report,
    encoder,
    objective,
    process,
    cohort_fn,
    two_towers.build_evaluator(
      task, encoder, getattr(objective, 'model', None), deal=deal, logits=logits
    ),
    own=own,
    clip_norms=clip_norms,
  )


def _sent_of_encodings(
  algorithm: algorithms.Algorithm, objective: Any
) -> tuple[float | None, tuple[str, ...]]:
  """Returns the bound on an example's share of statistics, and their metrics' names."""
  if not algorithm.sends_encodings:
    return None, ()
  of_none = objective.no_statistics()
  return objective.share_bound, tuple(objective.summarize_statistics(of_none))


def execute(prepared: Prepared) -> None:
  """Runs or resumes a prepared experiment, saves its encoder, then evaluates it.

  Args:
    prepared: The experiment.
  """
  path, rounds, own = common.RUN_DIR.value, common.ROUNDS.value, prepared.own
  evaluator, evaluate_every = prepared.evaluator, prepared.evaluate_every
  starting.check_data(path, prepared.task)
  start = starting.build(prepared.encoder)
  alarms, mixing = alarms_lib.for_objective(prepared.objective), None
  if prepared.chosen.algorithm.mixing is not None:
    mixing = prepared.chosen.algorithm.mixing()
    alarms.append(mixing)

  def keep(state: Any, round: int = rounds) -> None:
    params = prepared.of_encoder(prepared.weights(state))
    promised = private.promised(prepared.algorithm, prepared.clip_norms)
    results.save_encoder(
      folder, prepared.task, prepared.encoder, params, prepared.name, round, promised
    )

  def evaluate(state: Any, round: int) -> Mapping[str, float]:
    if round < rounds:
      return numbers_of(state, round)
    with telling.after_training(path):
      return numbers_of(state, round)

  def numbers_of(state: Any, round: int) -> Mapping[str, float]:
    if prepared.evaluate is not None:
      return prepared.evaluate(state, round)
    weights = prepared.weights(state)
    numbers = evaluator.evaluate_model(weights)
    if (several := prepared.chosen.algorithm.models) is not None:
      models, known = several(weights), (weights, numbers)
      numbers.update(evaluator.evaluate_several(models, known))
    if own is not None:
      numbers.update(own.during(folder, weights, round))
    return numbers

  watch, watch_every = _build_watch(prepared)
  with run_folder.RunFolder(
    path,
    prepared.chosen.values(),
    prepared.task.fingerprint(),
    choice.MAY_DIFFER,
    prepared.chosen.may_grow(),
    tracking.TRACKERS.value,
  ) as folder:
    prepared.partition.write_csv(folder.path / 'partition.csv')
    own_data.write_intake(prepared.task, folder.path)
    membership.write(folder.path, prepared.task)
    if (build_graph := prepared.chosen.algorithm.topology) is not None:
      graph.write(build_graph(prepared.partition.clients), folder.path)
    done = max(folder.checkpoints.rounds(), default=0)
    if 0 < done < rounds:
      print(f'{path}: resuming after round {done} of {rounds}', flush=True)
    with (
      telling.telling_what_is_saved(folder, rounds),
      _open_context(prepared.chosen.algorithm.federated, folder) as execution,
      private.keeping_what_is_paid_for(keep, path),
    ):
      state = loop.run(
        prepared.algorithm,
        prepared.cohort_fn,
        folder,
        rounds,
        evaluate,
        common.EVALUATE_EVERY.value if evaluate_every is None else evaluate_every,
        common.CHECKPOINT_EVERY.value,
        execution=execution,
        alarms=alarms,
        keep_fn=keep,
        start_fn=start,
        watch_fn=watch,
        watch_every=watch_every,
      )
      rows = folder.metrics.rows()
      if mixing is not None:
        mixing.finish(rows)
      telling.warn_of_no_pseudo_label(rows)
      telling.warn_of_clipped_values(rows)
      weights = prepared.weights(state)
      if own is not None:
        with telling.after_training(path):
          own.finish(folder, weights, prepared.name, rounds)
    with telling.after_training(path):
      known = results.read(path, rounds) or evaluator.evaluate_model(weights)
      evaluating.report(evaluator, path, rounds, prepared.name, known)
    model_card.write(path)
  print(f'Run folder: {path}')


def _build_watch(prepared: Prepared) -> tuple[loop.EvaluateFn | None, int]:
  """Returns the kNN scoring during training, and the rounds between two scorings."""
  every = evaluation.KNN_EVERY.value
  watched = None if every == 0 else prepared.evaluator.watched()
  if watched is None:
    return None, 0

  def watch(state: Any, round: int) -> Mapping[str, float]:
    del round
    found = prepared.algorithm.get_model_weights(state)
    weights = collections.OrderedDict(**found.trainable, **found.non_trainable)
    params = prepared.of_encoder(weights)
    return prepared.evaluator.watch(watched, params)

  if every is None:
    examples = _batch_of_all(prepared.partition.client_sizes.tolist())
    every = watched.rounds_between(examples, _WATCHING)
  return watch, every


def in_parts(process: Any) -> Any:
  """Returns a process, with its rounds in parts if `--parts` is given.

  Args:
    process: A federated process.
  """
  parts = hosts.PARTS.value
  return process if parts is None else partial_rounds.in_parts(process, parts)


def _batch_of_all(sizes: Sequence[int]) -> int:
  """Returns the number of examples in a round of centralized training."""
  # As many as the federated algorithms see on average.
  return max(1, round(common.cohort_size(len(sizes)) * float(np.mean(sizes))))


def _open_context(
  federated: bool, folder: run_folder.RunFolder
) -> contextlib.AbstractContextManager[contexts.Context | None]:
  """Opens the context for TFF's computations; centralized training needs none."""
  if not federated:
    return contextlib.nullcontext()
  return hosts.open_context(folder.worker_log)


def _build_cohorts(
  task: task_types.Task,
  data: client_data.ArrayClientData,
  partition: partitions.Partition,
  take: Callable[[Collection[str]], Any] | None,
  label_share: float | None,
) -> Callable[[int], Any]:
  """Returns the function from a round to its data, which depend only on round and seed.

  Args:
    task: The task to train on.
    data: The clients' data.
    partition: The clients' positions in the data.
    take: Client ids -> the input of the algorithm; None: batches drawn from all.
    label_share: Share of the clients' labelled examples from which batches are drawn;
      None: all.
  """
  seed = common.SEED.value
  cohort_size = common.cohort_size(len(partition))
  cohorts = private.build_cohorts(data.ids, cohort_size, seed)
  if take is not None:
    return lambda round: take(cohorts(round))
  pool = np.sort(np.concatenate(list(partition.values())))
  if label_share is not None:
    # Only of the clients' examples: their upper bound must have seen nothing else.
    own = task.train.label[pool], label_share, seed
    pool = pool[label_fractions.label_fraction(*own, groups=task.train.case[pool])]
  size = _batch_of_all([len(positions) for positions in partition.values()])
  batches = cohort_sampling.Batches(pool, size, seed)
  return lambda round: [data.create_tf_dataset_for_positions(batches(round))]
