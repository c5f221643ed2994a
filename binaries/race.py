r"""Races tff_ssl against other libraries, and writes the section of docs/benchmarks.md.

  python -m binaries.race
  python -m binaries.race --peers=tff_ssl,FedJAX --regimes=A --losses=simclr
  python -m binaries.race --race_clients=4 --race_examples=4 --repeats=1 --out=try.md

pfl-research, Flower and FedJAX train the same ResNet-8 from the same weights on the
same images. Each uses its own API in its own environment under build/race, which is
made from pinned packages of the package index. Only one works at a time. If a library
cannot be measured, a line says why.

The numbers go to race.json next to the page, the figure to figures/race.png, and the
tables between the marks of the page. --measure=false writes the page from existing
numbers.
"""

from collections.abc import Sequence
import datetime
import pathlib
import shlex
import signal
import sys
from typing import Any

from absl import flags

from binaries.benchmarking import report as machine
from binaries.benchmarking.racing import environments
from binaries.benchmarking.racing import measure
from binaries.benchmarking.racing import report
from binaries.benchmarking.racing import work
from binaries.benchmarking.racing.peers import protocol
from binaries.flags import outputs
from binaries.flags import paths
from binaries.flags import program
from binaries.launching import side_by_side
from tff_ssl.execution import contexts
from tff_ssl.storage import files

_PEERS = flags.DEFINE_list(
  'peers', list(environments.PEERS), f'Some of {", ".join(environments.PEERS)}.'
)
_REGIMES = flags.DEFINE_list(
  'regimes', list(work.REGIMES), 'A: 128 clients of 4; B: 5 of 500 in batches of 50.'
)
_LOSSES = flags.DEFINE_list(
  'losses', list(protocol.LOSSES), f'Some of {", ".join(protocol.LOSSES)}.'
)
_REPEATS = flags.DEFINE_integer(
  'repeats', 3, 'Blocks of rounds for each library.', lower_bound=1
)
_CLIENTS = flags.DEFINE_integer(
  'race_clients', None, "Clients instead of a regime's, for a trial.", lower_bound=2
)
_EXAMPLES = flags.DEFINE_integer(
  'race_examples', None, "Examples instead of a regime's.", lower_bound=2
)
_SEED = flags.DEFINE_integer(
  'race_seed', 0, 'Seed of images and weights.', lower_bound=0
)
_FOLDER = paths.define('race_dir', 'build/race', 'Folder of environments and logs.')
_MEASURE = flags.DEFINE_bool(
  'measure', True, 'Measure; if false, write the page from existing numbers.'
)
_OUT = 'docs/benchmarks.md'
# The flags that --help lists.
TAKEN = (
  'peers',
  'regimes',
  'losses',
  'repeats',
  'race_clients',
  'race_examples',
  'race_seed',
  'race_dir',
  'measure',
  'out',
)


def main() -> None:
  """Races, and writes the page."""
  # In the background of a shell, SIGINT is ignored.
  signal.signal(signal.SIGINT, signal.default_int_handler)
  for name, given, allowed in (
    ('peers', _PEERS.value, environments.PEERS),
    ('regimes', _REGIMES.value, work.REGIMES),
    ('losses', _LOSSES.value, protocol.LOSSES),
  ):
    _check(name, given, list(allowed))
  page = pathlib.Path(outputs.OUT.value or _OUT)
  if page.suffix != '.md':
    raise ValueError(f'out is {str(page)!r}; it must end in .md.')
  # Checked before minutes of work, not after them.
  if page.exists():
    report.write_section(page, '')
  elif not page.parent.is_dir():
    raise ValueError(f'out is {str(page)!r}; its folder must exist.')
  numbers = page.with_name('race.json')
  if _MEASURE.value:
    with side_by_side.sigterm_as_ctrl_c():
      files.write_json(numbers, _race())
  _write(files.read_json(numbers), page)
  print(f'Page: {page}')


def _race() -> dict[str, Any]:
  """Measures everything; returns the results with what they depend on."""
  about = machine.machine()
  folder = pathlib.Path(_FOLDER.value or '').absolute()
  logs = folder / 'logs'
  logs.mkdir(parents=True, exist_ok=True)
  pythons: dict[str, pathlib.Path | str] = {}
  for title in _PEERS.value:
    try:
      pythons[title] = environments.python(environments.PEERS[title], folder)
    except environments.UnavailableError as error:
      pythons[title] = str(error)
  heats = []
  for regime in _REGIMES.value:
    for loss in _LOSSES.value:
      workload = work.workload(regime, _CLIENTS.value, _EXAMPLES.value)
      of = work.problem(workload, loss, _SEED.value)
      rounds = measure.BLOCK_ROUNDS[regime]
      results = measure.heat(of, rounds, pythons, _REPEATS.value, logs)
      heats.append(
        {
          'regime': regime,
          'loss': loss,
          'clients': len(of.sizes),
          'examples': len(of.images),
          'batch_size': of.settings.batch_size,
          'block_rounds': rounds,
          'results': results,
        }
      )
      for title, result in results.items():
        print(f'{regime} {loss:13s} {title:12s} {_line(result)}', flush=True)
  return {
    'date': datetime.date.today().isoformat(),
    'command': shlex.join(['python', '-m', 'binaries.race', *sys.argv[1:]]),
    **about,
    'repeats': _REPEATS.value,
    'warm_up_rounds': measure.WARM_UP_ROUNDS,
    'seed': _SEED.value,
    'requirements': {
      title: environments.pins(environments.PEERS[title].requirements)
      for title in _PEERS.value
      if not environments.PEERS[title].is_own
    },
    'heats': heats,
  }


def _line(result: dict[str, Any]) -> str:
  """Returns the measurements of a library in one line."""
  if 'not_measured' in result:
    return f'not measured: {result["not_measured"]}'
  return (
    '{images_per_cpu_second:6.0f} images / CPU s  {images_per_second:6.0f} images / s'
    '  CPU ratio {cpu_ratio:5.2f}  peak {peak_pss_mib:5.0f} MiB'
    '  loss {loss_before:.3f} to {loss_after:.3f}'
  ).format(**result)


def _write(document: dict[str, Any], page: pathlib.Path) -> None:
  """Writes the figure, and the section of the page."""
  # Imported only here: on its first import matplotlib writes its cache, and may
  # print a message about it.
  from binaries.benchmarking.racing import figure

  path = page.parent / 'figures' / 'race.png'
  path.parent.mkdir(exist_ok=True)
  figure.write(document, path)
  text = report.section(document, 'figures/race.png')
  if not page.exists():
    page.write_text(f'{report.BEGIN}\n{report.END}\n', encoding='utf-8')
  whole = report.write_section(page, text)
  with files.atomic(page) as aside:
    aside.write_text(whole, encoding='utf-8')


def _check(name: str, given: Sequence[str], allowed: Sequence[str]) -> None:
  for value in given:
    if value not in allowed:
      raise ValueError(f'--{name} has {value!r}; allowed are {", ".join(allowed)}.')
  if not given or len(set(given)) < len(given):
    raise ValueError(
      f'--{name} is {",".join(given)!r}; it must be different values of '
      f'{", ".join(allowed)}.'
    )


if __name__ == '__main__':
  contexts.remove_default()
  program.run(main, TAKEN)
