"""The start of a run: from weights of another run, or of a file."""

import collections
from collections.abc import Callable, Mapping
import hashlib
import os
import pathlib
from typing import Any

import numpy as np
import tensorflow as tf

from binaries.building import algorithms
from binaries.building import encoders
from binaries.config import backbones
from binaries.config import checks
from binaries.config import run_config
from binaries.experiment import membership
from tasks import task_types
from tff_ssl.encoders import frozen_layers
from tff_ssl.encoders import keras_applications
from tff_ssl.encoders import keras_import
from tff_ssl.encoders import lora
from tff_ssl.encoders import network
from tff_ssl.encoders import parameter_names
from tff_ssl.encoders import registry
from tff_ssl.encoders import vit
from tff_ssl.export import encoder_file
from tff_ssl.objectives import base
from tff_ssl.objectives import dual_encoder
from tff_ssl.objectives import target
from tff_ssl.runs import checkpoints
from tff_ssl.runs import frozen_base
from tff_ssl.runs import run_config as stored_config
from tff_ssl.storage import files

# Names the weights that a run started from.
PARENT = 'parent.json'
_CHECKPOINTS = 'checkpoints'
# Fields of an encoder on which its weights depend.
_OF_ENCODER = (
  'width',
  'stem',
  'norm',
  'groups',
  'patch',
  'batch_norm',
  'pixels',
  'layer_scale',
  'registers',
  'pool',
)


def check(config: run_config.RunConfig, folder: str | os.PathLike[str]) -> None:
  """Checks the rounds of a resumed run, and the starting weights of a new one.

  Args:
    config: The run.
    folder: Its folder, which need not exist.

  Raises:
    ValueError: If the run cannot have more rounds, or there are no weights of the same
      encoder to start from.
  """
  path = pathlib.Path(folder)
  if (path / stored_config.NAME).exists():
    _check_rounds(config, path)
    return
  source = config.init_from
  for name, value in config.encoder.partial.items():
    if not config.uses('init_from'):
      raise ValueError(
        f'{name} of --encoder is {value} with --method={config.method.kind}, which '
        'starts from no weights; it must be none.'
      )
    if not source:
      raise ValueError(
        f'{name} of --encoder is {value} without --init_from; it must name a run or an '
        'encoder, whose weights are frozen.'
      )
  if not source:
    return
  if pathlib.Path(source).resolve() == path.resolve():
    raise ValueError(
      f'init_from is {source!r}, the run itself; it must be another run.'
    )
  if backbones.is_backbone(source):
    # `config.checks` has read it.
    return
  if backbones.is_keras(source, config.encoder):
    kind = config.encoder
    encoder = registry.build_encoder(
      kind.kind, encoders.ANY_IMAGE, kind.width, **kind.options
    )
    keras_applications.read(source, encoder)
    return
  if _is_encoder(source):
    encoder_file.read(source)
    return
  if not pathlib.Path(source).exists():
    raise ValueError(
      f'init_from is {source!r}, which does not exist; it must be the folder of a run '
      'or a file of weights.'
    )
  _check_encoder(config, source)
  checkpoints.read_newest(pathlib.Path(source) / _CHECKPOINTS, algorithms.TRAINABLE)


def _check_rounds(config: run_config.RunConfig, path: pathlib.Path) -> None:
  """Refuses more rounds of a run that cannot have them."""
  why = run_config.why_rounds_are_fixed(config)
  rounds = stored_config.read(path)['config'].get(run_config.ROUNDS)
  if why and stored_config.is_larger(config.rounds, rounds):
    instead = (
      f'; start a new run in another folder from its weights, with --init_from={path}'
    )
    if config.is_private:
      # Such a run may not start from one on the same data (`private`).
      instead = ''
    raise ValueError(
      f'{path} is a run with --rounds={rounds}, and {why}: with '
      f'{config.rounds} it would differ from its first round on{instead}.'
    )


def _check_encoder(config: run_config.RunConfig, source: str) -> None:
  """Refuses a run of another encoder; names and shapes of weights do not show all."""
  own = config.settings()
  stored = stored_config.settings(stored_config.read(source)['config'])
  for name in ('encoder', *(f'encoder.{field}' for field in _OF_ENCODER)):
    if name in own and name in stored and stored[name] != own[name]:
      raise ValueError(
        f'{source} is a run with {name}={stored[name]}, but this run has {own[name]}; '
        'it must start from the weights of the same encoder.'
      )


