"""What is wrong with a run, as far as that shows without data and without TensorFlow.

The rest is checked once TensorFlow is imported (`experiment.running.check`).
"""

from collections.abc import Collection, Sequence
import os

from binaries.config import backbones
from binaries.config import data as data_lib
from binaries.config import programs
from binaries.config import run_config
from binaries.config import task_defaults
from tasks import registry
from tff_ssl.computing import kinds
from tff_ssl.computing import near_names
from tff_ssl.evaluation import method_names
from tff_ssl.partition import spec
from tff_ssl.runs import run_config as stored_config
from tff_ssl.settings import aggregations
from tff_ssl.settings import methods
from tff_ssl.settings import parts
from tff_ssl.storage import files

# Tasks that have hospitals.
_WITH_HOSPITALS = ('ham10000', 'ham10000_records')


def check(config: run_config.RunConfig) -> None:
  """Checks a run.

  Raises:
    ValueError: If it has no folder, or a field is malformed, or does nothing.
    OSError: If its folder cannot be made.
  """
  programs.check(config)
  _check_unused(config)
  files.check_folder(folder_of(config))
  _check_source(config)
  check_data(config)
  _check_privacy(config)
  check_evaluation(config)
  _check_evaluation_used(config)


def _check_unused(config: run_config.RunConfig) -> None:
  """Refuses values that would promise something, and are not in config.json.

  Only a run from Python has them: flags of what a method does not use are refused. Of
  the parts that are not used at all, rows may have values.
  """
  for name in config.unused:
    part, _, field = name.partition('.')
    if not field and part not in ('aggregation', *methods.START):
      continue
    value, default = getattr(config, part), getattr(type(config), part, None)
    if field:
      value, default = (getattr(each, field, None) for each in (value, type(value)))
    if value != default:
      where = f'{field} of {part}' if field else part
      raise ValueError(
        f'{where} is {getattr(value, kinds.KIND, value)} with the method '
        f'{config.method.kind}, which does not use it; leave it out.'
      )


def folder_of(config: run_config.RunConfig) -> str:
  """Returns the folder of a run.

  Raises:
    ValueError: If it has none.
  """
  if not config.run_dir:
    raise ValueError('run_dir is not given; it must name a folder, new or of this run.')
  return config.run_dir


def _check_source(config: run_config.RunConfig) -> None:
  """Checks what a run that has not begun starts from."""
  source = config.init_from
  if not source or os.path.isfile(os.path.join(folder_of(config), stored_config.NAME)):  # noqa: PTH113, PTH118
    return
  if backbones.is_backbone(source):
    backbones.read(source, config.encoder)
  elif (
    not backbones.is_keras(source, config.encoder)
    and not source.endswith('.keras')
    and os.path.isfile(source)  # noqa: PTH113
  ):
    raise ValueError(
      f'init_from is {source!r}, which is a file; it must be the folder of a run, an '
      'encoder.keras, a .safetensors file, or a model of keras.applications.'
    )


def check_task(name: str, task: str) -> None:
  """Raises ValueError if there is no such task; `name` is what it is given as."""
  if task not in registry.TASKS:
    raise ValueError(
      f'{name} is {task!r}; it must be one of {", ".join(registry.TASKS)}.'
      f'{near_names.question(task, registry.TASKS, may_be_own=True)}'
    )


def check_data(config: run_config.RunConfig) -> None:
  """Checks what is read and dealt.

  Raises:
    ValueError: If a field is malformed, missing, or does nothing for the task.
  """
  data = config.data
  check_task('task', config.task)
  for name, takers in _takers().items():
    if getattr(data, name) != getattr(type(data)(), name) and config.task not in takers:
      flag = {'dir': '--data_dir', 'columns': '--columns'}.get(name, f'--data={name}')
      raise ValueError(
        f'{flag} is given with --task={config.task}; it is for {", ".join(takers)} '
        'only.'
      )
  task_defaults.arguments(data)
  task_defaults.reading(data)
  if config.partition == data_lib.HOSPITAL and config.task not in _WITH_HOSPITALS:
    raise ValueError(
      f'--partition={data_lib.HOSPITAL} is given with --task={config.task}; it is for '
      f'{", ".join(_WITH_HOSPITALS)} only.'
    )
  if needs_features(config):
    if not data.partition_encoder:
      raise ValueError(
        f'--partition={config.partition} is given without --data=partition_encoder; it '
        'must name the encoder.keras of a run.'
      )
  elif data.partition_encoder is not None:
    raise ValueError(
      '--data=partition_encoder is given without a --partition of clusters; it is for '
      'such partitions only.'
    )


