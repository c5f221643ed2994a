"""Bad input soon ends with status 1 and one sentence that names what is wrong.

None may hang, and none may fill the memory. A trial is ten inputs: of the tables of
`cases`, or made up by hypothesis (flags, contents of files, configurations).
"""

from collections.abc import Sequence
import pathlib
import random
import tempfile

import hypothesis
from hypothesis import strategies
import pytest

from tests import forked
from tests.binaries import launch
from tests.torture import runs
from tests.torture.cases import data
from tests.torture.cases import made_up
from tests.torture.cases import making
from tests.torture.cases import strangers
from tff_ssl.storage import files

pytestmark = pytest.mark.torture
KINDS = ('table', 'flags', 'files', 'configurations')
_INPUTS = 10
# Time limit of a refusal: enough to load TensorFlow on a busy machine.
_SECONDS = 180.0
# Files that a program reads, with the program and its command line.
_FILES = (
  ('manifest.csv', 'dcco', f'--task=cases --data_dir={{d}} {making.RUN}'),
  ('a.tar', 'dcco', f'--task=cases --data_dir={{d}}/a.tar {making.RUN}'),
  ('t.csv', 'dcco', f'--task=features --data_dir={{d}}/t.csv {making.RUN}'),
  ('t.npz', 'dcco', f'--task=features --data_dir={{d}}/t.npz {making.RUN}'),
  ('t.parquet', 'dcco', f'--task=features --data_dir={{d}}/t.parquet {making.RUN}'),
  ('g.csv', 'dec_ssl', f'--method=graph:path={{d}}/g.csv {making.RUN}'),
  ('e.keras', 'dcco', f'--init_from={{d}}/e.keras {making.RUN}'),
  ('e.keras', 'embed', '--run={d}/e.keras --images={d} --out={d}/o'),
  ('e.h5', 'embed', '--run={d}/e.h5 --images={d} --out={d}/o'),
  (
    'encoder.keras',
    'partition',
    '--partition=clusters:clients=2 --data=partition_encoder={d}/encoder.keras',
  ),
  ('run/config.json', 'evaluate', '--run={d}/run'),
  ('run/metrics.csv', 'compare', '--runs={d}/run --out={d}/o'),
)
_BEGINNINGS = (
  b'',
  b'PK\x03\x04',
  b'PAR1',
  b'\x89HDF\r\n\x1a\n',
  b'{',
  b'[1',
  b'a,label\n',
)


def test_bad_input_is_refused_in_a_sentence(trial, tally):
  if trial.kind == 'table':
    table = _table()
    first = _INPUTS * trial.number
    for number in range(first, first + _INPUTS):
      _try(table[number % len(table)])
  else:
    made_of = {
      'flags': made_up.flags,
      'files': _bad_files,
      'configurations': made_up.configurations,
    }
    strategy = made_of[trial.kind]()
    seeded = hypothesis.seed(trial.number)
    few = hypothesis.settings(
      max_examples=_INPUTS,
      deadline=None,
      database=None,
      phases=[hypothesis.Phase.generate],
      suppress_health_check=list(hypothesis.HealthCheck),
    )
    seeded(few(hypothesis.given(strategy)(_try)))()
  tally[f'inputs: {trial.kind}'] += _INPUTS


def _table() -> Sequence[making.Case]:
  """Returns the cases, shuffled, so that even a few of them are of all sorts."""
  cases = [case for module in (data, strangers) for case in module.cases()]
  # A worker that nobody started, for which a run waits a minute.
  line = f'{making.RUN} --runtime=worker:address=localhost:1'
  cases.append(making.case('dcco', line, 'localhost:1'))
  random.Random(0).shuffle(cases)
  return cases


def _try(case: making.Case) -> None:
  """Tries an input in a folder of its own."""
  with tempfile.TemporaryDirectory() as folder:
    case.make(pathlib.Path(folder))
    arguments = case.arguments.replace('{d}', folder).split()
    module = case.program if '.' in case.program else f'binaries.{case.program}'
    process = forked.Process(module, *arguments)
    ended = launch.end(process, pathlib.Path(folder), _SECONDS)
    assert runs.is_sentence(ended), (case, ended)
    for word in case.words:
      assert word.replace('{d}', folder) in ended.stderr, (case, ended)
    # Nothing is half-written.
    paths = [*pathlib.Path(folder).rglob('*')]
    assert not [path for path in paths if files.is_aside(path)], (case, paths)


@strategies.composite
def _bad_files(draw) -> making.Case:
  """Bytes in place of what a program reads."""
  name, program, line = draw(strategies.sampled_from(_FILES))
  content = draw(strategies.sampled_from(_BEGINNINGS))
  content += draw(strategies.binary(max_size=100))
  makes = [making.run()] if name.startswith('run/') else []
  # A table's last line without its end was torn by a kill, and is left out.
  makes.append(making.binary(name, content + b'\n'))
  return making.case(program, line, pathlib.Path(name).name, *makes)
