"""The algorithms of runs: how a configuration becomes the library's algorithm."""

from collections.abc import Callable, Mapping
import dataclasses
import importlib
from typing import Any

from binaries.building import training
from binaries.config import run_config
from tff_ssl.federated import phases
from tff_ssl.objectives import dual_encoder
from tff_ssl.runs import alarms
from tff_ssl.runs import personal_models
from tff_ssl.settings import methods
from tff_ssl.settings import parts

# Where every algorithm's state has trained parameters, the encoder among them, and the
# population statistics of batch norm.
TRAINABLE = 'global_model_weights/trainable'
STATISTICS = 'global_model_weights/non_trainable'
ENCODER = f'{TRAINABLE}/{dual_encoder.ENCODER}'


def always(config: run_config.RunConfig) -> bool:
  """Returns that something is so in all runs of an algorithm."""
  del config
  return True


def _never(config: run_config.RunConfig) -> bool:
  del config
  return False


@dataclasses.dataclass(frozen=True)
class Algorithm:
  """An algorithm, which minimises an objective.

  Attributes:
    build: (run, objective) -> the library's algorithm. If clients are numbered: (run,
      objective, number of clients). If the server has data: (run, objective,
      `labels_at_server.Problem`). If it is not federated: (run, objective) -> a process
      in plain TensorFlow.
    check: Raises ValueError if fields of a run do not fit each other.
    numbered: Whether examples name the number of their client.
    models: Model weights -> the models by name, if the result is several models; each
      is evaluated in addition to the one that is saved.
    personal: (run, what the round loop runs, objective, the clients' data) -> clients'
      own models, if they have any.
    mixing: Run -> the alarm about the shares of their own networks that clients keep,
      if they keep any.
    topology: (run, number of clients) -> the graph in which they average without a
      server.
    of_clients: State -> values by name that are added to the weights of the result, if
      `personal` makes the clients' own models from both; None: it needs none.
    rows_of_one_client: Run -> whether clients send rows of a single client, with zeros
      in place of the others, so that a sum reveals them.
    keeps_states: Whether clients keep a state, if noise can be added to what they send.
    sends_encodings: Whether clients send the objective's statistics, which have its
      `share_bound`.
  """

  build: Callable[..., Any]
  check: Callable[[run_config.RunConfig], Any]
  numbered: bool = False
  models: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None = None
  personal: Callable[..., personal_models.PersonalModel] | None = None
  mixing: Callable[[run_config.RunConfig], alarms.MixingAlarm] | None = None
  topology: Callable[[run_config.RunConfig, int], Any] | None = None
  of_clients: Callable[[Any], Mapping[str, Any]] | None = None
  rows_of_one_client: Callable[[run_config.RunConfig], bool] = _never
  keeps_states: bool = False
  sends_encodings: bool = False


def register(built: Mapping[type[methods.Method], Algorithm]) -> None:
  """Registers the algorithms of a family by the settings of their methods."""
  for settings, algorithm in built.items():
    parts.method(settings)(algorithm)


def of(config: run_config.RunConfig) -> Algorithm:
  """Returns the algorithm of a run; imports its family alone."""
  name = config.method.kind
  if name not in parts.METHODS:
    importlib.import_module(f'binaries.building.{config.method.family}')
  part = parts.METHODS[name]
  if isinstance(part.build, Algorithm):
    return part.build
  # Whoever has numbers may send rows of one client: nobody has said otherwise.
  rows = always if part.options['numbered'] else _never
  return with_server(part.build, rows_of_one_client=rows, **part.options)


def with_server(
  method: Callable[..., phases.Algorithm],
  check: Callable[[run_config.RunConfig], None] | None = None,
  **others: Any,
) -> Algorithm:
  """Returns an algorithm whose server has an optimizer.

  Args:
    method: (objective, server's optimizer, method's settings, how clients train) -> the
      algorithm; if clients are numbered, the number of clients comes last.
    check: Raises ValueError if fields of a run do not fit each other; None: all do.
    **others: Other attributes.
  """

  def build(
    config: run_config.RunConfig, objective: Any, *population: int
  ) -> phases.Algorithm:
    server, clients = training.server_optimizer(config), training.of_clients(config)
    return method(objective, server, config.method, clients, *population)

  def check_all(config: run_config.RunConfig) -> None:
    if check is not None:
      check(config)
    training.check(config)

  return Algorithm(build, check_all, **others)


def without_settings(
  method: Callable[..., phases.Algorithm],
  check: Callable[[run_config.RunConfig], None] | None = None,
  **others: Any,
) -> Algorithm:
  """Returns an algorithm as `with_server` does, of a method that has no settings."""

  def build(
    objective: Any, server: Any, settings: Any, *others: Any
  ) -> phases.Algorithm:
    del settings
    return method(objective, server, *others)

  return with_server(build, check, **others)


def shared_model(
  config: run_config.RunConfig, process: Any, objective: Any, data: Any
) -> personal_models.PersonalModel:
  """Returns the global model as each client's model."""
  del config, process, objective, data
  return personal_models.shared


def of_states(
  config: run_config.RunConfig, process: Any, objective: Any, data: Any
) -> personal_models.PersonalModel:
  """Returns the models that follow from clients' states."""
  del config, objective, data
  return personal_models.of_states(process)
