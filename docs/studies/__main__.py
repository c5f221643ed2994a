r"""Studies how far the clients of runs drift from the global model and each other.

  python -m docs.studies --runs=runs/dec_ssl,runs/dec_slrep --out=runs/study
  python -m docs.studies --runs=runs/dec_ssl --study_rounds=1,10,100

Appendix B.3 and Figure 9 of "Does Learning from Decentralized Non-IID Unlabeled Data
Benefit from Self Supervision?": w_k is a client's model after its local training in a
round; w_g, their mean, is the global model after the round. For runs of FedAvg or
FedProx (`binaries.fedavg_ssl`, `binaries.dec_ssl --method=fedavg`), such as one of
SimCLR (Dec-SSL) and one with labels (Dec-SLRep), it reports

  distance   |w_g - w_k| and |w_j - w_k| of the encoder, by layer and in sum (d_w)
  cka        linear CKA of w_g's and w_k's features of test images, by layer

and draws both over rounds and layers, with a map of the features of w_g, w_1 and w_3 on
the same two principal components. A run keeps no client's model, so its rounds are
repeated here from the first, in memory, with the same seeds; this takes about as long
as the run. If there is a checkpoint of the last round, the study reports how far the
repeated model is from it. The folder --out has `study.csv`, `study.png` and `map.png`.
"""

import dataclasses
import pathlib
from typing import Annotated

import pandas as pd

from binaries.config import command_line
from binaries.launching import program
from docs.studies import figures
from docs.studies import repeating
from tff_ssl.computing import kinds
from tff_ssl.reporting import comparison
from tff_ssl.reporting import look
from tff_ssl.reporting import plain_text
from tff_ssl.runs import run_config


@dataclasses.dataclass(frozen=True)
class Options:
  """Runs, and what of them is studied.

  Attributes:
    runs: Run folders of FedAvg or FedProx.
    out: Folder for study.csv, study.png and map.png.
    study_rounds: Rounds after which models are compared; none: five, to the last.
    study_clients: Most clients of a cohort to compare, the first ones.
    study_images: Most test images to encode.
    data_dir: Where the data of the runs are; it is not taken from them.
    data: Other paths of the data, as in partition_encoder=FILE.
  """

  runs: tuple[str, ...]
  out: str = 'runs/study'
  study_rounds: tuple[kinds.Count, ...] = ()
  study_clients: kinds.Count = 5
  study_images: Annotated[int, kinds.Range(3)] = 256
  data_dir: str | None = None
  data: command_line.Changes = command_line.UNCHANGED


def main(options: Options) -> None:
  """Repeats the rounds of each run, and reports and draws the findings."""
  out = pathlib.Path(options.out)
  if (out / run_config.NAME).exists() or out.is_file():
    raise ValueError(
      f'out is {str(out)!r}; it must be a new folder or that of a study.'
    )
  studies = [
    repeating.study(
      pathlib.Path(name),
      {'data_dir': options.data_dir, 'data': options.data},
      sorted(set(options.study_rounds)),
      options.study_clients,
      options.study_images,
    )
    for name in options.runs
  ]
  print(plain_text.text(figures.table_rows(studies)))
  out.mkdir(parents=True, exist_ok=True)
  comparison.write_lines(out / 'study.csv', pd.DataFrame(figures.rows(studies)))
  look.save(figures.draw(studies), out / 'study.png')
  look.save(figures.draw_map(studies), out / 'map.png')
  print(f'Study: {out}')


if __name__ == '__main__':
  program.run_module('docs.studies.__main__')
