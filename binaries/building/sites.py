"""Runs at sites: what coordinator and sites build from one configuration."""

from collections.abc import Mapping
import dataclasses
import hashlib
import pathlib
from typing import Any

import tensorflow as tf

from binaries.building import aggregation
from binaries.building import algorithms
from binaries.building import encoders
from binaries.building import objectives
from binaries.config import run_config
from binaries.config import runtimes
from tasks import at_sites
from tasks import task_types
import tff_ssl
from tff_ssl.encoders import network
from tff_ssl.federated import packs
from tff_ssl.federated import phase_graph
from tff_ssl.runs import own_modules
from tff_ssl.runs.privacy import accounting
from tff_ssl.settings import aggregations
from tff_ssl.settings import encoders as encoder_kinds
from tff_ssl.settings import parts
from tff_ssl.sites import keys as keys_lib

# Packs of a site's clients; numbers would depend on the cores of its machine.
_PACKS = 2
_SOURCES = ('tff_ssl', 'tasks', 'binaries')
_ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def of_run(config: run_config.RunConfig) -> runtimes.Sites | None:
  """Returns the sites of a run; None: it has none."""
  return config.runtime if isinstance(config.runtime, runtimes.Sites) else None


def check(config: run_config.RunConfig) -> None:
  """Refuses a run that cannot be at sites, or whose sites are not said.

  Raises:
    ValueError: If a field is missing, or does not fit.
  """
  own = of_run(config)
  if (own is None) != (config.task != at_sites.NAME):
    raise ValueError(
      f'--task={config.task} is given with --runtime={config.runtime.kind}; the task '
      f'{at_sites.NAME} and the runtime {runtimes.Sites.kind} go together, because the '
      'data are at the sites.'
    )
  if own is None:
    return
  for name in ('mailbox', 'keys'):
    if not getattr(own, name):
      raise ValueError(f'{name} of --runtime is not given; it must name a folder.')
  if config.partition not in (None, 'client'):
    raise ValueError(
      f'--partition={config.partition} is given with --task={at_sites.NAME}; each site '
      'says who its clients are.'
    )
  if own.parts is not None:
    raise ValueError('parts of --runtime is given; each site is a part.')
  names = names_of(own)
  if own.fewest is not None and own.fewest > len(names):
    raise ValueError(
      f'fewest of --runtime is {own.fewest}; it must be at most {len(names)}, the '
      'number of sites.'
    )
  if own.masked and (own.fewest or len(names)) < 2:
    raise ValueError('masked of --runtime is true; a round must have two sites.')
  if config.objective.labelled or config.uses('labels'):
    raise ValueError(f'{config.title} learns from labels; at sites nothing may.')
  if config.encoder.partial:
    raise ValueError(
      f'{" and ".join(config.encoder.partial)} of --encoder is given; sites have no '
      'weights that could stay.'
    )
  if not config.method.federated or algorithms.of(config).numbered:
    raise ValueError(
      f'--method={config.method.kind} is given with --runtime={own.kind}; its clients '
      'must be the same for the server, without numbers.'
    )
  is_own = config.aggregation.kind in parts.AGGREGATIONS
  if is_own or isinstance(config.aggregation, aggregations.Secure):
    raise ValueError(
      f'--aggregation={config.aggregation.kind} is given with --runtime={own.kind}; it '
      'must be plain, private or distributed; masked of --runtime hides the sums of a '
      'site.'
    )
  if parties_of(config) is not None and not own.masked:
    raise ValueError(
      f'masked of --runtime is false with --aggregation={config.aggregation.kind}; it '
      'must be true, because only the total over all sites has all of the noise.'
    )
  if config.is_private:
    _check_private(config, own)


def _check_private(config: run_config.RunConfig, own: runtimes.Sites) -> None:
  """Refuses a private run at sites whose cost would not be known before it begins."""
  everybody = own.clients == config.clients_per_round
  aggregation.check_cohorts(config, algorithms.of(config).keeps_states, everybody)
  noise: Any = config.aggregation
  must = {
    f'cohorts of --aggregation is {noise.cohorts}; it must be fixed': (
      noise.cohorts != accounting.FIXED
    ),
    'update_clip of --aggregation is none; it must be given': noise.update_clip is None,
    'statistics_clip of --aggregation is none; it must be given': (
      noise.statistics_clip is None and algorithms.of(config).sends_encodings
    ),
    'clip_quantile of --aggregation is given; it must be none': (
      noise.clip_quantile is not None
    ),
    'signal_rounds of --aggregation is given; it must be 0': noise.signal_rounds > 0,
    'participation is given; it must be none': config.participation is not None,
    'fewest of --runtime is given; it must be none': own.fewest is not None,
    'classes of --runtime is given; it must be none': own.classes is not None,
    'clients of --runtime is below clients_per_round; it must be given': (
      (own.clients or 0) < config.clients_per_round
    ),
  }
  for sentence, is_wrong in must.items():
    if is_wrong:
      raise ValueError(
        f'{sentence}, because sites must know what a round of a private run is.'
      )