def check_data(
  config: run_config.RunConfig, folder: str | os.PathLike[str], task: task_types.Task
) -> None:
  """Checks the examples of a resumed run, and those that a new one is tested on.

  Args:
    config: The run.
    folder: Its folder, which need not exist.
    task: Its task.

  Raises:
    ValueError: If the examples have changed since the run began, or if the run whose
      weights it starts from was trained on what is held out here.
  """
  if (pathlib.Path(folder) / stored_config.NAME).exists():
    # What its weights know of the same examples, a new private run would not count.
    start = '' if config.is_private else f' from its weights, --init_from={folder}'
    new = f'start a new run{start} in a new --run_dir'
    membership.check_same(
      folder, task, f'resume it with the data as they were, or {new}'
    )
  elif config.init_from:
    membership.check_unseen(config.init_from, config, task)


def build(
  config: run_config.RunConfig,
  folder: str | os.PathLike[str],
  encoder: network.Network,
  objective: base.Objective,
) -> Callable[[Any], Any] | None:
  """Returns a function that puts the weights of `init_from` into an initial state.

  A state of the objective, such as BYOL's target, begins anew with these weights. It
  also writes the frozen weights, if there are any, into the run's folder. Returns None
  for a run that starts from none, or that has begun.

  Args:
    config: The run.
    folder: Its folder.
    encoder: Its encoder.
    objective: What it minimises.

  Raises:
    ValueError: If the weights belong to another network.
  """
  source = config.init_from
  begun = any((pathlib.Path(folder) / _CHECKPOINTS).glob('*.npz'))
  if not source or begun:
    return None
  if _is_encoder(source) and not backbones.is_keras(source, config.encoder):
    _check_card(source, encoder)

  def start(state: Any) -> Any:
    weights = state.global_model_weights
    where, found, found_statistics = _read(config, encoder, weights.non_trainable)
    parent = {'name': _name(source), 'weights_sha256': _digest(found)}
    files.write_json(pathlib.Path(folder) / PARENT, parent)
    if encoder.adapters is not None:
      # It begins as its base, whose place the adapters take.
      prefix = dual_encoder.encoder_prefix(encoder)
      own = parameter_names.of_networks(weights.trainable, [prefix])
      found = {**found, **{name: np.asarray(value) for name, value in own.items()}}
      frozen_base.write(folder, encoder.adapters.base)
    trainable = take(source, weights.trainable, found, encoder)
    statistics = weights.non_trainable
    if statistics:
      statistics = take(source, statistics, found_statistics, encoder)
    print(f'starting from {where}', flush=True)
    state = state._replace(global_model_weights=type(weights)(trainable, statistics))
    if hasattr(state, 'objective'):
      # Of centralized training; elsewhere it is made on clients, of what they receive.
      state = state._replace(objective=objective.init_state(trainable))
    return state

  return start


def initial(config: run_config.RunConfig, encoder: network.Network) -> network.Params:
  """Returns the parameters and statistics from which a run's encoder began.

  Args:
    config: The run.
    encoder: Its encoder, without adapters.

  Raises:
    OSError: If they are not there any more.
    ValueError: Likewise, or if others are there.
  """
  source, found, statistics = _read(config, encoder, encoder.statistics)
  parent = card(checks.folder_of(config)).get('parent', {})
  if parent and parent['weights_sha256'] != _digest(found):
    raise ValueError(f'{source} has changed; it must be what the run started from.')
  prefix = dual_encoder.encoder_prefix(encoder)
  specs = parameter_names.with_prefix({**encoder.specs, **encoder.statistics}, prefix)
  own = {name: np.zeros(spec.shape, np.float32) for name, spec in specs.items()}
  found = take(source, own, {**found, **statistics}, encoder)
  return parameter_names.select(found, prefix)


def card(folder: str | os.PathLike[str]) -> Mapping[str, Mapping[str, str]]:
  """Returns the entry of a card on what a run started from: its name and a digest.

  Args:
    folder: The run folder.
  """
  path = pathlib.Path(folder) / PARENT
  return {'parent': files.read_json(path)} if path.is_file() else {}


def _name(source: str) -> str:
  """Returns the name of a run, or of a file with that of its folder."""
  path = pathlib.Path(source).resolve()
  return f'{path.parent.name}/{path.name}' if _is_encoder(source) else path.name


def _digest(weights: Mapping[str, np.ndarray]) -> str:
  """Returns a digest of weights that does not depend on how they are stored."""
  digest = hashlib.sha256()
  for name in sorted(weights):
    array = np.ascontiguousarray(weights[name])
    digest.update(f'{name} {array.dtype} {array.shape}\n'.encode())
    digest.update(array.tobytes())
  return digest.hexdigest()


