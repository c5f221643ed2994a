"""Evaluates encoders as a run's configuration says, during runs and after them."""

import collections
from collections.abc import Callable, Mapping, Sequence
import dataclasses
import functools
from typing import Any

import numpy as np

from binaries.building import evaluation
from binaries.config import run_config
from binaries.experiment import from_scratch
from binaries.experiment import precision_marks
from binaries.experiment import results
from tasks import task_types
from tff_ssl.encoders import network
from tff_ssl.encoders import parameter_names
from tff_ssl.evaluation import encoded
from tff_ssl.evaluation import feature_sets
from tff_ssl.evaluation import fine_tuning
from tff_ssl.evaluation import finetune_search
from tff_ssl.evaluation import inputs as inputs_lib
from tff_ssl.evaluation import intervals
from tff_ssl.evaluation import method_names
from tff_ssl.evaluation import methods as methods_lib
from tff_ssl.evaluation import online_knn
from tff_ssl.evaluation import population_statistics
from tff_ssl.evaluation import scores
from tff_ssl.evaluation import stages
from tff_ssl.evaluation import suite
from tff_ssl.objectives import dual_encoder

# Prefix of the numbers of several models.
_CLUSTERS = 'clusters'


class Evaluator:
  """Evaluates parameters of one encoder on one task; compiles once.

  For a task without any label it returns no numbers.

  Attributes:
    config: The run.
    encoder: The network, all of which is evaluated: adapters are merged.
    skipped: Why there are no numbers; None: there are.
    problem: What an encoder is evaluated on.
    balanced: Whether balanced accuracy is shown as well.
    label_names: Names of the classes.
    of_inputs: A line on how the inputs are reduced where they are evaluated; or ''.
    seen: What was predicted of the test examples by the encoder that was last
      evaluated and by what it is compared with, by their names in `results`.
  """

  def __init__(
    self,
    config: run_config.RunConfig,
    task: task_types.Task,
    encoder: network.Network,
    federated: methods_lib.Federated | None = None,
    deal: scores.Deal | None = None,
    logits: Callable[[network.Params, Any], Any] | None = None,
    collect: methods_lib.Collect | None = None,
  ):
    """Initializes the evaluator.

    Args:
      config: The run, of which its `evaluation` and seed are read.
      task: Provides the labelled training and test examples.
      encoder: The network whose parameters are evaluated.
      federated: Trains the probe of the method federated_linear.
      deal: Deals test examples to clients, for fairness; None: it is not measured.
      logits: The objective's own classifier (`base.Objective.logits`), or None.
      collect: For the method one_round; None: its sums are over all examples.

    Raises:
      ValueError: If only one given split has labels.
    """
    self.skipped = evaluation.skipped(task)
    self.config, self.label_names = config, task.label_names
    self.seen: dict[str, intervals.Tested] = {}
    labelled = task.validation is not None and np.any(task.validation.label >= 0)
    own = config.evaluation.precision
    # Adapters are merged: what is fine-tuned is all of the encoder.
    self._merged, encoder = encoder.merged, encoder.plain
    # By default in float32, as it is exported; fine-tuning also trains it in this.
    self.encoder = encoder.with_precision(own)
    self._infer = functools.partial(encoder.infer, precision=own)
    self.problem = scores.Problem(
      task.train,
      task.test,
      task.num_classes,
      task.case_level,
      encoder.field,
      task.validation if labelled else None,
      deal,
    )
    self._methods = evaluation.frozen_methods(config, federated, collect)
    together = encoder.batch_in_cache()
    self._classify = logits and feature_sets.build_encode(logits, together)
    self._encode = feature_sets.build_encode(self._infer, together)
    self._complete = population_statistics.build_complete(encoder)
    self._finetune = self._build_finetune(
      evaluation.finetune_config(config), evaluation.finetune_choice(config)
    )
    self.of_inputs = inputs_lib.note(task.train[encoder.field])
    self.balanced = task.case_level or scores.is_imbalanced(task.test.label)
    # Of a case, whose images have one client.
    self._clients: dict[int, int] = {}
    if task.test.client is not None:
      pairs = zip(task.test.case.tolist(), task.test.client.tolist(), strict=True)
      self._clients = dict(pairs)

  def evaluate(
    self,
    params: network.Params,
    seen: list[intervals.Tested] | None = None,
    methods: Sequence[str] | None = None,
  ) -> results.Numbers:
    """Evaluates an encoder; names are those of `suite`.

    Args:
      params: Parameters of the encoder, with its population statistics if it has any.
      seen: What was predicted is appended to it; None: it is not kept.
      methods: Names of methods; None: those of the run.
    """
    if self.skipped is not None:
      return collections.OrderedDict()
    params = self._merged(params)
    return self._evaluate(
      params,
      evaluation.of_encoders(self.config) if methods is None else methods,
      self.config.evaluation.label_fractions,
      functools.partial(
        self._finetune, population_statistics.trained(self.encoder, params)
      ),
      seen=seen,
    )

  def finetuned(self, params: network.Params) -> tuple[fine_tuning.Finetuned, float]:
    """Trains an encoder and a head with all labels; returns the test accuracy too.

    Args:
      params: Parameters of the encoder, with its population statistics if it has any.
    """
    trainable = population_statistics.trained(self.encoder, params)
    trained: list[fine_tuning.Finetuned] = []
    keep = from_scratch.keeping(functools.partial(self._finetune, trainable), trained)
    numbers = self._evaluate(params, ['finetune'], [1.0], keep)
    return trained[0], numbers['finetune/100%/accuracy']

  def evaluate_model(self, params: network.Params) -> results.Numbers:
    """Evaluates an objective's encoder, and its own classifier if it has one.

    Args:
      params: All parameters of the objective.
    """
    prefix = dual_encoder.encoder_prefix(self.encoder)
    seen: list[intervals.Tested] = []
    numbers = self.evaluate(parameter_names.select(params, prefix), seen)
    if self._classify is not None and self.skipped is None:
      numbers.update(
        suite.evaluate_classifier(
          functools.partial(self._classify, params), self.problem, seen
        )
      )
    if seen:
      self.seen[results.OWN] = intervals.joined(seen)
    return numbers

  def details(self) -> results.Numbers:
    """Returns intervals and confusions of the encoder that was last evaluated.

    They are empty if none has been evaluated by labels. They are compared with the
    random encoder, the initial one and with its inputs if these have been evaluated.
    """
    if results.OWN not in self.seen:
      return collections.OrderedDict()
    over = {
      results.RANDOM: intervals.UNTRAINED,
      results.INITIAL: intervals.INITIAL,
      **intervals.OF_INPUTS,
    }
    known = {
      start: self.seen[each] for each, start in over.items() if each in self.seen
    }
    tested = self.seen[results.OWN]
    if self._clients:
      clients = np.array([self._clients[case] for case in tested.cases.tolist()])
      tested = dataclasses.replace(tested, clients=clients)
    return intervals.numbers(tested, known)

  def watched(self) -> online_knn.OnlineKnn | None:
    """Returns the few examples for kNN during training; None: nothing is labelled."""
    if self.skipped is not None:
      return None
    queried: dict[str, encoded.Examples] = {'': self.problem.test}
    if self.problem.validation is not None:
      queried[suite.VALIDATION] = self.problem.validation
    return online_knn.choose(
      self.problem.train,
      queried,
      self.problem.num_classes,
      self.config.random_seed,
      self.encoder.field,
      evaluation.knn_config(self.config),
    )

  def encode(self, params: network.Params, inputs: np.ndarray) -> np.ndarray:
    """Returns the features of inputs that are evaluated, [N, d].

    Args:
      params: Parameters of the encoder, with its population statistics if it has any.
      inputs: What it reads, [N, ...].
    """
    return self._encode(self._merged(params), inputs)

  def evaluate_several(
    self,
    models: Mapping[str, network.Params],
    known: tuple[network.Params, results.Numbers] | None = None,
  ) -> results.Numbers:
    """Evaluates the encoders of a method whose result is several models.

    Args:
      models: All of the objective's parameters, by the name of the model.
      known: Parameters of a model, and what `evaluate_model` returned for it: if one of
        `models` has the same encoder, it is not evaluated again.

    Returns:
      Accuracies of each model as `clusters/NAME/...`, their mean as
      `clusters/mean/...`, and the accuracy of the best model as `clusters/best/...`.
      The best is chosen by the validation split, whose numbers are added under
      `validation/clusters/...`; without such a split, by the test examples. For a
      single model nothing is returned.
    """
    numbers: results.Numbers = collections.OrderedDict()
    if len(models) == 1:
      return numbers
    prefix = dual_encoder.encoder_prefix(self.encoder)
    if self._classify is not None:
      # The known numbers include those of the model's own classifier.
      known = None
    by_score: dict[str, list[float]] = collections.OrderedDict()
    for model, params in models.items():
      own = parameter_names.select(params, prefix)
      if known is not None and _same(own, parameter_names.select(known[0], prefix)):
        found = known[1]
      else:
        found = self.evaluate(own)
      for name, value in found.items():
        if method_names.way(name) or name.rpartition('/')[2] == precision_marks.NAME:
          numbers[suite.prefixed(name, f'{_CLUSTERS}/{model}/')] = value
          by_score.setdefault(name, []).append(value)
    for name, values in by_score.items():
      of_test = name.removeprefix(suite.VALIDATION)
      seen = np.asarray(by_score.get(suite.VALIDATION + of_test, values))
      chosen = int(np.argmax((method_names.sign(name) or 1) * seen))
      for each, value in (('mean', float(np.mean(values))), ('best', values[chosen])):
        numbers[suite.prefixed(name, f'{_CLUSTERS}/{each}/')] = value
    return numbers

  def baselines(self) -> tuple[results.Numbers, results.Numbers]:
    """Evaluates the encoder before training, and trained only with the labels.

    Returns:
      Numbers of the random encoder, and of supervised training from scratch.
    """
    initial = self.untrained()
    return self._other(results.RANDOM, initial), self._supervised(initial)

  def evaluate_before(self, params: 'network.Params | None' = None) -> results.Numbers:
    """Evaluates the encoder before training by the methods that train only heads.

    Args:
      params: All parameters that the run started from, with its population statistics
        if it has any; None: the random ones.
    """
    if params is None:
      return self._other(results.RANDOM, self.untrained(), self._frozen())
    return self._other(results.INITIAL, params, self._frozen())

  def evaluate_inputs(self) -> dict[str, results.Numbers]:
    """Evaluates the encoder's inputs as features, and their principal components.

    Without a label, or any of `inputs.methods` in the run, there are none.
    """
    methods = inputs_lib.methods(self._frozen())
    if self.skipped is not None or not methods:
      return {}
    known, found = self.problem.train[self.encoder.field], {}
    for name, encode in inputs_lib.encodings(known, self.encoder.output_dim).items():
      seen: list[intervals.Tested] = []
      found[name] = self._evaluate(
        encode, methods, self.config.evaluation.label_fractions, seen=seen
      )
      self.seen[name] = intervals.joined(seen)
    return found

  def _other(
    self, name: str, params: network.Params, methods: Sequence[str] | None = None
  ) -> results.Numbers:
    """Evaluates what the encoder is compared with, and remembers what it predicts."""
    seen: list[intervals.Tested] = []
    numbers = self.evaluate(params, seen, methods)
    if seen:
      self.seen[name] = intervals.joined(seen)
    return numbers

  def untrained(self) -> network.Params:
    """Returns the random encoder: `initial_params`, with population statistics."""
    return self._complete(self.initial_params(), self.problem.train[self.encoder.field])

  def initial_params(self) -> network.Params:
    """Returns the parameters from which every algorithm starts with this seed."""
    return from_scratch.initial_params(self.config, self.encoder)

  def _supervised(self, params: network.Params) -> results.Numbers:
    """Trains from `params` with only the labels of each fraction."""
    steps = self.config.evaluation.supervised_steps
    return from_scratch.evaluate(
      self._evaluate,
      self._build_finetune(
        dataclasses.replace(fine_tuning.FROM_SCRATCH, num_steps=steps)
      ),
      (params, population_statistics.trained(self.encoder, params)),
      self._frozen(),
      self.config.evaluation.label_fractions,
    )

  def _frozen(self) -> list[str]:
    """Returns the methods that do not train the encoder."""
    return [each for each in evaluation.of_encoders(self.config) if each != 'finetune']

  def _build_finetune(
    self,
    config: fine_tuning.FinetuneConfig,
    search: finetune_search.Search | None = None,
  ) -> Callable[..., fine_tuning.Finetuned]:
    return fine_tuning.FineTuning(
      self.encoder.apply,
      self.problem.num_classes,
      config,
      self._infer,
      self._complete,
      search,
      self.encoder.chunk_in_cache(),
    )

  def _evaluate(
    self,
    params: Any,
    methods: Sequence[str],
    fractions: Sequence[float],
    finetune_fn: Callable[..., fine_tuning.Finetuned] | None = None,
    tested: np.ndarray | None = None,
    draw: int | None = None,
    seen: list[intervals.Tested] | None = None,
  ) -> results.Numbers:
    """Evaluates with the run's seed.

    Args:
      params: Parameters of the encoder, or a function of inputs in its place.
      methods: Names of methods.
      fractions: Shares of the labels.
      finetune_fn: For the method finetune.
      tested: The tested examples' encodings, if already known.
      draw: The only draw of few labels; None: those of `suite.evaluate`.
      seen: What was predicted is appended to it.
    """
    if not methods:
      return collections.OrderedDict()
    encode: Callable[[np.ndarray], np.ndarray]
    encode = params if callable(params) else functools.partial(self._encode, params)
    if tested is not None:
      splits = [self.problem.test, self.problem.validation]
      queried = [split[self.encoder.field] for split in splits if split is not None]
      encode = feature_sets.knowing(encode, queried, tested)
    known = dict(self._methods)
    if finetune_fn is not None:
      known['finetune'] = methods_lib.Finetune(finetune_fn)
    with stages.show_progress():
      numbers = suite.evaluate(
        encode,
        self.problem,
        [known[name] for name in methods],
        fractions=fractions,
        seed=self.config.random_seed,
        draws=None if draw is None else [draw],
        seen=seen,
      )
    if callable(params):
      return numbers  # Of no encoder, and so in float32.
    return precision_marks.add(numbers, self.config.evaluation.precision)


def _same(params: network.Params, others: network.Params) -> bool:
  """Returns whether two sets of a network's parameters are equal to the bit."""
  return all(np.array_equal(params[name], others[name]) for name in params)
