r"""Predicts the class of pictures, by a run and its labels or an exported classifier.

  python -m binaries.predict --run=runs/ham --images=mole.jpg
  python -m binaries.predict --run=runs/ham --images=mole.jpg,more_photos \
      --out=predictions.csv
  python -m binaries.predict --run=runs/ham --images=photos --finetuned
  python -m binaries.predict --model=moles --images=photos

Each picture gets a line: the likeliest classes with their probabilities, and the
labelled training pictures that are most similar to it. Probabilities are those of a
linear classifier that is fitted on all training labels of the run's task, as by
`binaries.export --classifier`; with --finetuned they come from an encoder that is
trained end to end on these labels. Pictures are read as those of the run were;
unreadable ones are named and left out. --out is a table: a row per picture, with the
probability of each class.

--model is a folder of `binaries.export --classifier` (or `--finetuned`). It needs
neither the run nor its data, it may be a stranger's, and it says how often it is right.
It knows no training pictures to name; with `export --digests` it says whether a picture
was trained on.
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
    run: The folder of a run; or else
    model: The folder of an exported classifier, which is all that is needed.
    images: Pictures, folders and .tar files.
    out: A .csv file for all probabilities; none: they are printed only.
    nearest: The number of similar training pictures to name.
    finetuned: Whether the encoder and a linear classifier are trained end to end on the
      task's training labels.
    data_dir: Where the data of the run's task are; it is not taken from the run.
    data: Other changes of how the data are read, as in follow_links=true.
    evaluation: Changes of the fine-tuning, as in finetune_steps=200.
  """

  images: tuple[str, ...]
  run: str | None = None
  model: str | None = None
  out: str | None = None
  nearest: Annotated[int, kinds.Range(0, 100)] = 3
  finetuned: bool = False
  data_dir: str | None = None
  data: command_line.Changes = command_line.UNCHANGED
  evaluation: command_line.Changes = command_line.UNCHANGED


# What a run needs, or what of it is named.
_OF_RUN = ('nearest', 'finetuned', 'data_dir', 'data', 'evaluation')


def main(options: Options) -> None:
  """Predicts the classes."""
  outputs.check_file('out', options.out, '.csv')
  _check(options)
  if options.model is not None:
    from binaries.experiment import predicting

    predicting.predict_by(options.model, options.images, options.out)
    return
  assert options.run is not None
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


def _check(options: Options) -> None:
  """Raises ValueError if options do not fit each other."""
  if (options.run is None) == (options.model is None):
    raise ValueError(
      f'--run is {options.run} and --model is {options.model}; one of them must be '
      'given, and the other left out.'
    )
  for name in _OF_RUN:
    if options.model is not None and getattr(options, name) != getattr(Options, name):
      raise ValueError(
        f'--{name} is given with --model, which needs no data and fits nothing.'
      )


if __name__ == '__main__':
  program.run('predict', resumes=False)
