"""Experiments whose server has no labels: their data and networks, ready to run."""

import collections
from collections.abc import Callable, Collection, Mapping, Sequence
import dataclasses
from typing import Any, NamedTuple

import numpy as np

from binaries.building import aggregation
from binaries.building import algorithms
from binaries.building import data as building_data
from binaries.building import encoders
from binaries.building import evaluation
from binaries.building import execution
from binaries.building import objectives
from binaries.config import run_config
from binaries.experiment import choosing_precision
from binaries.experiment import evaluating
from binaries.experiment import init_from
from binaries.experiment import messages
from binaries.experiment import personal
from binaries.experiment import private
from binaries.experiment import private_quality
from binaries.experiment import quality as quality_lib
from binaries.experiment import two_towers
from tasks import task_types
from tff_ssl.aggregators import aggregations
from tff_ssl.encoders import network
from tff_ssl.encoders import parameter_names
from tff_ssl.evaluation import label_fractions
from tff_ssl.execution import partial_rounds
from tff_ssl.federated import phase_graph
from tff_ssl.federated import processes
from tff_ssl.objectives import contextual
from tff_ssl.objectives import dual_encoder
from tff_ssl.partition import describe
from tff_ssl.partition import partitions
from tff_ssl.runs import loop
from tff_ssl.runs import stateful_rounds
from tff_ssl.simulation import client_data
from tff_ssl.simulation import cohort_sampling
from tff_ssl.simulation import simulated_clients


@dataclasses.dataclass(frozen=True)
class Experiment:
  """A run with its data and networks.

  Attributes:
    config: The run, with its settled values.
    task: The task it runs on.
    partition: Description of the clients, for `partition.csv`.
    encoder: The network that is evaluated and saved.
    objective: What clients minimise, for the alarm.
    algorithm: What the round loop runs.
    cohort_fn: Round -> the data of `algorithm.next`.
    evaluator: Evaluates the encoder.
    evaluate: (state, round) -> named numbers, every `evaluate_every` rounds and at the
      end; None: all methods of the run.
    evaluate_every: Rounds between evaluations; None: as the run says.
    own: Clients' own encoders, if they have any.
    clip_norms: Norms to which a private run clips clients' values, by name.
    quality: Measures the encoder without labels.
    finish: Called once the result is there.
  """

  config: run_config.RunConfig
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
  quality: quality_lib.Quality | None = None
  finish: Callable[[], None] = lambda: None

  def weights(self, state: Any) -> network.Params:
    """Returns the result's parameters, and what else clients' own models need."""
    model = self.algorithm.get_model_weights(state)
    of_clients = algorithms.of(self.config).of_clients
    own = {} if of_clients is None else of_clients(state)
    # Population statistics of batch norm are not trainable.
    return collections.OrderedDict(**model.trainable, **model.non_trainable, **own)

  def of_encoder(self, weights: network.Params) -> network.Params:
    """Returns the parameters of the encoder that is evaluated and saved."""
    return parameter_names.select(weights, dual_encoder.encoder_prefix(self.encoder))


def prepare(config: run_config.RunConfig) -> Experiment:
  """Loads the data and builds what is run.

  Args:
    config: The run, with its settled values.

  Raises:
    ValueError: If the data do not fit it.
  """
  algorithm, federated = algorithms.of(config), config.method.federated
  task = building_data.load_task(config)
  private.check_task(config, task)
  check_labels(config, task)
  partition = building_data.partition(config, task)
  report = describe.describe(partition, task.train.label, task.num_classes)
  print(report.line(), flush=True)
  messages.print_cohort_note(config, len(partition))
  personal.check_exported(config, partition)
  data = building_data.client_data_of(
    config, task, partition, labelled=config.objective.labelled
  )
  if algorithm.numbered:
    data = data.numbered(contextual.CLIENT)
  # Refuses cohorts that there cannot be, before anything is built.
  cohorts = private.build_cohorts(config, data.ids)
  sizes = messages.sizes_in_loss(config, report)
  config = choosing_precision.choose_precision(
    config, task, data.element_type_structure, batch_of_all(config, sizes)
  )
  encoder = init_from.adapted(config, encoders.build(config, task))
  objective = objectives.build(config, encoder, task)
  messages.warn_of_batches(
    config, objective, sizes if federated else [batch_of_all(config, sizes)]
  )
  share_bound, statistics = sent_of_encodings(algorithm, objective)
  combined = aggregation.build(config, sizes, share_bound)
  rounds = _build_rounds(config, objective, data, combined)
  clip_norms = aggregation.clip_norms(
    config, sizes, share_bound, private.clipped(rounds.graph)
  )
  own = None
  if algorithm.personal is not None and config.evaluation.wants_personal:
    models = algorithm.personal(config, rounds.process, objective, data)
    own = personal.Personal(config, task, encoder, partition, models)
  deal = own.deal_of_global if own else None
  model, logits = getattr(objective, 'model', None), objective.logits
  evaluator = two_towers.build_evaluator(
    config, task, encoder, model, deal=deal, logits=logits
  )
  run = private.with_ledger(
    config, rounds.process, rounds.graph, len(partition), statistics
  )
  measured = task, encoder, partition, evaluator.untrained
  return Experiment(
    config,
    task,
    report,
    encoder,
    objective,
    run,
    _build_inputs(config, task, data, partition, cohorts, rounds.take),
    evaluator,
    own=own,
    clip_norms=clip_norms,
    quality=private_quality.build(config, *measured, run, data.ids)
    or quality_lib.build(config, *measured),
  )


