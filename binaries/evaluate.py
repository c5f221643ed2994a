r"""Evaluates the encoder of a run, finished or not.

  python -m binaries.evaluate --run=runs/digits
  python -m binaries.evaluate --run=runs/digits --baselines \
      --evaluation_methods=knn,logistic,lars,finetune --label_fractions=0.01,0.1,1
  python -m binaries.evaluate --run=runs/cifar10 --transfer_task=cifar100
  python -m binaries.evaluate --run=runs/digits --fairness \
      --evaluation_methods=logistic,federated_linear

The task, the encoder and the evaluation settings are the run's; the parameters are from
its newest checkpoint. Flags on the command line take precedence, but cannot change what
the encoder is or what it was trained on. No path is taken from the run folder, which
may be a stranger's: --data_dir and --partition_encoder must be given again. Prints a
table and adds to the run's `evaluation.json`. Baselines are computed with --baselines
alone, also for a run that had them; those in `evaluation.json` are shown.

With --transfer_task the encoder is evaluated on a task other than its own: classifiers
are trained and tested on that task's splits, resized to the encoder's input size. What
the run was trained on may not be in the test split (docs/own_data.md). The
method federated_linear is a linear probe trained by FedAvg over the clients of the
run's partition. one_round has LDA and ridge regression in closed form, computed from
sums that these clients send once. --fairness shows how evenly accuracies are spread
over clients. For images with masks, segmentation and detection train a small head on
the encoder's feature maps, with the encoder frozen and with it trained. The head
predicts the mask, or the box around it (--mask_dir, docs/masks.md). For two modalities
both encoders are evaluated, and the method retrieval reports how often an example finds
its partner, by the projections of the checkpoint (docs/two_modalities.md).
"""

import collections
from collections.abc import Mapping
import pathlib
from typing import Any

from binaries.experiment import evaluating
from binaries.experiment import evaluation_clients
from binaries.experiment import masked
from binaries.experiment import membership
from binaries.experiment import results
from binaries.experiment import transfer
from binaries.experiment import two_towers
from binaries.flags import adopting
from binaries.flags import common
from binaries.flags import evaluation
from binaries.flags import hosts
from binaries.flags import outputs
from binaries.flags import program
from binaries.flags import towers
from tasks import task_types
from tff_ssl.encoders import network
from tff_ssl.evaluation import dense
from tff_ssl.evaluation import suite
from tff_ssl.objectives import dual_encoder
from tff_ssl.reporting import model_card
from tff_ssl.runs import checkpoints
from tff_ssl.runs import run_config

# Flags for evaluation and the place of the data, but none that change the encoder.
_MAY_BE_GIVEN = (
  'data_dir',
  'download',
  *evaluation.OF_EVALUATION,
  *evaluation.MAY_DIFFER,
)
_OWN = ('run', *transfer.NAMES, *evaluation_clients.NAMES, *masked.NAMES)
# The flags that --help lists.
TAKEN = (*_OWN, *adopting.GIVEN_AGAIN, *_MAY_BE_GIVEN)
# What each flag names.
REQUIRED = {'run': 'the folder of a run'}
_FEDBN = 'fedbn'
_STATISTICS = 'global_model_weights/non_trainable'


def main() -> None:
  """Evaluates the encoder of the run."""
  program.check_required(REQUIRED)
  folder = pathlib.Path(outputs.RUN.value)
  config = run_config.read(folder)
  _adopt(folder, config['flags'])
  task = common.load_task()
  if not transfer.TASK.value:
    membership.check_same(folder, task, _why_same(task))
  encoder = common.build_encoder(task)
  model = None
  if encoder.field == dual_encoder.LEFT:
    # A run's projectors have a last bias if its loss does not ignore it.
    _, head = checkpoints.read_newest(
      folder / 'checkpoints', f'{results.TRAINABLE}/{dual_encoder.LEFT_PROJECTOR}'
    )
    last = f'dense{len(common.projector_widths()) - 1}/bias'
    model = towers.build(encoder, task, last in head)
  round, params = _read(folder, encoder, model)
  if transfer.TASK.value:
    task = transfer.load(task.image_shape)
    membership.check_unseen(folder, task)
  print(f'{folder}: the encoder after round {round} of {common.ROUNDS.value}')
  known = config['flags']
  name = str(known.get('algorithm', known.get('method', 'encoder')))
  if evaluation.of_masks():
    by_masks = masked.Evaluator(task, encoder)
    own = network.select(params, dual_encoder.encoder_prefix(encoder))
    by_masks.report(folder, round, name, own, transfer.prefix())
  if set(evaluation.METHODS.value) == set(evaluation.of_masks()):
    return
  if (reason := evaluating.skipped(task)) is not None:
    print(reason)
    return
  evaluator = two_towers.build_evaluator(
    task,
    encoder,
    model,
    evaluation_clients.build_federated(task),
    evaluation_clients.build_deal(task),
    collect=evaluation_clients.build_collect(task),
  )
  with evaluation_clients.open_context():
    numbers = evaluator.evaluate_model(params)
    evaluating.report(evaluator, folder, round, name, numbers, transfer.prefix())
  model_card.write(folder)


def _adopt(folder: pathlib.Path, stored: Mapping[str, Any]) -> None:
  """Adopts the flags of a run, and checks them together with the given flags."""
  for name in common.given():
    if name not in (*stored, *adopting.GIVEN_AGAIN, *_MAY_BE_GIVEN, *_OWN):
      raise ValueError(
        f'--{name} is given, but {folder} has no such flag; binaries.evaluate takes '
        f'{", ".join((*_OWN, *_MAY_BE_GIVEN))}.'
      )
  adopting.adopt({**common.DEFAULTS, **evaluation.DEFAULTS, **stored}, _MAY_BE_GIVEN)
  common.check_flags()
  hosts.settle()
  hosts.check()
  evaluation.check((suite.FEDERATED_LINEAR, *dense.METHODS))
  evaluation_clients.check()
  masked.check()
  transfer.check()
  if stored.get('algorithm') == _FEDBN:
    raise ValueError(
      f'{folder} is a run of fedbn: its checkpoints have no batch norm, which stays '
      'with the clients; evaluation.json has the evaluation of its last encoder.'
    )


def _why_same(task: task_types.Task) -> str:
  """Returns what to do if the run had other examples; see `membership.check_same`."""
  why = 'the numbers of a run are of the test split that it held out'
  if task.field != task_types.IMAGE:
    return why
  own = f'--transfer_task={task.name} --transfer_data_dir={common.DATA_DIR.value}'
  return f'{why}; give {own} as well for numbers of the new one, under transfer/'


def _read(
  folder: pathlib.Path, encoder: network.Network, model: dual_encoder.TwoTower | None
) -> tuple[int, network.Params]:
  """Returns the newest round and its parameters, with prefixes.

  Args:
    folder: The run folder.
    encoder: The evaluated encoder; of a model with one input, only its parameters are
      read.
    model: A model of two modalities; all its parameters are read.
  """
  prefix = dual_encoder.encoder_prefix(encoder)
  networks = {prefix: encoder} if model is None else model.networks
  params: network.Params = collections.OrderedDict()
  for name, net in networks.items():
    places = [results.TRAINABLE, *([_STATISTICS] if net.mixes_examples else [])]
    for place in places:
      where = f'{place}/{name}'
      round, read = checkpoints.read_newest(folder / 'checkpoints', where)
      params.update(network.with_prefix(read, name))
  return round, params


if __name__ == '__main__':
  common.run(main, TAKEN)