def of_all_sites(config: run_config.RunConfig) -> tuple[run_config.RunConfig, int]:
  """Returns a run as one of all sites' clients together, and how many these are.

  At least so many: a site that has more gives less of each to a round, and so costs its
  clients less than the ledger says.

  Args:
    config: The run, whose cohort is one site's.
  """
  own: Any = config.runtime
  count = len(names_of(own))
  cohort = count * config.clients_per_round
  population = count * max(own.clients or 0, config.clients_per_round)
  together = dataclasses.replace(config, clients_per_round=cohort, participation=None)
  return together, population


def parties_of(config: run_config.RunConfig) -> int | None:
  """Returns how many sites add the noise of a run; None: the coordinator does, or none.

  Args:
    config: The run.
  """
  if not isinstance(config.aggregation, aggregations.Distributed):
    return None
  own: Any = config.runtime
  return len(names_of(own))


def is_judged(config: run_config.RunConfig) -> bool:
  """Returns whether sites are asked for sums by which to judge the encoder."""
  asked = config.evaluation.signals_every is not None or bool(classes_of(config))
  return asked and not config.is_private


def classes_of(config: run_config.RunConfig) -> tuple[str, ...]:
  """Returns the names of the classes by which sites judge; () if by none."""
  own = of_run(config)
  return () if own is None else own.classes or ()


def names_of(own: runtimes.Sites) -> tuple[str, ...]:
  """Returns the names of a run's sites, sorted.

  Raises:
    ValueError: If there is none.
  """
  found = own.names
  if found is None:
    public = pathlib.Path(str(own.keys)).glob(f'*{keys_lib.PUBLIC}')
    found = tuple(path.name.removesuffix(keys_lib.PUBLIC) for path in public)
  names = tuple(sorted({*found} - {keys_lib.COORDINATOR}))
  if not names:
    raise ValueError(
      f'{own.keys} has no {keys_lib.PUBLIC} file of a site; each site gives its own.'
    )
  return names


def offered(config: run_config.RunConfig) -> run_config.RunConfig:
  """Returns a run as sites take part in it: nothing in it is the coordinator's alone.

  Args:
    config: The coordinator's run, with its settled values.
  """
  encoder: Any = config.encoder
  if encoder.precision == encoder_kinds.AUTO:
    # What is faster differs from site to site.
    encoder = dataclasses.replace(encoder, precision=network.FLOAT32)
  runtime: Any = config.runtime
  packs_of_site = _PACKS if runtime.packs is None else runtime.packs
  return dataclasses.replace(
    config,
    encoder=encoder,
    runtime=dataclasses.replace(
      runtime, mailbox=None, keys=None, packs=packs_of_site, names=names_of(runtime)
    ),
    data=dataclasses.replace(type(config.data)(), image_size=config.data.image_size),
    init_from=None,
    run_dir=None,
  )


@dataclasses.dataclass(frozen=True)
class Built:
  """What a run trains.

  Attributes:
    encoder: The network.
    objective: What clients minimise.
    graph: The process, of which coordinator and sites compute their parts.
  """

  encoder: network.Network
  objective: Any
  graph: phase_graph.Graph


def build(
  config: run_config.RunConfig,
  task: task_types.Task,
  element_spec: Mapping[str, tf.TensorSpec],
) -> Built:
  """Builds what a run trains, the same at the coordinator and at each site.

  Args:
    config: The run, as it was `offered`.
    task: The task of the coordinator, or of the site.
    element_spec: Of one example of a client.
  """
  encoder = encoders.build(config, task)
  objective = objectives.build(config, encoder, task)
  algorithm = algorithms.of(config).build(config, objective)
  spec = packs.PackSpec(element_spec) if config.runtime.packs else element_spec
  together, population = of_all_sites(config)
  combined = aggregation.build(together, [1] * population)
  return Built(encoder, objective, phase_graph.Graph(algorithm, spec, combined))


def source() -> dict[str, Any]:
  """Returns what tff_ssl is here: its version, a digest of its files, and imports."""
  digest = hashlib.sha256()
  for top in _SOURCES:
    for path in sorted((_ROOT / top).rglob('*.py')):
      digest.update(path.relative_to(_ROOT).as_posix().encode())
      digest.update(hashlib.sha256(path.read_bytes()).digest())
  own = {'version': tff_ssl.__version__, 'digest': digest.hexdigest()}
  imports = own_modules.digests()
  return {**own, own_modules.STORED: imports} if imports else own


def check_source(other: Any) -> None:
  """Refuses an offer of another tff_ssl than is here.

  Args:
    other: The coordinator's `source`, as the offer says.

  Raises:
    ValueError: If it is another.
  """
  if isinstance(other, Mapping):
    own_modules.check_loaded('The offered run', other)
  own = source()
  if own != other:
    raise ValueError(
      f'The coordinator has tff_ssl {other}; it must be {own}, as at this site: both '
      'must be the same checkout.'
    )
