"""Federated contrastive averaging with dictionary and alignment (FedCA).

Fengda Zhang, Kun Kuang, Long Chen, Zhaoyang You, Tao Shen, Jun Xiao, Yin Zhang, Chao
Wu, Fei Wu, Yueting Zhuang, Xiaolin Li. Federated unsupervised representation learning.
Frontiers of Information Technology & Electronic Engineering 24(8), 2023
(arXiv:2010.08982).

A round:
  1. the server broadcasts the model, the dictionary (of each of the N clients that it
     has heard of, at most m projections of unit length) and the base model's encoder;
  2. client k trains on its n_k examples for E epochs, by NT-Xent with the other
     clients' entries as further negatives and beta times the distance of its features
     from the base model's (`objectives.fedca`);
  3. with the model it ends with it represents m of its images, as they are, all where
     it has fewer, and sends them with its update;
  4. the server averages the updates weighted by n_k, applies its optimizer, and puts
     the representations in the place of those that it had of the same clients.

With m = 0 and beta = 0 it is FedAvg with SimCLR; so is round 0 without a base model.

What it gives away: representations of single examples, which the server and all clients
see, each with the number of the client that it comes from. No secure sum hides what the
algorithm itself hands on; only noise as large as a representation would, and from that
no entry could be told: an aggregation that adds noise is refused.

Decisions, for here the paper is known by its abstract alone. It has two modules: one
aggregates representations of samples and shares them with all clients, one aligns each
client's representation to a base model trained on public data; the loss is contrastive.
What both add to the loss: see `objectives.fedca`. Of the federation was decided:
  The dictionary keeps what a client sent last, of whatever model, until it sends again;
    who is absent, empty or not finite keeps its rows.
  The m images are drawn anew each round. No view is made of them, so that an entry
    stands for its image and not for one draw.
  The base model is an encoder that somebody else has trained. It is fixed, and part of
    the state, so that a run that resumes has the same.
  The server's optimizer is an argument; SGD at rate 1.0 is plain averaging.
  A client names its number in the population. Its rows go through the same mean as
    statistics do, in a table of zeros but for its place, [N, m, d].
  Bytes: up, the rows that a client has and its number, not the zeros; down, the
    dictionary's filled rows, and each round the base model, which a device could keep.
"""

import collections
from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow_federated as tff

from tff_ssl.aggregators import aggregation as aggregation_lib
from tff_ssl.aggregators import beside
from tff_ssl.aggregators import communication
from tff_ssl.algorithms import clients
from tff_ssl.algorithms import cohorts
from tff_ssl.algorithms import fedca_parts
from tff_ssl.algorithms import server
from tff_ssl.encoders import checks
from tff_ssl.objectives import fedca

# Of the clients' part of the state: the dictionary and the base model.
CONTEXT = 'context'


def build_fedca(
  objective: fedca.FedCAObjective,
  element_spec: Any,
  server_optimizer: tff.learning.optimizers.Optimizer,
  config: fedca_parts.FedCAConfig,
  base_params: Mapping[str, Any] | None = None,
  aggregation: aggregation_lib.Aggregation | None = None,
) -> tff.learning.templates.LearningProcess:
  """Builds FedCA.

  Args:
    objective: What a client minimises.
    element_spec: `tf.TensorSpec`s of one example of the clients' data sets, or the
      `packs.PackSpec` of them, with an int32 `client`, the number of the client in
      [0, N).
    server_optimizer: Applied to the averaged update; SGD at rate 1.0 is plain FedAvg.
    config: Hyperparameters.
    base_params: Parameters of the objective's encoder, which stay as they are: the base
      model. Needed for alignment; without it (beta = 0) not used.
    aggregation: What everything that leaves a client goes through; plain when None. It
      must add no noise (`private`): the server could not tell entries from it.

  Returns:
    A `LearningProcess` whose metrics are, under `client_work`, those of
    `fedavg.build_fedavg`; with alignment the two parts of the loss, `contrastive` and
    `alignment`; and `dictionary_rows`, those that the clients were given.

  Raises:
    ValueError: If the elements lack what they need, the base model is missing or of
      another encoder, or the aggregation adds noise.
  """
  clients.check_numbered(element_spec)
  clients.check_not_noised(aggregation)
  cohort = cohorts.build_cohort(element_spec, aggregation or aggregation_lib.plain())
  base_params = _checked(objective, base_params)

  @tff.tensorflow.computation
  def initial_weights():
    return server.initial_weights(objective, config.training.seed)

  @tff.tensorflow.computation
  def initial_context():
    return fedca_parts.initial_context(objective, config, base_params)

  weights_type = initial_weights.type_signature.result
  return server.compose(
    initial_weights,
    _build_client_work(objective, cohort, weights_type, config, initial_context),
    cohort.aggregation.updates,
    server_optimizer,
  )


