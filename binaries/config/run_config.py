"""A run as a value: `RunConfig`, all that the numbers of a run depend on.

  config = RunConfig(methods.FedAvg(), objectives.Simclr(), task='digits', rounds=10)

It is built by keyword in Python (`experiment.run`), read from a command line
(`command_line`), or from the config.json of another run (`from_json`).
"""

import collections
from collections.abc import Mapping
import dataclasses
from typing import Annotated, Any

from binaries.config import data as data_lib
from binaries.config import evaluations
from binaries.config import runtimes
from tff_ssl.computing import json_kinds
from tff_ssl.computing import kinds
from tff_ssl.runs import removed
from tff_ssl.settings import aggregations
from tff_ssl.settings import encoders
from tff_ssl.settings import learning
from tff_ssl.settings import methods
from tff_ssl.settings import objectives
from tff_ssl.settings import roles

ROUNDS, _SIGNALS = 'rounds', 'evaluation.signals_every'
# NumPy takes none below 0; TensorFlow takes 64 bits (`computing.seeds`).
Seed = Annotated[int, kinds.Range(0, 2**63 - 1)]


@dataclasses.dataclass(frozen=True)
class RunConfig(kinds.Kind):
  """All of a run.

  Attributes:
    method: The algorithm, with its own settings.
    objective: What clients minimise.
    task: Data set.
    data: How it is read.
    partition: How training examples are dealt to clients, as in
      dirichlet:alpha=0,examples=4 (see --help=partition); none: by the clients or cases
      of the data, iid:examples=4 if nothing is labelled, and otherwise
      dirichlet:alpha=0,examples=4.
    clients_per_round: Clients in a cohort.
    all_if_fewer: Whether a cohort has all clients if there are fewer than that.
    participation: Share p of all clients that a cohort has, in place of a number.
    encoder: The network that is pretrained.
    augmentation: How the views are made.
    clients: How clients train.
    server: The server's optimizer.
    labels: How a server with labels trains.
    aggregation: How the values that clients send are combined.
    rounds: Number of rounds; a run may be continued with more.
    seed: Seed of everything random: partition, weights, cohorts, views, label subsets;
      none: 0, and in a private run whose cohorts must be secret a drawn one.
    init_from: Folder of a run from whose newest weights this run starts: the weights of
      the encoder, and of other networks that are the same in both runs; or, for the
      encoder only, an encoder.keras of ours, a .safetensors file of torchvision or
      timm for an encoder that is named torch_..., or a .keras or .h5 file of
      keras.applications for one that is named keras_....
    runtime: What executes the rounds.
    evaluation: How the encoder is evaluated.
    run_dir: Folder of the run; the same command resumes where it stopped.
    checkpoint_every: Rounds between checkpoints; none: 10, and 1 in a private run,
      where repeated rounds cost privacy again.
    trackers: Where numbers are shown in addition to metrics.csv: some of tensorboard,
      mlflow and wandb.
  """

  # A `methods.Method` and an `objectives.Objective`; what builds one knows which.
  method: Any
  objective: Any
  task: str = 'digits'
  data: data_lib.Data = data_lib.Data()
  partition: str | None = None
  clients_per_round: kinds.Count = 64
  all_if_fewer: bool = roles.free(True)
  participation: kinds.Share | None = None
  encoder: encoders.Encoder = encoders.ResNet('resnet8')
  augmentation: str = 'byol_no_blur'
  # `learning.Clients`, or `learning.StepClients` if the method takes steps.
  clients: Any = learning.SgdClients()
  server: learning.Server = learning.SgdServer()
  labels: learning.ServerLabels = learning.ServerLabels()
  aggregation: aggregations.Aggregation = aggregations.Plain()
  rounds: kinds.Count = 100
  seed: Seed | None = None
  init_from: str | None = roles.path()
  runtime: runtimes.Runtime = runtimes.InProcess()
  evaluation: evaluations.Evaluation = evaluations.Evaluation()
  run_dir: str | None = roles.free(None, path=True)
  checkpoint_every: kinds.Count | None = roles.free(None)
  trackers: tuple[str, ...] = roles.free(('tensorboard',), path=True)

  def __post_init__(self) -> None:
    """Raises ValueError if a field cannot have its value, or does not fit another."""
    super().__post_init__()
    tables = {**KINDS, **{name: {'': cls} for name, cls in PARTS.items()}}
    # A caller may have a method or an objective of its own.
    tables |= {'method': {'': methods.Method}, 'objective': {'': objectives.Objective}}
    for name, table in tables.items():
      value = getattr(self, name)
      if not isinstance(value, tuple(table.values())):
        raise ValueError(
          f'{name} is {value!r}; it must be a configuration, as in binaries.config.'
        )
    allowed = clients_of(self.method)
    if self.clients.kind not in allowed:
      raise ValueError(
        f'clients are {self.clients.kind!r}; with the method {self.method.kind} they '
        f'must be one of {", ".join(allowed)}.'
      )

  @property
  def title(self) -> str:
    """Name in tables: the method, and the objective if it is not always the same."""
    if self.objective.kind == self.method.objective:
      return self.method.kind
    return f'{self.method.kind} {self.objective.kind}'

  @property
  def random_seed(self) -> int:
    """The seed of every draw: 0 if none is given."""
    return self.seed or 0

  @property
  def label_share(self) -> float | None:
    """Share of the training labels that clients get; None: they see no label."""
    return getattr(self.objective, 'labels', 1.0) if self.objective.labelled else None

  @property
  def is_private(self) -> bool:
    """Whether noise is added, by the server or by the clients."""
    return isinstance(self.aggregation, aggregations.Private | aggregations.Distributed)

  @property
  def is_secure(self) -> bool:
    """Whether sums are secure and without noise."""
    return isinstance(self.aggregation, aggregations.Secure)

  @property
  def is_amplified(self) -> bool:
    """Whether a guarantee relies on secret cohorts (amplification)."""
    # A server against which the noise protects knows the cohorts.
    own = self.aggregation
    return isinstance(own, aggregations.Private) and own.cohorts != 'passes'

  @property
  def signal_rounds(self) -> int:
    """Rounds of the budget that a measurement of signals costs; 0 without noise."""
    return getattr(self.aggregation, 'signal_rounds', 0)

  @property
  def unused(self) -> tuple[str, ...]:
    """Names of the fields, or parts, that the method or the objective does not use."""
    return (*self.method.unused, *self.objective.unused)

  def uses(self, name: str) -> bool:
    """Returns whether the method and the objective use a field, or a part of it."""
    return not any(name == each or name.startswith(f'{each}.') for each in self.unused)

  def check_parts(self) -> None:
    """Raises ValueError if a part that is used breaks a rule between its fields."""
    for name, value in vars(self).items():
      if isinstance(value, kinds.Kind) and self.uses(name):
        value.check_rules(f' of --{name}')

  def settings(self) -> dict[str, Any]:
    """Returns the values of all fields that are used, by name."""
    return {name: value for name, value in roles.flat(self).items() if self.uses(name)}

  def names(self, role: Any) -> tuple[str, ...]:
    """Returns the names of used fields with a role, such as `roles.is_free`."""
    names = (name for name in roles.names_of(self, role) if self.uses(name))
    # The noise of a private run depends on how often its encoder is measured.
    fixed = _SIGNALS if self.signal_rounds else ''
    return tuple(name for name in names if name != fixed)


