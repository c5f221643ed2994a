r"""Exports the encoder of a run to Keras, SavedModel, TFLite, ONNX and PyTorch.

  python -m binaries.export --run=runs/digits
  python -m binaries.export --run=runs/digits --out=digits_encoder \
      --formats=keras,tflite --classifier
  python -m binaries.export --run=runs/digits --out=digits_model --finetuned
  python -m binaries.export --run=runs/moles --out=moles --classifier \
      --positive=melanoma --sensitivity=0.95
  python -m binaries.export --run=runs/private --out=for_others --give_away

The exported model takes pictures of any size as bytes, which it resizes and crops as in
training (a file of Keras takes those of the encoder's size; `square.py`, beside it,
makes them), or unscaled rows of a table, and returns `features`. With --classifier it
also returns `probabilities` of a linear classifier, which is fitted on all training
labels of the run's task. With --finetuned both come from an encoder trained end to end
on these labels, like the method `finetune`. Each file is read back and compared with
the encoder that is evaluated. The folder --out also has `encoder.md`, the model card,
with digests of all files. docs/take_away.md says how to use the files.

A classifier of pictures, in the format keras, can be handed over: in its folder,
`classify.py` needs Keras alone, and `binaries.predict --model=FOLDER` neither run nor
data. The card has the recall of each class, with intervals.

--give_away makes a folder with just what may be given away of a run: the encoder, its
card and the numbers that were released (docs/give_away.md). A classifier and a
fine-tuned encoder are fitted on raw examples and labels, so that of a private run they
are exported only with --unprotected, and the card then promises nothing.
"""

import dataclasses
import pathlib
from typing import Literal

from binaries.config import changing
from binaries.config import command_line
from binaries.config import outputs
from binaries.launching import program
from tff_ssl.computing import kinds
from tff_ssl.runs.privacy import disclosure

Format = Literal['keras', 'savedmodel', 'tflite', 'onnx', 'torch']


@dataclasses.dataclass(frozen=True)
class Options:
  """What is exported, and to where.

  Attributes:
    run: The folder of a run.
    out: A folder, new or not that of a run; none: `export` in the run's folder.
    formats: Formats to write: some of keras, savedmodel, tflite, onnx and torch; none:
      keras,savedmodel,tflite.
    classifier: Whether a linear classifier is fitted on the task's training labels, and
      exported too.
    finetuned: Whether the encoder and a linear classifier are trained end to end on the
      task's training labels, and both exported.
    positive: One of two classes that must not be missed; with --sensitivity.
    sensitivity: Share of the examples of this class to find: a threshold on its
      probability is chosen for it, on held-out cases of which no number is stated.
    digests: Whether the training pictures can be recognised by the exported classifier;
      then whoever has a picture can find out whether it was trained on.
    give_away: Whether what may be given away of a run is written, and nothing else: its
      encoder, the card, and the numbers that a private run has released.
    unprotected: Whether classifier and finetuned are allowed for a private run,
      although its privacy does not hold for what they fit; the card promises none.
    data_dir: Where the data of the run's task are; it is not taken from the run.
    data: Other changes of how the data are read, as in follow_links=true.
    evaluation: Changes of the fine-tuning, as in finetune_steps=200.
  """

  run: str
  out: str | None = None
  formats: tuple[Format, ...] = ()
  classifier: bool = False
  finetuned: bool = False
  positive: str | None = None
  sensitivity: kinds.Share | None = None
  digests: bool = False
  give_away: bool = False
  unprotected: bool = False
  data_dir: str | None = None
  data: command_line.Changes = command_line.UNCHANGED
  evaluation: command_line.Changes = command_line.UNCHANGED


# Of files that are made of a run, not copied.
_MAKING = (
  'formats',
  'classifier',
  'finetuned',
  'sensitivity',
  'digests',
  'unprotected',
  'data_dir',
  'data',
)
# For what is fitted on labels.
_OF_CLASSIFIER = ('positive', 'sensitivity', 'digests', 'unprotected')


def main(options: Options) -> None:
  """Exports the encoder."""
  _check(options)
  folder = pathlib.Path(options.run)
  out = outputs.new_folder(options.out or folder / disclosure.EXPORT)
  names = ('data_dir', 'data', 'evaluation')
  config = changing.of_folder(folder, {name: getattr(options, name) for name in names})
  command_line.check_finetuning(options.evaluation, options.finetuned)
  # TensorFlow is imported only now, when the command line has been checked.
  from binaries.experiment import classifier_quality
  from binaries.experiment import export_run

  if options.give_away:
    export_run.give_away(folder, out)
    return
  classifier = wanted = None
  if options.positive is not None and options.sensitivity is not None:
    wanted = classifier_quality.Wanted(options.positive, options.sensitivity)
  if options.classifier or options.finetuned:
    classifier = export_run.Classifier(options.finetuned, wanted, options.digests)
  export_run.export(
    folder,
    out,
    config,
    formats=options.formats,
    classifier=classifier,
    allowed=options.unprotected,
  )


def _check(options: Options) -> None:
  """Raises ValueError if options do not fit each other."""
  if options.give_away:
    if options.out is None:
      raise ValueError(
        '--give_away is given without --out; what is given away must be in a folder of '
        'its own.'
      )
    for name in _MAKING:
      if getattr(options, name):
        raise ValueError(
          f'--{name} is given with --give_away, which copies files of the run and '
          'makes none.'
        )
  for name in _OF_CLASSIFIER:
    if getattr(options, name) and not (options.classifier or options.finetuned):
      raise ValueError(
        f'--{name} is given without --classifier or --finetuned; it is for them only.'
      )
  if (options.positive is None) != (options.sensitivity is None):
    raise ValueError(
      f'--positive is {options.positive} and --sensitivity is {options.sensitivity}; '
      'either both must be given, or neither.'
    )
  if options.classifier and options.finetuned:
    raise ValueError(
      '--classifier and --finetuned are both given; an export has one classifier, '
      'either on the encoder of the run or trained together with it.'
    )


if __name__ == '__main__':
  program.run('export', resumes=False)
