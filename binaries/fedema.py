r"""Pretrains an encoder with stateful clients: FedEMA, FedU, and their baselines.

  python -m binaries.fedema --method=fedema --task=cifar10 \
      --data_dir=~/tensorflow_datasets --partition=classes:per_client=2,clients=5 \
      --participation=1 \
      --clients=epochs=5,batch_size=128,learning_rate=0.032,momentum=0.9 \
      --clients=weight_decay=5e-4,schedule=cosine --rounds=100 --run_dir=runs/fedema

The methods: `fedema` and `fedu`, whose clients keep their target and online networks;
`fed_byol` and `fed_ssl` (of MoCo), whose target or key networks stay on their client;
`fedavg` (of SimCLR or SimSiam). Fields of the objective for the paper's ablations:
target_momentum=0 (no EMA of the target), predictor=false, stop_gradient=false;
--help=fedema has those of the method. With the paper's divergence mu may reach 1 and
stay there, so that a client never takes the global model again; a run warns of this.

In `fedca` the server keeps a dictionary of representations of each client, for the
other clients. With --objective=alignment_weight= above 0 clients are also aligned to
the encoder of --method=alignment_run=: a finished run on public data, such as one of
`binaries.fedavg_ssl --method=centralized` on another task.

Clients of `fedu` and `fedema` have their own encoders: the online encoders that they
keep. With --evaluation=personal=, personal_clients= or export_clients= they are
evaluated together with the global encoder: each time by kNN, and at the end by the
methods of `personal`. On a finished run, the same command with other personal= or
export_clients= does what is still missing.

`clients.csv` in the run folder has a row for each round and client, with mu, divergence
and lambda; `binaries.compare` draws them.
"""

from binaries import experiment
from binaries.config import programs
from binaries.config import run_config
from binaries.launching import program
from tff_ssl.settings import encoders
from tff_ssl.settings import learning
from tff_ssl.settings import methods
from tff_ssl.settings import objectives
from tff_ssl.settings import personal


def _row(
  method: methods.Method, objective: objectives.Objective
) -> run_config.RunConfig:
  """Section 5.1 and appendix A: five clients of two classes each, all in every round.

  All networks of the FedEMA paper have batch norm, whatever the objective.
  """
  return run_config.RunConfig(
    method,
    objective,
    partition='classes:per_client=2,clients=5',
    clients_per_round=5,
    encoder=encoders.ResNet('resnet8', norm='batch'),
    clients=learning.SgdClients(
      learning_rate=0.032,
      momentum=0.9,
      weight_decay=5e-4,
      schedule='cosine',
      epochs=5,
      batch_size=128,
    ),
  )


PROGRAM = programs.Program(
  'fedema',
  programs.rows(
    _row(personal.FedEMA(), objectives.Byol()),
    _row(personal.FedU(), objectives.Byol()),
    _row(personal.FedByol(), objectives.Byol()),
    _row(methods.FedAvg(), objectives.Simsiam()),
    _row(methods.FedAvg(), objectives.Simclr()),
    # In the authors' code the key network starts each round as the global one, with
    # this momentum.
    _row(methods.FedSSL(reset_target=True), objectives.MocoV2(target_momentum=0.99)),
    _row(methods.FedSSL(reset_target=True), objectives.MocoV1(target_momentum=0.99)),
    _row(methods.FedCA(), objectives.FedCA()),
  ),
)


# Runs an experiment, or resumes it.
main = experiment.run


if __name__ == '__main__':
  program.run('fedema')
