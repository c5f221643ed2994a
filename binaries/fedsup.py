r"""Trains with labels only at the server: FedSup and the methods it compares with.

  python -m binaries.fedsup --method=fedsup --task=cifar10 --labels=share=0.1 \
      --partition=shares:alpha=0.1,clients=100 --clients_per_round=5 --rounds=100 \
      --run_dir=runs/fedsup

The methods: `fedsup` (its fields consistency, grouped and stages leave out parts of
it); `server_finetuned` of any objective on the clients, with the average fine-tuned
at the server (of `supervised`, whose clients have all labels, it is a bound); `fedrgd`;
`fedmatch`; and the other bound `labelled_only`, which has no clients.

The server has a share of the training labels (--labels=share=; 1 if the task comes with
unlabelled images, like stl10), or the labels of one hospital (--labels=hospital=, for
ham10000). An encoder is evaluated with only the server's labels: 1 in
--evaluation=label_fractions= means all of these.
"""

from typing import Literal

from binaries import experiment
from binaries.config import evaluations
from binaries.config import programs
from binaries.config import run_config
from binaries.launching import program
from tff_ssl.settings import encoders
from tff_ssl.settings import learning
from tff_ssl.settings import methods
from tff_ssl.settings import objectives

# The thesis's heads of 512 are for ResNet-18; here they are a quarter as wide.
_PROJECTOR, _PREDICTOR = (128, 128), 128


def _row(
  method: methods.Method,
  objective: objectives.Objective,
  norm: Literal['group', 'batch'] = 'batch',
  optimizer: str = 'adam',
) -> run_config.RunConfig:
  """Five of a hundred clients, Adam at 1e-3, ResNet with batch norm.

  All compared methods have this one norm, except those of two papers.
  """
  clients = {'sgd': learning.SgdClients, 'adam': learning.AdamClients}[optimizer]
  return run_config.RunConfig(
    method,
    objective,
    partition='iid:clients=100',
    clients_per_round=5,
    encoder=encoders.ResNet('resnet8', norm=norm),
    clients=clients(kind=optimizer, learning_rate=1e-3, epochs=5, batch_size=128),
    evaluation=evaluations.Evaluation(
      methods=('knn', 'linear', 'finetune'), label_fractions=(1.0,)
    ),
  )


PROGRAM = programs.Program(
  'fedsup',
  programs.rows(
    _row(methods.Fedsup(), objectives.Fedsup()),
    # FedRGD itself recommends group norm.
    _row(methods.Fedrgd(), objectives.Fixmatch(), 'group'),
    # From the published program: SGD at 1e-3, and a network without batch norm.
    _row(methods.Fedmatch(), objectives.Fedmatch(), 'group', 'sgd'),
    _row(methods.ServerFinetuned(), objectives.Fixmatch()),
    _row(methods.ServerFinetuned(), objectives.Simclr(projector=_PROJECTOR)),
    _row(
      methods.ServerFinetuned(),
      objectives.Simsiam(projector=_PROJECTOR, predictor_width=_PREDICTOR),
    ),
    _row(
      methods.ServerFinetuned(),
      objectives.Byol(projector=_PROJECTOR, predictor_width=_PREDICTOR),
    ),
    _row(methods.ServerFinetuned(), objectives.Supervised()),
    # Its clients do nothing, but partition.csv describes them.
    _row(methods.LabelledOnly(), objectives.Supervised()),
  ),
)


# Runs an experiment, or resumes it.
main = experiment.run


if __name__ == '__main__':
  program.run('fedsup')