def _takers() -> dict[str, Collection[str]]:
  """Returns the tasks that take each field of `--data`."""
  names = ('classify', 'folders', 'groups', 'columns', 'follow_links', 'scaling')
  return {
    'dir': (*registry.DOWNLOADED, *registry.OF_FILES),
    'download': registry.DOWNLOADED,
    'strict': registry.OF_IMAGES,
    'fit': registry.OF_PICTURES,
    'pixel_range': registry.OF_PICTURES,
    **{name: registry.with_option(name) for name in names},
  }


def needs_features(config: run_config.RunConfig) -> bool:
  """Returns whether the clients are clusters of an encoder's features."""
  if config.partition is None or config.partition == data_lib.HOSPITAL:
    return False
  return spec.needs_features(spec.parse(config.partition))


def _check_privacy(config: run_config.RunConfig) -> None:
  """Checks that a private run says how much noise there is, and what it is for."""
  own, given = config.aggregation, f'--aggregation={config.aggregation.kind}'
  if not isinstance(own, aggregations.Private | aggregations.Distributed):
    return
  if own.noise_multiplier is None and own.epsilon is None:
    raise ValueError(
      f'{given} is given without epsilon or noise_multiplier; one of them must say how '
      'much noise there is.'
    )
  if own.signal_rounds and config.evaluation.signals_every is None:
    raise ValueError(
      f'signal_rounds of --aggregation is {own.signal_rounds} with '
      '--evaluation=signals_every=none; it must be 0, because nothing is measured.'
    )


def check_evaluation(
  config: run_config.RunConfig, more_methods: Sequence[str] = ()
) -> None:
  """Checks the evaluation.

  Args:
    config: The run.
    more_methods: Methods that the program has in addition to those of every run.

  Raises:
    ValueError: If a method is unknown, or a field does nothing.
  """
  own, retrieval = config.evaluation, method_names.RETRIEVAL
  own_names = (name for name in parts.METRICS if name not in method_names.METHODS)
  allowed = (*method_names.METHODS, retrieval, *more_methods, *own_names)
  _check_names('methods', own.methods, allowed)
  _check_names('personal', own.personal or (), method_names.PERSONAL)
  if not own.methods:
    some = ', '.join(method_names.METHODS)
    raise ValueError(f'methods of --evaluation is empty; it must be some of {some}.')
  if not own.label_fractions:
    raise ValueError(
      'label_fractions of --evaluation is empty; it must be numbers in (0, 1], as in '
      '0.01/0.1/1.'
    )
  if retrieval in own.methods and config.task not in registry.PAIRS:
    raise ValueError(
      f'methods of --evaluation has {retrieval!r}, which needs two modalities; the '
      f'task {config.task!r} has one; {", ".join(registry.PAIRS)} have two.'
    )
  if own.baselines and set(own.methods) == {retrieval}:
    raise ValueError(
      f'baselines of --evaluation is true, but methods has only {retrieval}, which is '
      'compared with chance.'
    )


def _check_names(field: str, names: Sequence[str], allowed: Sequence[str]) -> None:
  for name in names:
    if name not in allowed:
      raise ValueError(
        f'{field} of --evaluation has {name!r}; it must be one of {", ".join(allowed)}.'
        f'{near_names.question(name, allowed, field == "methods")}'
      )


def _check_evaluation_used(config: run_config.RunConfig) -> None:
  """Refuses fields of the evaluation that are not as by default and do nothing."""
  own, default = config.evaluation, type(config.evaluation)()
  # Clients' own encoders are always evaluated by kNN.
  by_knn = 'knn' in own.methods or own.knn_every != 0 or own.wants_personal
  for field, is_used, without in (
    ('knn_k', by_knn, 'methods has no knn and knn_every is 0'),
    ('finetune_steps', 'finetune' in own.methods, 'methods has no finetune'),
    ('finetune_rate', 'finetune' in own.methods, 'methods has no finetune'),
    ('supervised_steps', own.baselines, 'baselines is false'),
  ):
    value = getattr(own, field)
    if value != getattr(default, field) and not is_used:
      raise ValueError(
        f'{field} of --evaluation is {value}, but {without}; leave it out.'
      )