def _checked(
  objective: fedca.FedCAObjective, base_params: Mapping[str, Any] | None
) -> Mapping[str, Any] | None:
  """Returns the parameters of the base model, None where there is no alignment."""
  if not objective.alignment_weight:
    return None
  if base_params is None:
    raise ValueError(
      f'alignment_weight is {objective.alignment_weight} and there are no base_params; '
      'it must be 0, or a base model be given.'
    )
  checks.params('the base model', objective.model.encoder.specs, base_params)
  return base_params


def _build_client_work(
  objective: fedca.FedCAObjective,
  cohort: cohorts.Cohort,
  weights_type: tff.StructType,
  config: fedca_parts.FedCAConfig,
  initial_context: tff.Computation,
) -> tff.learning.templates.ClientWorkProcess:
  """Builds the clients' part, which keeps the dictionary; see `build_fedca`."""
  context_type = initial_context.type_signature.result
  shared_type = clients.shared_type(
    weights_type.trainable, rate=tff.TensorType(np.float32), context=context_type
  )
  function = fedca_parts.client_function(objective, config)
  train = cohort.map(function, shared_type)
  sent = train.type_signature.result
  through = cohort.aggregation
  rows_process = through.statistics.create(sent[beside.STATISTICS], sent['weight'])
  metrics_process = through.metrics.create(sent['metrics'], sent['weight'])
  counts_process = through.counts.create(sent['counts'])
  arrived_type = rows_process.next.type_signature.result.result.member
  dictionary_bytes = sum(
    communication.num_bytes(context_type[name]) for name in (fedca.ROWS, fedca.FILLED)
  )

  @tff.tensorflow.computation(
    sent['metrics'], sent['counts'], context_type, arrived_type
  )
  def report(metrics, counts, context, arrived):
    averaged = collections.OrderedDict(metrics)
    result = collections.OrderedDict(loss=averaged.pop('loss'))
    result.update(objective.summarize(averaged))
    result.update(counts)
    result.update(
      fedca_parts.traffic(
        counts,
        context,
        arrived,
        down=communication.num_bytes(shared_type) - dictionary_bytes,
        up=communication.num_bytes(sent)
        - communication.num_bytes(sent[beside.STATISTICS]),
      )
    )
    return result

  @tff.tensorflow.computation(context_type, arrived_type)
  def remember(context, arrived):
    return fedca_parts.remember(context, arrived)

  initial_seed, next_seed = server.round_seeds(config.training.seed)
  rate = tff.tensorflow.computation(config.training.rate, tff.TensorType(np.int32))

  @tff.federated_computation
  def initialize():
    return tff.federated_zip(
      collections.OrderedDict(
        [
          ('round', server.first_round()),
          ('round_seed', tff.federated_eval(initial_seed, tff.SERVER)),
          (CONTEXT, tff.federated_eval(initial_context, tff.SERVER)),
          (beside.STATISTICS, rows_process.initialize()),
          ('metrics', metrics_process.initialize()),
          ('counts', counts_process.initialize()),
        ]
      )
    )

  @tff.federated_computation(
    initialize.type_signature.result,
    tff.FederatedType(weights_type, tff.CLIENTS),
    tff.FederatedType(cohort.data_type, tff.CLIENTS),
  )
  def next_fn(state, weights, data):
    context = state[CONTEXT]
    shared = collections.OrderedDict(
      params=weights.trainable,
      seed=tff.federated_broadcast(state['round_seed']),
      rate=tff.federated_broadcast(tff.federated_map(rate, state['round'])),
      context=tff.federated_broadcast(context),
    )
    examples = tff.federated_map(cohort.read, data)
    trained = tff.federated_map(train, (shared, examples))
    weight = trained['weight']
    rows = rows_process.next(
      state[beside.STATISTICS], trained[beside.STATISTICS], weight
    )
    metrics = metrics_process.next(state['metrics'], trained['metrics'], weight)
    counts = counts_process.next(state['counts'], trained['counts'])
    new_state = collections.OrderedDict(
      [
        ('round', server.next_round(state['round'])),
        ('round_seed', next_seed(state['round_seed'])),
        (CONTEXT, tff.federated_map(remember, (context, rows.result))),
        (beside.STATISTICS, rows.state),
        ('metrics', metrics.state),
        ('counts', counts.state),
      ]
    )
    return tff.templates.MeasuredProcessOutput(
      tff.federated_zip(new_state),
      tff.federated_zip(
        tff.learning.templates.ClientResult(trained[beside.UPDATE], weight)
      ),
      tff.federated_map(report, (metrics.result, counts.result, context, rows.result)),
    )

  return tff.learning.templates.ClientWorkProcess(initialize, next_fn)
