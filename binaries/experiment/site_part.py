"""A site's part in a run: `binaries.site`.

It builds the offered run from its own checkout and its own data, shows what would leave
it, and takes part once a person, or a script that knows the offer, has agreed.
docs/sites.md says how coordinator and sites are used.
"""

from collections.abc import Callable, Iterator, Sequence
import contextlib
import dataclasses
import pathlib
import sys
from typing import Any

import numpy as np

from binaries.building import data as building_data
from binaries.building import sites
from binaries.config import programs
from binaries.config import run_config
from binaries.config import runtimes
from binaries.experiment import at_sites
from binaries.experiment import site_judging
from tasks import task_types
from tff_ssl.computing import inert
from tff_ssl.execution import contexts
from tff_ssl.partition import describe
from tff_ssl.runs import progress_display
from tff_ssl.runs import run_config as stored_config
from tff_ssl.runs import stateful_rounds
from tff_ssl.settings import aggregations
from tff_ssl.settings import roles
from tff_ssl.simulation import client_data
from tff_ssl.simulation import cohort_sampling
from tff_ssl.simulation import simulated_clients
from tff_ssl.sites import keys as keys_lib
from tff_ssl.sites import mailbox as mailbox_lib
from tff_ssl.sites import messages
from tff_ssl.sites import page
from tff_ssl.sites import participation
from tff_ssl.sites import rules as rules_lib
from tff_ssl.sites import site
from tff_ssl.storage import files

# Of an example's id: the bits that tell the examples of a site apart. Those above tell
# sites apart, so that no two share the draws of their views.
_ID_BITS = 32
# How values of clients are combined, for people.
_COMBINED = {
  aggregations.Plain.kind: 'plain: sums as they are',
  aggregations.Private.kind: 'private: each client is clipped here, noise is added at '
  'the coordinator',
  aggregations.Distributed.kind: 'distributed: each client is clipped here, and each '
  'site adds its share of the noise',
}
# Digits of an offer by which a person agrees to it.
_DIGITS = 12


@dataclasses.dataclass(frozen=True)
class Settings:
  """A site, as its own command line says it.

  Attributes:
    name: Its name.
    mailbox: Folder of the messages.
    keys: Folder of its key, and of the others' public ones.
    folder: Its own, for its log, its clients' states and what it has read.
    rules: File of what it agrees to; None: `rules.toml` in its folder, if it is there.
    accept: The first digits of the offer that a person has agreed to; None: it is asked
      for on the terminal.
  """

  name: str
  mailbox: str
  keys: str
  folder: str
  rules: str | None = None
  accept: str | None = None


def take_part(settings: Settings, own: run_config.RunConfig) -> None:
  """Takes part in a run, as one of its sites, until the coordinator ends it.

  Args:
    settings: The site.
    own: A run of the site's task and data; nothing else of it counts.

  Raises:
    ValueError: If the site cannot take part, or does not agree.
  """
  folder = pathlib.Path(settings.folder)
  folder.mkdir(parents=True, exist_ok=True)
  with stored_config.locked(folder):
    _take_part(settings, own, folder)


def _take_part(
  settings: Settings, own: run_config.RunConfig, folder: pathlib.Path
) -> None:
  keys = keys_lib.Keys(settings.keys)
  rules = rules_lib.read(
    settings.rules or folder / rules_lib.NAME, settings.rules is not None
  )
  ends = site.Ends(
    mailbox_lib.Mailbox(settings.mailbox), keys, folder, settings.name, at_sites.say
  )
  at_sites.say(f'{settings.name}: waiting for an offer in {settings.mailbox}')
  offer = ends.offer()
  if not ends.has_ended():
    with _refusing(ends):
      config = _config(own, offer)
      runtime, kind = _runtime(config), config.aggregation.kind
      rules.check_run(config.method.kind, kind, config.rounds, runtime.masked)
    if runtime.masked:
      for other in runtime.names or ():
        keys.public(other)
    ends.masked = runtime.masked
    _compute(settings, config, ends, rules, keys)
  at_sites.say(f'{settings.name}: the run has ended; what left is in {folder}')