class _Rounds(NamedTuple):
  """What computes rounds.

  Attributes:
    process: What the round loop runs, but for a ledger.
    graph: What it was built from; None if it is centralized.
    take: Client ids -> the input of a round; None: rounds take batches drawn from all.
  """

  process: Any
  graph: phase_graph.Graph | None = None
  take: Callable[[Collection[str]], Any] | None = None


def _build_rounds(
  config: run_config.RunConfig,
  objective: Any,
  data: client_data.ArrayClientData,
  combined: aggregations.Aggregation | None,
) -> _Rounds:
  """Builds what computes rounds; `combined` is how clients' values are combined."""
  algorithm = algorithms.of(config)
  population = (len(data.ids),) if algorithm.numbered else ()
  built = algorithm.build(config, objective, *population)
  if not config.method.federated:
    return _Rounds(built)
  clients = simulated_clients.Clients(
    data, num_packs=execution.num_packs(config), as_rows=execution.as_rows(config)
  )
  with execution.tracing(config):
    process = processes.build(built, clients.element_spec, combined)
    parted = in_parts(config, process, data)
  if process.graph.algorithm.is_stateful:
    most_bytes = execution.most_bytes(config)
    stateful = stateful_rounds.StatefulRounds(parted, clients, most_bytes)
    return _Rounds(stateful, process.graph, stateful.cohort)

  def take(client_ids: Collection[str]) -> Any:
    # If cohorts have random sizes, one may be empty.
    return clients.cohort(client_ids) if client_ids else clients.empty_cohort()

  return _Rounds(parted, process.graph, take)


def sent_of_encodings(
  algorithm: algorithms.Algorithm, objective: Any
) -> tuple[float | None, tuple[str, ...]]:
  """Returns the bound on an example's share of statistics, and their metrics' names.

  Args:
    algorithm: Of the run.
    objective: What its clients minimise.
  """
  if not algorithm.sends_encodings:
    return None, ()
  of_none = objective.no_statistics()
  return objective.share_bound, tuple(objective.summarize_statistics(of_none))


def in_parts(
  config: run_config.RunConfig, process: Any, data: client_data.ArrayClientData
) -> Any:
  """Returns a process, with its rounds in parts if the run has any.

  Args:
    config: The run.
    process: A federated process.
    data: Its clients'.
  """
  parts = config.runtime.parts
  if parts is None:
    return process
  return partial_rounds.in_parts(process, parts, data.held)


def check_labels(config: run_config.RunConfig, task: task_types.Task) -> None:
  """Raises ValueError if a run learns from labels that its task lacks.

  Likewise if it cannot be evaluated: before the rounds are built, which takes long.

  Args:
    config: The run.
    task: Its task.
  """
  learns = config.objective.labelled or config.uses('labels')
  if learns and not np.any(task.train.label >= 0):
    raise ValueError(
      f'The task {task.name!r} has no train labels; {config.title} learns from them. '
      'Methods such as --method=dcco of binaries.dcco need none.'
    )
  evaluation.skipped(task)


def batch_of_all(config: run_config.RunConfig, sizes: Sequence[int]) -> int:
  """Returns the number of examples in a round of centralized training.

  Args:
    config: The run.
    sizes: Number of examples of each client.
  """
  # As many as the federated algorithms see on average.
  cohort = building_data.cohort_size(config, len(sizes))
  return max(1, round(cohort * float(np.mean(sizes))))


def _build_inputs(
  config: run_config.RunConfig,
  task: task_types.Task,
  data: client_data.ArrayClientData,
  partition: partitions.Partition,
  cohorts: Callable[[int], Collection[str]],
  take: Callable[[Collection[str]], Any] | None,
) -> Callable[[int], Any]:
  """Returns the function from a round to its data, which depend only on round and seed.

  Args:
    config: The run.
    task: The task to train on.
    data: The clients' data.
    partition: The clients' positions in the data.
    cohorts: Round -> client ids.
    take: Client ids -> the input of the algorithm; None: batches drawn from all.
  """
  if take is not None:
    return lambda round: take(cohorts(round))
  pool = np.sort(np.concatenate(list(partition.values())))
  share, seed = config.label_share, config.random_seed
  if share is not None:
    # Only of the clients' examples: their upper bound must have seen nothing else.
    own = task.train.label[pool], share, seed
    pool = pool[label_fractions.label_fraction(*own, groups=task.train.case[pool])]
  size = batch_of_all(config, [len(positions) for positions in partition.values()])
  batches = cohort_sampling.Batches(pool, size, seed)
  return lambda round: [data.create_tf_dataset_for_positions(batches(round))]
