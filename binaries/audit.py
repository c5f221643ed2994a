r"""Audits with canary clients how a private run combines what clients send.

  python -m binaries.audit --run=runs/private

Canaries send random directions a thousand times longer than the clip norm of updates
through the aggregation of the run's configuration, including packs of clients. How
clearly their presence shows in what is released gives a lower bound on epsilon. They
are released as often as the round of the run that was repeated most. If the bound
exceeds what the run's ledger claims for that round, a clip or the noise is broken, and
the exit status is 1. The run need not have finished, and nothing is written
to it.
"""

import dataclasses
import pathlib
from typing import Annotated

from binaries.config import changing
from binaries.config import run_config
from binaries.config import runtimes
from binaries.launching import program
from tff_ssl.computing import kinds


@dataclasses.dataclass(frozen=True)
class Options:
  """A run, and how many canaries there are.

  Attributes:
    run: The folder of a run.
    canaries: Canary clients in each round.
    canary_rounds: Rounds, each with new canaries.
    seed: Seed of the canaries' directions; noise has no seed.
  """

  run: str
  canaries: Annotated[int, kinds.Range(2)] = 200
  canary_rounds: kinds.Count = 5
  seed: run_config.Seed = 0


def main(options: Options) -> None:
  """Audits."""
  folder = pathlib.Path(options.run)
  config = changing.read(folder, keep_paths=False)
  if not config.is_private:
    raise ValueError(
      f'{folder} is a run with --aggregation={config.aggregation.kind}; an audit needs '
      'a run with private or distributed.'
    )
  # Whatever executed the rounds of the run: only packs count.
  here = runtimes.InProcess(packs=config.runtime.packs)
  config = dataclasses.replace(config, runtime=here)
  # TensorFlow is imported only now, when the command line has been checked.
  program.import_tff()
  from binaries.experiment import auditing

  auditing.audit(folder, config, options.canaries, options.canary_rounds, options.seed)


if __name__ == '__main__':
  program.run('audit', resumes=False)
