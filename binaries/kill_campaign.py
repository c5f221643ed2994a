r"""Kills a worker in every round of a run on several workers, and freezes others.

  python -m binaries.kill_campaign --workers=8 --kill_rounds=100 --frozen_rounds=10

All workers are on this machine. The program reports what was lost or changed compared
with the same run undisturbed, and exits with status 1 if anything was.
"""

import pathlib
import sys

from absl import flags

from binaries.flags import paths
from binaries.flags import program
from binaries.torturing import killing
from tff_ssl.execution import contexts

_WORKERS = flags.DEFINE_integer('workers', 8, 'Hosts.', lower_bound=3)
_ROUNDS = flags.DEFINE_integer(
  'kill_rounds', 100, 'Rounds; a worker is killed in each.', lower_bound=1
)
_FROZEN = flags.DEFINE_integer(
  'frozen_rounds', 10, 'Rounds in which another worker is frozen.', lower_bound=0
)
_FOLDER = paths.define(
  'campaign_dir', 'runs/kill_campaign', 'Folder of the two runs, which are replaced.'
)
# The flags that --help lists.
TAKEN = ('workers', 'kill_rounds', 'frozen_rounds', 'campaign_dir')


def main() -> None:
  """Runs the campaign."""
  settings = killing.Settings(_WORKERS.value, _ROUNDS.value, _FROZEN.value)
  found = killing.measure(settings, pathlib.Path(_FOLDER.value))
  width = max(map(len, found))
  for name, value in found.items():
    print(f'{name.ljust(width)}  {value}')
  if not killing.is_good(found):
    sys.exit(1)


if __name__ == '__main__':
  contexts.remove_default()
  program.run(main, TAKEN)