def _compute(
  settings: Settings,
  config: run_config.RunConfig,
  ends: site.Ends,
  rules: rules_lib.Rules,
  keys: keys_lib.Keys,
) -> None:
  """Shows what would leave the site, and takes part if a person agrees."""
  # What is wrong with the data is this site's alone, and can be mended.
  task, held = read(config, settings.name)
  secret = keys.secret(f'cohorts {ends.run}') if config.is_private else None
  cohorts = cohorts_of(settings.name, config, held, secret)

  def drawn(round: int) -> Sequence[str]:
    own = cohorts(round)
    rules.check_round(len(own), sum(held.num_examples(each) for each in own))
    return own

  with _refusing(ends):
    _check_clients(config, held)
    first = drawn(1)
    built = sites.build(config, task, held.element_type_structure)
    process = participation.Answering(built.graph, ends, sites.parties_of(config))
  joins = {'clients': len(held.ids), 'examples': int(held.sizes.sum())}
  judged = site_judging.asked(config, built.encoder) if rules.judging else {}
  text = page.text(
    settings.name,
    ends.run,
    _settings(config),
    process.exchanges,
    **joins,
    clients_per_round=len(first),
    masked=ends.masked,
    judged=judged,
  )
  print(text, flush=True)
  _agree(settings, ends.run)
  stored = stored_config.build(run_config.to_json(config), ends.run)
  files.write_json(ends.folder / stored_config.NAME, stored)
  judge = site_judging.Judge(config, task, built.encoder, held, rules.judging)
  clients = simulated_clients.Clients(held, num_packs=config.runtime.packs)
  rounds, cohort_of = _rounds(process, clients)
  shown = _Shown(config.rounds)

  def cohort(round: int) -> Any:
    shown.begin(round)
    if round > config.rounds:
      raise participation.DeclinedError(
        f'The round is {round}; by the offer there are {config.rounds}.'
      )
    return cohort_of(drawn(round))

  with contexts.in_process(), contextlib.closing(shown):
    participation.take_part(ends, process, rounds, cohort, joins, shown, judge)


@contextlib.contextmanager
def _refusing(ends: site.Ends) -> Iterator[None]:
  """Refuses the run if it cannot be at this site, for a reason that may leave."""
  try:
    yield
  except participation.DeclinedError as declined:
    ends.refuse(str(declined))
    raise ValueError(str(declined)) from declined
  except ValueError as error:
    ends.refuse(str(error))
    raise


class _Shown:
  """Shows the progress of rounds, from the first that this site takes part in."""

  def __init__(self, rounds: int):
    self._rounds = rounds
    self._display: progress_display.Progress | None = None

  def begin(self, round: int) -> None:
    """Begins a round, from which the first one's time is taken."""
    if self._display is None:
      self._display = progress_display.create(self._rounds, round - 1)

  def __call__(self, round: int) -> None:
    """Shows that a round has ended."""
    if self._display is not None:
      self._display.update(round, {})

  def close(self) -> None:
    """Ends the display."""
    if self._display is not None:
      self._display.close()


def example_ids(name: str, own: np.ndarray) -> np.ndarray:
  """Returns ids of a site's examples, of which no other site has any.

  Args:
    name: The site's name.
    own: int64 [n], the ids of its task, below 2^32.
  """
  return (_number(name) << _ID_BITS) + own


def _number(name: str) -> int:
  """Returns 30 bits that stand for a name."""
  return int(messages.digest(name.encode())[:8], 16) >> 2


def _config(own: run_config.RunConfig, offer: messages.Message) -> run_config.RunConfig:
  """Returns the offered run, on the site's own data."""
  sites.check_source(offer.body.get(at_sites.SOURCE))
  if not isinstance(offer.body.get(at_sites.CONFIG), dict):
    raise ValueError(f'The offer has no {at_sites.CONFIG}; it must say what runs.')
  config = run_config.from_json(
    offer.body[at_sites.CONFIG], programs.all_methods(), keep_paths=False
  )
  size = config.data.image_size
  return dataclasses.replace(
    config,
    task=own.task,
    data=dataclasses.replace(own.data, image_size=size),
    partition=own.partition,
  )


def _runtime(config: run_config.RunConfig) -> runtimes.Sites:
  """Returns how the sites of an offered run work together."""
  own = sites.of_run(config)
  if own is None:
    raise ValueError(
      f'The offer has the runtime {config.runtime.kind}; it must be '
      f'{runtimes.Sites.kind}.'
    )
  return own


