"""LA-SSFL: the global model, adapted to a client by one step on the client's own data.

"SSFL: Tackling Label Deficiency in Federated Learning via Personalized
Self-Supervision", Chaoyang He, Zhengyu Yang, Erum Mushtaq, Sunwoo Lee, Mahdi
Soltanolkotabi, Salman Avestimehr, 2021, section 3.3.

Global-SSFL, which is FedAvg of SimSiam, trains the model. Before the model is used or
evaluated, each client takes a step of SGD on its own examples. MAML-SSFL is evaluated
after the same step.

rate = 0: the global model, Global-SSFL; with batch norm, with the statistics of the
client's population.

Deviations: the paper does not say how many examples the step takes. Here it takes all
examples of the client, with the gradient accumulated over batches, so that nothing is
drawn but the views. With batch norm the batches, which are drawn too, matter, and a
small last batch is left out (see `local_training`).
"""

import collections
from collections.abc import Callable

import tensorflow as tf

from tff_ssl.computing import checks
from tff_ssl.computing import seeds
from tff_ssl.federated import clients
from tff_ssl.federated import local_training
from tff_ssl.objectives import base
from tff_ssl.objectives import batch_norm_statistics
from tff_ssl.objectives import selection
from tff_ssl.settings import learning

# More batches than any client has: all of them make one step.
_ALL = 2**30
# Another stream than those of `server`.
_ADAPTATION = 2

# (parameters, the client's examples) -> the client's parameters.
Adapt = Callable[[base.Params, base.Examples], base.Params]


def la_ssfl(
  objective: base.Objective, rate: float = 0.01, batch_size: int = 256, seed: int = 0
) -> Adapt:
  """Builds the adaptation, in plain TensorFlow.

  Args:
    objective: What the step lowers; it keeps no state.
    rate: Rate of SGD, at least 0; 0 changes nothing.
    batch_size: Examples that go through the networks together, which bounds the memory;
      with batch norm they are normalized together.
    seed: Seed of the views.

  Returns:
    A function of the global model's parameters, with its population statistics among
    them if it has batch norm, and of a client's n >= 0 examples. Without examples
    nothing changes; otherwise the statistics returned are the client's own. The
    function is compiled once.

  Raises:
    ValueError: If the objective keeps a state, or the rate is negative.
  """
  base.check_stateless(objective, 'an adaptation')
  checks.not_negative(rate=rate)
  one_step = learning.SgdClients(batch_size=batch_size, accumulate=_ALL)
  stream = seeds.stream(seed, _ADAPTATION)

  @tf.function(reduce_retracing=True, autograph=False)
  def adapt(params: base.Params, examples: base.Examples) -> base.Params:
    examples = selection.select_examples(objective, examples)
    trained = local_training.train(
      objective,
      one_step,
      batch_norm_statistics.without_statistics(objective, params),
      examples,
      tf.constant(stream),
      rate,
    )
    own = batch_norm_statistics.with_statistics(objective, trained.params, examples)
    # Without examples the client has no population.
    has_examples = base.example_count(examples) > 0
    return clients.choose(has_examples, own, collections.OrderedDict(params))

  return adapt
