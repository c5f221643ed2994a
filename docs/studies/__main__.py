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

import csv
import pathlib

from absl import flags

from binaries.flags import common
from binaries.flags import outputs
from binaries.flags import program
from docs.studies import figures
from docs.studies import repeating
from tff_ssl.computing import inert
from tff_ssl.reporting import plain_text
from tff_ssl.runs import run_config
from tff_ssl.storage import files

_OUT = 'runs/study'
_ROUNDS = flags.DEFINE_list(
  'study_rounds',
  [],
  'Rounds after which models are compared; by default five, to the last.',
)
_CLIENTS = flags.DEFINE_integer(
  'study_clients',
  5,
  'Most clients of a cohort to compare, the first ones.',
  lower_bound=1,
)
_IMAGES = flags.DEFINE_integer(
  'study_images', 256, 'Most test images to encode.', lower_bound=3
)
# The flags that --help lists.
TAKEN = (
  'runs',
  'out',
  'study_rounds',
  'study_clients',
  'study_images',
  'data_dir',
  'download',
  'follow_links',
  'partition_encoder',
  'scaling',
)
# What each flag names.
REQUIRED = {'runs': 'run folders of FedAvg'}


def main() -> None:
  """Repeats the rounds of each run, and reports and draws the findings."""
  for name in common.given():
    if name not in TAKEN:
      raise ValueError(
        f'--{name} is given; docs.studies takes only {", ".join(TAKEN)}; the runs '
        'provide the rest.'
      )
  out = pathlib.Path(outputs.OUT.value or _OUT).expanduser()
  if (out / run_config.NAME).exists() or out.is_file():
    raise ValueError(
      f'out is {str(out)!r}; it must be a new folder or that of a study.'
    )
  program.check_required(REQUIRED)
  wanted = _rounds()
  studies = []
  for name in outputs.RUNS.value:
    with common.restored():
      studies.append(repeating.study(name, wanted, _CLIENTS.value, _IMAGES.value))
  print(plain_text.text(figures.table_rows(studies)))
  out.mkdir(parents=True, exist_ok=True)
  rows = figures.rows(studies)
  with (
    files.atomic(out / 'study.csv') as aside,
    aside.open('w', newline='', encoding='utf-8') as file,
  ):
    writer = csv.DictWriter(file, list(rows[0]))
    writer.writeheader()
    for row in rows:
      writer.writerow(
        {k: inert.cell(v) if isinstance(v, str) else v for k, v in row.items()}
      )
  figures.write(studies, out / 'study.png')
  figures.write_map(studies, out / 'map.png')
  print(f'Study: {out}')


def _rounds() -> list[int]:
  """Returns the rounds of the flag, counted from 1; none if it is not given.

  Raises:
    ValueError: If they are not such numbers.
  """
  if not all(text.isdecimal() and int(text) for text in _ROUNDS.value):
    raise ValueError(
      f'study_rounds is {",".join(_ROUNDS.value)!r}; it must be whole numbers from 1, '
      'as in 1,10,100.'
    )
  return sorted({int(text) for text in _ROUNDS.value})


if __name__ == '__main__':
  common.run(main, TAKEN)
