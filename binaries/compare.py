r"""Compares runs in tables, curves and a page, over the seeds of each setting.

  python -m binaries.compare --runs='runs/*'
  python -m binaries.compare --runs=runs/dcco_0,runs/dcco_1,runs/fedavg_0 \
      --metric='linear/*,loss' --out=comparison

  python -m binaries.compare --runs='runs/robust_*' --vary_axis=clients.epochs,rounds

Runs form a group if they differ only in the seed and in settings that their config.json
calls neutral: folders, checkpoints, evaluation. A group is named by its method and
objective and by the settings in which groups differ, or by those of `--label`. The
table has a column for each question (encoder, probe, number of labels), with the mean
and sample deviation over a group's runs, after their last round, and a row for each
model that a method gives. The program writes to the folder `--out`: `comparison.csv`
(all numbers), tables for a document (`comparison.md`, and with `--formats=latex`
`comparison_page.tex` and `comparison_column.tex`), the curves as PNG, SVG and PDF, and
`comparison.html`, a self-contained page. Where five seeds or more are common, the
differences of methods are tested, and `ranks.png` shows three and more
(docs/compare_fairly.md). Unfinished runs are named, and count only if no run of their
group has finished. Groups whose numbers agree to the last digit are named too.

If runs have numbers per client (`binaries.fedema`: mu, divergence, lambda;
`binaries.ssfl`: accuracies of the client's own encoder), `clients.png` shows them over
the rounds for the first run of each group.

With `--checkpoint=best`, each run's numbers are from its best round on the validation
split (the run must have one), never on the test split:

  python -m binaries.compare --runs='runs/*' --checkpoint=best

With `--vary_axis`, `over.png` shows the accuracies against a setting, and `over.csv`
has them.
"""

from collections.abc import Iterable, Sequence
import dataclasses
import glob
import pathlib
import sys

from binaries.config import command_line
from binaries.config import comparisons
from binaries.config import outputs
from binaries.launching import program
from tff_ssl.runs import run_config


@dataclasses.dataclass(frozen=True, kw_only=True)
class Options(comparisons.Comparison):
  """Which runs are compared, and how.

  Attributes:
    runs: Run folders, or patterns of them such as 'runs/*'.
    out: The folder of the comparison.
  """

  runs: tuple[command_line.Path, ...]
  out: command_line.Path = 'runs/comparison'


def main(options: Options) -> None:
  """Compares runs."""
  # Only now, when the command line has been checked: pandas takes a second.
  from binaries.experiment import comparing

  out = outputs.new_folder(options.out)
  comparing.compare(_folders(options.runs), out, options)


def _folders(names: Sequence[str]) -> Iterable[pathlib.Path]:
  """Returns the run folders that names or patterns stand for.

  A folder that matches a pattern is skipped if it is no run with a round; a folder that
  is named directly must be one.
  """
  folders: list[pathlib.Path] = []
  for name in names:
    path = pathlib.Path(name)
    if path.exists() or glob.escape(name) == name:
      folders.append(path)
      continue
    # Not with pathlib, which would need the part before the pattern apart.
    matches = sorted(map(pathlib.Path, glob.glob(name, recursive=True)))  # noqa: PTH207
    found = [each for each in matches if (each / run_config.NAME).is_file()]
    started = [each for each in found if (each / 'metrics.csv').is_file()]
    for each in found:
      if each not in started:
        print(f'Warning: {each} has no round yet; it is left out.', file=sys.stderr)
    if not started:
      raise ValueError(f'runs has {name!r}, which matches no run with a round.')
    folders += started
  return folders


if __name__ == '__main__':
  program.run('compare', resumes=False)
