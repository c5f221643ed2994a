r"""Pretrains personal encoders with SSFL: Global-, LA-, MAML-, BiLevel- or Per-SSFL.

  python -m binaries.ssfl --method=per --task=cifar10 --data_dir=~/tensorflow_datasets \
      --partition=shares:alpha=0.1,clients=10 \
      --clients=batch_size=32,accumulate=8,learning_rate=0.3,momentum=0.9 \
      --clients=schedule=cosine --rounds=800 --run_dir=runs/per
  python -m binaries.ssfl ... --run_dir=runs/per --evaluation=export_clients=client_3

The methods, all over SimSiam: `fedavg`; `la`, FedAvg, after which each client takes one
step before its evaluation; `maml`, trained for that step; `bilevel`, with personal
weights kept near the global weights; `per`, with personal predictions kept near the
global predictions.

Together with the global encoder, each client's own encoder is evaluated, on test
examples that are dealt to the clients like the training examples. On a finished run,
the same command takes other --evaluation=personal and --evaluation=export_clients.
"""

from binaries import experiment
from binaries.config import evaluations
from binaries.config import programs
from binaries.config import run_config
from binaries.launching import program
from tff_ssl.settings import encoders
from tff_ssl.settings import learning
from tff_ssl.settings import methods
from tff_ssl.settings import objectives
from tff_ssl.settings import personal


def _row(method: methods.Method) -> run_config.RunConfig:
  """The paper's: ten clients per round of Dirichlet 0.1, steps of 8 batches of 32.

  It does not give the number of clients; here it is ten. Nor does it say which of its
  rates was best: of 0.03, 0.1 and 0.3 the last is, in 20 rounds of CIFAR-10
  (docs/stateful_clients.md).
  """
  return run_config.RunConfig(
    method,
    objectives.Simsiam(),
    partition='shares:alpha=0.1,clients=10',
    clients_per_round=10,
    encoder=encoders.ResNet('resnet8', norm='batch'),
    clients=learning.SgdClients(
      learning_rate=0.3,
      momentum=0.9,
      schedule='cosine',
      batch_size=32,
      accumulate=8,
    ),
    evaluation=evaluations.Evaluation(personal=('linear',)),
  )


PROGRAM = programs.Program(
  'ssfl',
  programs.rows(
    *map(
      _row,
      (
        personal.Per(),
        personal.Bilevel(),
        personal.Maml(),
        personal.LA(),
        methods.FedAvg(),
      ),
    )
  ),
)


# Runs an experiment, or resumes it.
main = experiment.run


if __name__ == '__main__':
  program.run('ssfl')