def adapted(
  config: run_config.RunConfig,
  encoder: network.Network,
  folder: str | os.PathLike[str] | None = None,
) -> network.Network:
  """Returns a run's encoder on its frozen base; without changes if it has none.

  Args:
    config: The run.
    encoder: The encoder, all of it trained.
    folder: Its folder, which has the frozen weights once it has begun; None: as the
      run says.

  Raises:
    ValueError: If the frozen weights are missing, damaged, or of another encoder.
  """
  if not config.encoder.partial:
    return encoder
  folder = folder or checks.folder_of(config)
  frozen = frozen_base.read(folder)
  if frozen is None:
    if not config.init_from:
      raise ValueError(
        f'{pathlib.Path(folder) / frozen_base.NAME} is missing; it must hold the '
        'frozen weights of this run.'
      )
    _, found, _ = _read(config, encoder, False)
    frozen = parameter_names.select(found, dual_encoder.encoder_prefix(encoder))
  share, rank = config.encoder.frozen, config.encoder.lora
  if share is not None:
    return frozen_layers.freeze(encoder, frozen, share)
  assert rank is not None
  return lora.adapt(encoder, frozen, rank)


def _is_encoder(source: str) -> bool:
  return source.endswith('.keras')


def _check_card(source: str, encoder: network.Network) -> None:
  """Refuses the file of another network; shapes alone do not show its norm."""
  # Rebuilt: earlier releases described fewer options.
  other = encoder_file.rebuild(source)
  theirs: Any = registry.describe(other)
  own: Any = registry.describe(encoder) or {'config': {}}
  if theirs != own:
    here = own['config']
    unlike = [f'{k}={v}' for k, v in theirs['config'].items() if here.get(k, v) != v]
    said = f' of {", ".join(unlike)}' if unlike else ''
    raise ValueError(
      f'{source} is not the {encoder.name} of this run, as its card says{said}; a run '
      'must start from the weights of the same encoder.'
    )


def _read(
  config: run_config.RunConfig, encoder: network.Network, statistics: object
) -> tuple[str, Mapping[str, np.ndarray], Mapping[str, np.ndarray]]:
  """Returns the weights' source, the parameters, and the statistics if wanted."""
  source = str(config.init_from)
  found: Mapping[str, np.ndarray] | None = None
  if backbones.is_backbone(source):
    grid = encoder.grid if isinstance(encoder, vit.VisionTransformer) else None
    found = backbones.read(source, config.encoder, grid)
  elif backbones.is_keras(source, config.encoder):
    found = keras_applications.read(source, encoder.plain)
  elif _is_encoder(source):
    found = keras_import.params(encoder.plain, encoder_file.read(source))
  if found is not None:
    prefix = dual_encoder.encoder_prefix(encoder)
    named = parameter_names.with_prefix(found, prefix)
    return source, named, named
  folder = pathlib.Path(source) / _CHECKPOINTS
  places = [algorithms.TRAINABLE, *([algorithms.STATISTICS] if statistics else [])]
  round, (params, *kept) = checkpoints.read_newest_parts(folder, places)
  prefix = dual_encoder.encoder_prefix(encoder)
  merged = frozen_base.merged(source, parameter_names.select(params, prefix))
  params.update(parameter_names.with_prefix(merged, prefix))
  return f'{source} after round {round}', params, kept[0] if kept else {}


def take(
  source: str,
  own: Mapping[str, Any],
  found: Mapping[str, np.ndarray],
  encoder: network.Network,
) -> collections.OrderedDict[str, Any]:
  """Returns a run's initial weights, replaced by another run's where that has them.

  A head is taken completely or not at all. A printed sentence says which heads start
  afresh. A trained target that is not taken is a copy of the resulting networks.

  Args:
    source: The other run, for the messages.
    own: Name -> the initial value.
    found: The other run's weights.
    encoder: The network that they must include.

  Raises:
    ValueError: If a weight of the encoder is missing or has another shape.
  """
  prefix = f'{dual_encoder.encoder_prefix(encoder)}/'
  misfits = {
    name: np.shape(value)
    for name, value in own.items()
    if name not in found or found[name].shape != np.shape(value)
  }
  for name, shape in misfits.items():
    if name.startswith(prefix):
      there = list(found[name].shape) if name in found else 'absent'
      raise ValueError(
        f'{source} does not fit: its {name} is {there}; it must be {list(shape)}.'
      )
  fresh = set(map(parameter_names.prefix_of, misfits))
  if heads := sorted(fresh - {target.TARGET}):
    print(f'not taken from {source} but initialised: {", ".join(heads)}', flush=True)
  result = collections.OrderedDict(own)
  for name, value in own.items():
    if parameter_names.prefix_of(name) not in fresh:
      result[name] = _like(value, found[name])
  if target.TARGET in fresh:
    copied = parameter_names.select(result, target.TARGET)
    online = {name: result[name] for name in copied}
    result.update(parameter_names.with_prefix(online, target.TARGET))
  return result


def _like(value: Any, array: np.ndarray) -> Any:
  """Converts an array to the kind and dtype of a value in the state."""
  array = array.astype(np.asarray(value).dtype)
  return tf.constant(array) if tf.is_tensor(value) else array