# The tables of kinds of the fields that have kinds; `method` has those of a program.
KINDS: Mapping[str, Mapping[str, type[Any]]] = {
  'objective': objectives.OBJECTIVES,
  'encoder': encoders.ENCODERS,
  'clients': {**learning.CLIENTS, **learning.STEPS},
  'server': learning.SERVERS,
  'aggregation': aggregations.AGGREGATIONS,
  'runtime': runtimes.RUNTIMES,
}
# Fields that are one dataclass.
PARTS: Mapping[str, type[Any]] = {
  'data': data_lib.Data,
  'labels': learning.ServerLabels,
  'evaluation': evaluations.Evaluation,
}


def clients_of(
  method: methods.Method | type[methods.Method],
) -> Mapping[str, type[Any]]:
  """Returns the kinds of clients' training that a method takes."""
  steps: Mapping[str, type[Any]] = learning.STEPS
  return steps if method.steps else learning.CLIENTS


def to_json(config: RunConfig) -> collections.OrderedDict[str, Any]:
  """Returns a configuration as JSON values, without what the method does not use."""
  return _used(kinds.to_json(config), config, '')


def _used(
  value: Mapping[str, Any], config: RunConfig, prefix: str
) -> collections.OrderedDict[str, Any]:
  own: collections.OrderedDict[str, Any] = collections.OrderedDict()
  for name, each in value.items():
    if config.uses(path := f'{prefix}{name}'):
      nested = isinstance(each, Mapping)
      own[name] = _used(each, config, f'{path}.') if nested else each
  return own


