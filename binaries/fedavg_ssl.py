r"""Pretrains an encoder with FedAvg over any objective, or centrally with the same.

  python -m binaries.fedavg_ssl --task=cifar10 --data_dir=~/tensorflow_datasets \
      --objective=simsiam --partition=shares:alpha=0.1,clients=5 --participation=1 \
      --clients=epochs=5,batch_size=128,learning_rate=0.3,momentum=0.9 \
      --clients=schedule=cosine --rounds=100 --run_dir=runs/simsiam

The algorithms: `fedavg` (FedAvgM with --server=momentum=0.5); `fedprox` (with
--clients=proximal_weight); `fedbn` (batch norm stays on the client); `scaffold`;
`l_dawa`; `fed_ssl` (FedAvg in which BYOL's target, or MoCo's key networks and queue,
stay on their client between rounds); `centralized` (local training on as many examples
per round, drawn from all). The objective `supervised` has all labels: federated, it is
Dec-SL, and the probes of its encoder are Dec-SLRep. `fedu2` takes SimCLR, SimSiam and
BYOL; `orchestra` and `ssd` have an objective of their own.

Optimizers, rates, batches and views of its rows are ours (docs/recipes.md); heads,
temperatures and weights are those of the objectives' papers.
"""

from collections.abc import Iterator

from binaries import experiment
from binaries.config import programs
from binaries.config import run_config
from binaries.launching import program
from tff_ssl.settings import encoders
from tff_ssl.settings import learning
from tff_ssl.settings import methods
from tff_ssl.settings import objectives
from tff_ssl.settings import parts

# The objectives that any method of averaging minimises.
OBJECTIVES: tuple[objectives.Objective, ...] = (
  objectives.Simsiam(),
  objectives.Simclr(),
  objectives.MocoV1(),
  objectives.MocoV2(),
  objectives.Byol(),
  objectives.Swav(),
  objectives.Dino(),
  objectives.Cco(),
  # Summed over 256 dimensions, the distance of two views outweighs their variance 256
  # times: at any rate encodings shrink to a point, whose loss is the least.
  objectives.Vicreg(mean_distance=True),
  objectives.Spectral(),
  objectives.Lejepa(),
  objectives.Uniformity(),
  objectives.Mae(),
  objectives.Supervised(),
)
_METHODS: tuple[methods.Method, ...] = (
  methods.FedAvg(),
  methods.FedProx(),
  methods.FedBN(),
  methods.FedSSL(),
  methods.Scaffold(),
  methods.LDawa(),
  methods.Centralized(),
)


# Those that FedU2's paper regularises.
_DISPERSED: tuple[objectives.Objective, ...] = (
  objectives.Simclr(),
  objectives.Simsiam(),
  objectives.Byol(),
)


def _has_sgd(objective: objectives.Objective) -> bool:
  """Returns whether clients have SGD and the views of papers."""
  # By Adam, DINO's encodings of bright shapes on black collapse.
  is_dino = isinstance(objective, objectives.Dino)
  return objective.batch_norm or objective.labelled or is_dino


def _clients(
  method: methods.Method, objective: objectives.Objective
) -> learning.Clients:
  """Adam in small batches, or SGD with momentum.

  Adam's steps have the same length whatever a loss sums over: at the rate of SGD that
  suits SimCLR, encodings of CCO collapse. In batches of 128 the clients of FedAvg take
  too few steps between two averages (docs/recipes.md). SCAFFOLD needs plain SGD.
  """
  if isinstance(method, methods.Scaffold):
    rate = 1.0 if objective.batch_norm else 0.1
    if isinstance(objective, objectives.Cco | objectives.Vicreg):
      rate = 0.003
    return learning.SgdClients(learning_rate=rate, batch_size=128)
  if _has_sgd(objective):
    rate = 0.3 if objective.batch_norm else 0.03
    return learning.SgdClients(learning_rate=rate, momentum=0.9, batch_size=128)
  rate, batch_size = (
    (4e-3, 256) if isinstance(method, methods.Centralized) else (2e-3, 32)
  )
  return learning.AdamClients(
    kind='adam', learning_rate=rate, schedule='cosine', batch_size=batch_size
  )


def _row(
  method: methods.Method, objective: objectives.Objective
) -> run_config.RunConfig:
  """Five clients that differ, as in Dec-SSL."""
  # Without batch norm, clients of FedBN have nothing to keep.
  batch_norm = objective.batch_norm or isinstance(method, methods.FedBN)
  return run_config.RunConfig(
    method,
    objective,
    partition='shares:alpha=0.1,clients=5',
    clients_per_round=5,
    encoder=encoders.default(objective, batch_norm),
    augmentation='byol_no_blur' if _has_sgd(objective) else 'small',
    clients=_clients(method, objective),
  )


def _own_rows() -> Iterator[run_config.RunConfig]:
  """Yields the runs of parts from outside the checkout: all methods, any objective."""
  own = [part.settings() for part in parts.own(parts.OBJECTIVES)]
  for method in _METHODS:
    for objective in own:
      yield _row(method, objective)
  for part in parts.own(parts.METHODS):
    for objective in (*OBJECTIVES, *own):
      if part.settings.objective in (None, objective.kind):
        yield _row(part.settings(), objective)


PROGRAM = programs.Program(
  'fedavg_ssl',
  programs.rows(
    *(
      _row(method, objective)
      for method in _METHODS
      for objective in OBJECTIVES
      # Its transformer has no batch norm for clients to keep.
      if not (
        isinstance(method, methods.FedBN) and isinstance(objective, objectives.Mae)
      )
    ),
    *(_row(methods.FedU2(), objective) for objective in _DISPERSED),
    _row(methods.Orchestra(), objectives.Orchestra()),
    _row(methods.SSD(), objectives.Ssd()),
  ),
  _own_rows,
)


# Runs an experiment, or resumes it.
main = experiment.run


if __name__ == '__main__':
  program.run('fedavg_ssl')
