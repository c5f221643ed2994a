r"""Evaluates the encoder of a run, finished or not.

  python -m binaries.evaluate --run=runs/digits
  python -m binaries.evaluate --run=runs/digits \
      --evaluation=methods=knn/linear/lars/finetune,label_fractions=0.01/0.1/1 \
      --evaluation=baselines=true
  python -m binaries.evaluate --run=runs/cifar10 --transfer=cifar100
  python -m binaries.evaluate --run=runs/digits --fairness \
      --evaluation=methods=linear/federated_linear

The task, the encoder and the evaluation are the run's, but for what the command line
changes; baselines are evaluated only if it asks for them. The parameters are from the
newest checkpoint. No path is taken from the run folder, which may be a stranger's:
--data_dir and --data=partition_encoder= must be given again. Prints a table and adds to
the run's `evaluation.json`.

With --transfer the encoder is evaluated on a task other than its own: classifiers
are trained and tested on that task's splits, resized to the encoder's input size. What
the run was trained on may not be in the test split (docs/own_data.md). The
method federated_linear is a linear probe trained by FedAvg over the clients of the
run's partition. one_round has LDA and ridge regression in closed form, computed from
sums that these clients send once. --fairness shows how evenly accuracies are spread
over clients. For images with masks, segmentation and detection train a small head on
the encoder's feature maps, with the encoder frozen and with it trained. The head
predicts the mask, or the box around it (--masks=dir=, docs/masks.md). For two
modalities both encoders are evaluated, and the method retrieval reports how often an
example finds its partner, by the projections of the checkpoint
(docs/two_modalities.md).
"""

import dataclasses
import pathlib

from binaries.config import changing
from binaries.config import command_line
from binaries.config import evaluations
from binaries.config import run_config
from binaries.launching import program
from tff_ssl.computing import kinds
from tff_ssl.evaluation import method_names

# The other fields of an evaluation are for the rounds of a run.
_USED = (
  'methods',
  'label_fractions',
  'signals_every',
  'precision',
  'knn_k',
  'finetune_steps',
  'finetune_rate',
  'baselines',
  'supervised_steps',
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Options(evaluations.Additions):
  """What is evaluated, and how.

  Attributes:
    run: The folder of a run.
    evaluation: Changes of the run's evaluation, as in methods=knn/lars.
    data_dir: Where the data of the run's task are; it is not taken from the run.
    data: Other changes of how the data are read, as in partition_encoder=FILE.
    runtime: What executes rounds with clients, as in worker.
  """

  run: str
  evaluation: command_line.Changes = command_line.UNCHANGED
  data_dir: str | None = None
  data: command_line.Changes = command_line.UNCHANGED
  runtime: command_line.Changes = command_line.UNCHANGED


def main(options: Options) -> None:
  """Evaluates the encoder of the run."""
  folder = pathlib.Path(options.run)
  names = ('evaluation', 'data_dir', 'data', 'runtime')
  config = changing.of_folder(folder, {name: getattr(options, name) for name in names})
  changing.check_given_again(folder, config, of_data=True)
  _check_used(config, options)
  # Only here: they import NumPy.
  from binaries.config import checks
  from binaries.experiment import transfer

  checks.check_data(config)
  checks.check_evaluation(config, (method_names.FEDERATED_LINEAR, *method_names.DENSE))
  transfer.check(config, options)
  # TensorFlow is imported only now, when the command line has been checked.
  program.import_tff()
  from binaries.experiment import reevaluating

  reevaluating.run(folder, config, options)


def _check_used(config: run_config.RunConfig, options: Options) -> None:
  """Refuses what is given and does nothing."""
  own, methods = config.evaluation, config.evaluation.methods
  command_line.check_fields('evaluation', options.evaluation, _USED)
  given = {name for text in options.evaluation for name in kinds.given(text)}
  for name, is_used, without in (
    ('knn_k', 'knn' in methods, 'methods has no knn'),
    ('finetune_steps', 'finetune' in methods, 'methods has no finetune'),
    ('finetune_rate', 'finetune' in methods, 'methods has no finetune'),
    ('supervised_steps', own.baselines, 'baselines is false'),
  ):
    if name in given and not is_used:
      raise ValueError(f'{name} of --evaluation is given, but {without}; leave it out.')
  with_clients = (method_names.FEDERATED_LINEAR, method_names.ONE_ROUND)
  # Signals of a run with secure sums are summed by its clients.
  if options.runtime and not (config.is_secure or {*with_clients} & {*methods}):
    raise ValueError(
      f'--runtime is given, but methods has no {" or ".join(with_clients)}, which have '
      'rounds with clients; leave it out.'
    )


if __name__ == '__main__':
  program.run('evaluate', resumes=False)