def from_json(
  value: Mapping[str, Any],
  method_kinds: Mapping[str, type[methods.Method]],
  keep_paths: bool = True,
) -> RunConfig:
  """Returns the configuration that JSON values describe.

  Args:
    value: From `to_json`, possibly a stranger's.
    method_kinds: The methods by name.
    keep_paths: Whether fields that are paths or addresses are taken; otherwise they
      have their defaults.

  Raises:
    ValueError: If a field is unknown or has a value that it cannot have.
  """
  tables = {**KINDS, 'method': method_kinds}
  tables |= {name: {'': cls} for name, cls in PARTS.items()}
  own = _fields(RunConfig, value, '', tables, keep_paths)
  for name in ('method', 'objective'):
    if name not in own:
      raise ValueError(f'The run has no {name}; it must have one.')
  return RunConfig(**own)


def _fields(
  cls: type[Any],
  value: Mapping[str, Any],
  prefix: str,
  tables: Mapping[str, Mapping[str, type[Any]]],
  keep_paths: bool,
) -> dict[str, Any]:
  """Returns a dataclass's fields; those with a table are dataclasses themselves."""
  types, own = kinds.field_types(cls), dict[str, Any]()
  for name, each in value.items():
    if name not in types:
      where = f'{prefix}{name}'
      removed.check(prefix.rstrip('.'), [name])
      raise ValueError(f'The run has the field {where!r}; there is none.')
    if not keep_paths and name in _paths(cls):
      continue
    if name in tables:
      own[name] = _part(name, each, tables[name], keep_paths)
      continue
    own[name] = json_kinds.field_from_json(
      each, types[name], 'The run', f'{prefix}{name}'
    )
  return own


def _part(
  name: str, value: Any, table: Mapping[str, type[Any]], keep_paths: bool
) -> Any:
  """Returns a field that is a dataclass, of one of the kinds of a table."""
  if not isinstance(value, Mapping):
    raise ValueError(f'The run has {name}={value!r}; it must be an object.')
  own = dict(value)
  kind = own.pop(kinds.KIND, None) if name not in PARTS else ''
  if not isinstance(kind, str) or kind not in table:
    raise ValueError(
      f'The run has the {name} {kind!r}; it must be one of {", ".join(table)}.'
    )
  cls = table[kind]
  fields = _fields(cls, own, f'{name}.', {}, keep_paths)
  return kinds.build(cls, kind, fields, f'The {name} of the run')


def _paths(cls: type[Any]) -> tuple[str, ...]:
  return tuple(each.name for each in dataclasses.fields(cls) if roles.is_path(each))


def why_rounds_are_fixed(config: RunConfig) -> str | None:
  """Returns why a run cannot get more rounds than it began with; None if it can."""
  for name in ('server', 'clients'):
    if config.uses(name) and getattr(getattr(config, name), 'schedule', '') == 'cosine':
      return f'the rate of the {name} with schedule=cosine falls over all rounds'
  own: Any = config.objective
  if isinstance(own, objectives.Dino):
    return f'the schedules of {own.kind} span all rounds'
  is_fedsup = isinstance(own, objectives.Fedsup)
  if is_fedsup and own.stages != 0 and own.feature_weight != 1:
    return 'the weight feature_weight of the objective falls over all rounds'
  own = config.aggregation
  if config.is_private and own.noise_multiplier is None:
    return 'its noise follows from a privacy guarantee for all rounds'
  return None


def may_grow(config: RunConfig) -> tuple[str, ...]:
  """Returns the fields that may have a larger value when a run is resumed."""
  return () if why_rounds_are_fixed(config) else (ROUNDS,)