def read(
  config: run_config.RunConfig, name: str
) -> tuple[task_types.Task, client_data.ArrayClientData]:
  """Returns a site's data, and its clients; prints what they are.

  Args:
    config: The run, on the site's data.
    name: The site's name.
  """
  task = building_data.load_task(config)
  if config.partition is None and task.train.client is None and not task.case_level:
    raise ValueError(
      'The data of this site name no clients; --partition must say which pictures are '
      "one client's, as in iid:examples=4."
    )
  dealt = building_data.partition(config, task)
  report = describe.describe(dealt, task.train.label, task.num_classes)
  print(report.line(), flush=True)
  ids = example_ids(name, task.train.example_id)
  return task, client_data.ArrayClientData(task.train.fields, ids, dealt)


def _check_clients(
  config: run_config.RunConfig, held: client_data.ArrayClientData
) -> None:
  """Refuses a private run that counts on more or smaller clients than there are."""
  least, own = _runtime(config).clients or 0, config.aggregation
  if len(held.ids) < least:
    raise ValueError(
      f'This site has {len(held.ids)} clients; the run counts on {least} at least.'
    )
  if isinstance(own, aggregations.Distributed) and held.sizes.max() > own.examples:
    raise ValueError(
      f'A client of this site has more than {own.examples} examples; examples of '
      '--aggregation says how many one may have.'
    )


def _rounds(
  process: participation.Answering, clients: simulated_clients.Clients
) -> tuple[participation.Rounds, Callable[[Sequence[str]], Any]]:
  """Returns the site's rounds, and how they take a cohort."""
  if process.graph.algorithm.is_stateful:
    stateful = stateful_rounds.StatefulRounds(process, clients)
    return stateful, stateful.cohort
  return participation.PlainRounds(process), clients.cohort


def _settings(config: run_config.RunConfig) -> dict[str, str]:
  """Returns what a person may want to know of a run, by name."""
  parts = {'method': config.method, 'objective': config.objective}
  parts |= {'encoder': config.encoder, 'clients': config.clients}
  shown = {name: inert.line(str(own.kind)) for name, own in parts.items()}
  rest = {
    name: value
    for name, value in roles.flat(config).items()
    if name.partition('.')[0] in ('method', 'objective', 'aggregation') and '.' in name
  }
  return {
    **shown,
    **{name: inert.line(str(value)) for name, value in rest.items()},
    'augmentation': config.augmentation,
    'image_size': str(config.data.image_size),
    'rounds': str(config.rounds),
    'aggregation': _COMBINED[config.aggregation.kind],
  }


def _agree(settings: Settings, run: str) -> None:
  """Has a person agree to an offer, unless the command line does.

  Raises:
    ValueError: If nobody agrees.
  """
  wanted, given = run[:_DIGITS], settings.accept
  joined = pathlib.Path(settings.folder) / stored_config.NAME
  if given is None and joined.is_file():
    # A person has agreed before the site was started again.
    return
  while given is None and sys.stdin.isatty():
    typed = input(f'To take part, type {wanted}: ').strip().lower()
    given = typed if typed == wanted else None
  if given is None:
    raise ValueError(f'Nobody has agreed to the offer; --accept={wanted} does.')
  if len(given) < _DIGITS or not run.startswith(given):
    raise ValueError(f'--accept is {given!r}; the offer is {wanted}.')


def cohorts_of(
  name: str,
  config: run_config.RunConfig,
  held: client_data.ArrayClientData,
  seed: int | None = None,
) -> Callable[[int], Sequence[str]]:
  """Returns the function that draws a site's clients of a round.

  Args:
    name: The site's name.
    config: The run.
    held: The site's clients.
    seed: In a private run, where nobody else may know who is in a round, a secret;
      None: it follows from the run's and the name.
  """
  size = building_data.cohort_size(config, len(held.ids))
  if seed is None:
    seeds = np.random.SeedSequence([config.random_seed, _number(name)])
    seed = int(seeds.generate_state(1, np.uint64)[0]) >> 1
  return cohort_sampling.Cohorts(held.ids, size, seed)
