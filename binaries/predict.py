r"""Predicts the class of pictures, by the encoder of a run and the labels of its task.

  python -m binaries.predict --run=runs/ham --images=mole.jpg
  python -m binaries.predict --run=runs/ham --images=mole.jpg,more_photos \
      --out=predictions.csv
  python -m binaries.predict --run=runs/ham --images=photos --finetuned

Each picture gets a line: the likeliest classes with their probabilities, and the
labelled training pictures that are most similar to it. Probabilities are those of a
linear classifier that is fitted on all training labels of the run's task, as by
`binaries.export --classifier`; with --finetuned they come from an encoder that is
trained end to end on these labels. Pictures are read as those of the run were;
unreadable ones are named and left out. --out is a table: a row per picture, with the
probability of each class.
"""

import dataclasses
from typing import Annotated

from binaries.config import changing
from binaries.config import command_line
from binaries.config import outputs
from binaries.launching import program
from tff_ssl.computing import kinds


@dataclasses.dataclass(frozen=True)
class Options:
  """What is predicted, and from what.

  Attributes:
    run: The folder of a run.
    images: Pictures, folders and .tar files.
    out: A .csv file for all probabilities; none: they are printed only.
    nearest: The number of similar training pictures to name.
    finetuned: Whether the encoder and a linear classifier are trained end to end on the
      task's training labels.
    data_dir: Where the data of the run's task are; it is not taken from the run.
    data: Other changes of how the data are read, as in follow_links=true.
    evaluation: Changes of the fine-tuning, as in finetune_steps=200.
  """

  run: str
  images: tuple[str, ...]
  out: str | None = None
  nearest: Annotated[int, kinds.Range(0, 100)] = 3
  finetuned: bool = False
  data_dir: str | None = None
  data: command_line.Changes = command_line.UNCHANGED
  evaluation: command_line.Changes = command_line.UNCHANGED


def main(options: Options) -> None:
  """Predicts the classes."""
  outputs.check_file('out', options.out, '.csv')
  names = ('data_dir', 'data', 'evaluation')
  config = changing.of_folder(
    options.run, {name: getattr(options, name) for name in names}
  )
  command_line.check_finetuning(options.evaluation, options.finetuned)
  # TensorFlow is imported only now, when the command line has been checked.
  from binaries.experiment import predicting

  predicting.predict(
    options.run,
    options.images,
    config,
    out=options.out,
    nearest=options.nearest,
    end_to_end=options.finetuned,
  )


if __name__ == '__main__':
  program.run('predict', resumes=False)
