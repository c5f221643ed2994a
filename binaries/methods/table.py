"""The table of methods: name -> algorithm, objective, and the values of flags.

A method is an algorithm (`algorithms`,
`personal_algorithms`, `server_algorithms`) with an objective
(`objectives`); it takes the flags of both. Each program offers its part of the table,
one family of experiments. The value of a flag that the command line does not give is
the first that is found in: the method's row, its program's, the objective's and the
algorithm's defaults, `DEFAULTS`, the flag's own default.
"""

from collections.abc import Callable, Collection, Mapping
import dataclasses
from typing import Any

from binaries.flags import common
from binaries.flags import evaluation
from binaries.flags import own_encoders
from binaries.methods import algorithms
from binaries.methods import decentralized_algorithms
from binaries.methods import objectives
from binaries.methods import personal_algorithms
from binaries.methods import server_algorithms

ALGORITHMS: Mapping[str, algorithms.Algorithm] = {
  **algorithms.ALGORITHMS,
  **decentralized_algorithms.ALGORITHMS,
  **personal_algorithms.ALGORITHMS,
  **server_algorithms.ALGORITHMS,
}
OBJECTIVES = objectives.OBJECTIVES

# Of every method. The server takes the mean update as it is: FedAvg.
DEFAULTS: Mapping[str, Any] = {
  **common.DEFAULTS,
  **evaluation.DEFAULTS,
  'server_optimizer': 'sgd',
  'server_learning_rate': 1.0,
  'server_schedule': 'constant',
  'client_learning_rate': 0.03,
  'local_epochs': 1,
  'client_optimizer': 'sgd',
  'personal_methods': [],
}


@dataclasses.dataclass(frozen=True)
class Method:
  """A row.

  Attributes:
    algorithm: Of `ALGORITHMS`.
    objective: Of `OBJECTIVES`.
    defaults: Values of flags where the command line gives none; of a flag that it does
      not take, the value it has.
    takes: Flags that it reads, besides those of algorithm and objective.
    renamed: Flags that are another name of one that it takes, with that one.
    alias: What other name the method has, to be told when it is run; None: none.
    personal: As `algorithms.Algorithm.personal`, in place of the algorithm's.
  """

  algorithm: str
  objective: str
  defaults: Mapping[str, Any] = dataclasses.field(default_factory=dict)
  takes: tuple[str, ...] = ()
  renamed: Mapping[str, str] = dataclasses.field(default_factory=dict)
  alias: str | None = None
  personal: Any = None

  def flags(self) -> Collection[str]:
    """Returns the names of the flags that it takes, besides those of every run."""
    return {
      *ALGORITHMS[self.algorithm].takes,
      *OBJECTIVES[self.objective].takes,
      *self.takes,
      *self.renamed,
    }


@dataclasses.dataclass(frozen=True)
class Program:
  """The part of the table that a program offers.

  Attributes:
    name: Of the program in `binaries`.
    choosers: Flags that name the method: its row, or of a product the algorithm and the
      objective.
    default: The row that is taken where no flag names one.
    methods: The rows by name; of a product, by 'ALGORITHM OBJECTIVE'. What two programs
      call the same is the same.
    aliases: Other names of rows that `choosers` may have.
    defaults: Values of flags in place of those of algorithm and objective.
    title: How a run is called in tables and on the encoder's card.
    personal: Whether clients' own encoders are evaluated unasked.
    check: Raises ValueError where flags do not fit its experiments.
  """

  name: str
  choosers: tuple[str, ...]
  default: str
  methods: Mapping[str, Method]
  aliases: Mapping[str, str] = dataclasses.field(default_factory=dict)
  defaults: Mapping[str, Any] = dataclasses.field(default_factory=dict)
  title: str = '{}'
  personal: bool = False
  check: Callable[[], None] = lambda: None


def _check_norm() -> None:
  if common.NORM.value == 'batch':
    raise ValueError(
      'encoder_norm is batch; DCCO and what it is compared with take group, for their '
      'layers must not depend on the batch. binaries.fedavg_ssl takes both.'
    )


# The DCCO paper's server (section 4), and its projectors on CIFAR-100, a quarter as
# wide for small encoders.
_DCCO = Program(
  'dcco',
  ('algorithm',),
  'dcco',
  {
    'dcco': Method('dcco', 'cco'),
    'fedavg_cco': Method(
      'fedavg',
      'cco',
      renamed={'local_steps': 'local_epochs'},
      alias='binaries.fedavg_ssl --algorithm=fedavg --objective=cco, by other defaults',
    ),
    'fedavg_nt_xent': Method(
      'fedavg',
      'simclr',
      {'temperature': 0.1},
      renamed={'local_steps': 'local_epochs'},
      alias='binaries.fedavg_ssl --algorithm=fedavg --objective=simclr, by other '
      'defaults',
    ),
    'centralized_cco': Method('centralized_steps', 'cco'),
    'centralized_supervised': Method(
      'centralized_steps', 'supervised', takes=('supervised_labels',)
    ),
  },
  {'supervised': 'centralized_supervised'},
  {
    'server_optimizer': 'adam',
    'server_learning_rate': 2e-3,
    'server_schedule': 'cosine',
    'client_learning_rate': 1.0,
    'encoder_norm': 'group',
  },
  check=_check_norm,
)

# Of the methods that are a product of algorithm and objective.
_OF_FEDAVG = (
  'simclr',
  'moco_v1',
  'moco_v2',
  'simsiam',
  'byol',
  'swav',
  'dino',
  'cco',
  'vicreg',
  'uniformity',
  'mae',
  'supervised',
)
_PLAIN_SGD = {'client_learning_rate': 0.1, 'client_momentum': 0.0}
# Five clients that differ, as in Dec-SSL. Its Adam at 1e-3 suits SimCLR; the papers of
# the other objectives and algorithms have SGD with momentum.
_FEDAVG_SSL = Program(
  'fedavg_ssl',
  ('algorithm', 'objective'),
  'fedavg simsiam',
  {
    f'{algorithm} {objective}': Method(
      algorithm, objective, _PLAIN_SGD if algorithm == 'scaffold' else {}
    )
    for algorithm in (
      'fedavg',
      'fedprox',
      'fedbn',
      'fed_ssl',
      'scaffold',
      'l_dawa',
      'centralized',
    )
    for objective in _OF_FEDAVG
  },
  defaults={
    'partition': 'shares:alpha=0.1,clients=5',
    'clients_per_round': 5,
    'batch_size': 128,
    'client_learning_rate': 0.03,
    'client_momentum': 0.9,
  },
)


def _as_in_fedavg_ssl(algorithm: str, objective: str, **defaults: Any) -> Method:
  """Returns a row that `binaries.fedavg_ssl` has too, under the names of its parts."""
  alias = (
    f'binaries.fedavg_ssl --algorithm={algorithm} --objective={objective}, by other '
    'defaults'
  )
  return Method(algorithm, objective, defaults, alias=alias)


# The authors' key network starts each round as the global one, with this momentum.
_FED_MOCO = {'encoder_norm': 'batch', 'target_momentum': 0.99, 'reset_target': True}
# The networks of the FedEMA paper have batch norm, whatever the objective.
_FEDEMA = Program(
  'fedema',
  ('method',),
  'fedema',
  {
    'fed_simclr': _as_in_fedavg_ssl('fedavg', 'simclr', encoder_norm='batch'),
    'fed_simsiam': _as_in_fedavg_ssl('fedavg', 'simsiam'),
    'fed_moco_v1': _as_in_fedavg_ssl('fed_ssl', 'moco_v1', **_FED_MOCO),
    'fed_moco_v2': _as_in_fedavg_ssl('fed_ssl', 'moco_v2', **_FED_MOCO),
    # With flags of its own for the networks that are shared.
    'fed_byol': Method('fed_byol', 'byol'),
    'fedu': Method('fedu', 'byol'),
    'fedema': Method('fedema', 'byol'),
    'fedca': Method('fedca', 'fedca', {'encoder_norm': 'batch'}),
  },
  # Section 5.1 and appendix A: five clients of two classes each, all in every round.
  defaults={
    'partition': 'classes:per_client=2,clients=5',
    'clients_per_round': 5,
    'local_epochs': 5,
    'batch_size': 128,
    'client_learning_rate': 0.032,
    'client_momentum': 0.9,
    'client_weight_decay': 5e-4,
    'client_schedule': 'cosine',
  },
)

# The paper's: ten clients a round of Dirichlet 0.1, SGD with momentum and one of four
# rates, steps of 8 batches of 32. How many clients there are it does not say: all ten.
_SSFL = Program(
  'ssfl',
  ('method',),
  'per',
  {
    'global': dataclasses.replace(
      _as_in_fedavg_ssl('fedavg', 'simsiam'),
      takes=own_encoders.NAMES,
      personal=personal_algorithms.shared_model,
    ),
    'la': Method('la', 'simsiam'),
    'maml': Method('maml', 'simsiam'),
    'bilevel': Method('bilevel', 'simsiam'),
    # Of the paper's {10, 1, 0.1, 0.01, 0.001}, which does not say what was best.
    'per': Method('per', 'simsiam', {'consensus_weight': 0.1}),
  },
  defaults={
    'partition': 'shares:alpha=0.1,clients=10',
    'clients_per_round': 10,
    'batch_size': 32,
    'accumulate': 8,
    'client_learning_rate': 0.03,
    'client_momentum': 0.9,
    'client_schedule': 'cosine',
    'personal_methods': ['logistic'],
  },
  title='{} ssfl',
  personal=True,
)

# Appendix C.1: SGD for these two. It gives no momentum: 0.9 is SimSiam's.
_SGD = {
  'client_optimizer': 'sgd',
  'client_learning_rate': 0.03,
  'client_momentum': 0.9,
}
# Of these FeatARC has predictions to align.
_ALIGNED = ('simclr', 'simsiam', 'byol', 'cco', 'vicreg', 'uniformity')
_OF_DEC_SSL = {'simsiam': _SGD, 'byol': _SGD}
# Appendix C.1: five sources of equal size, all in every round, five local epochs, Adam
# at 1e-3 on batches of 256, SimCLR. Of its partitions the one with the classes apart.
_DEC_SSL = Program(
  'dec_ssl',
  ('method', 'objective'),
  'featarc simclr',
  {
    f'{algorithm} {objective}': Method(
      algorithm, objective, _OF_DEC_SSL.get(objective, {})
    )
    for algorithm, objectives_of_it in (
      ('featarc', _ALIGNED),
      ('align_only', _ALIGNED),
      ('cluster_only', _OF_FEDAVG),
    )
    for objective in objectives_of_it
  }
  | {
    f'fedavg {objective}': _as_in_fedavg_ssl(
      'fedavg', objective, **_OF_DEC_SSL.get(objective, {})
    )
    for objective in _OF_FEDAVG
  }
  | {
    f'{graph} {objective}': Method(graph, objective, _OF_DEC_SSL.get(objective, {}))
    for graph in decentralized_algorithms.ALGORITHMS
    for objective in _OF_FEDAVG
  },
  defaults={
    'partition': 'skew:beta=0,clients=5',
    'clients_per_round': 5,
    'local_epochs': 5,
    'batch_size': 256,
    'client_optimizer': 'adam',
    'client_learning_rate': 1e-3,
  },
)

# The thesis's heads of 512 are for ResNet-18: a quarter as wide for small encoders. Its
# ResNet-18 has batch norm: one norm for all that are compared, but for two papers.
_HEADS = {'projector': ['128', '128'], 'predictor_width': 128}
_FEDSUP = Program(
  'fedsup',
  ('method',),
  'fedsup',
  {
    'fedsup': Method('fedsup', 'fedsup'),
    'fixmatch': Method('server_finetuned', 'fixmatch'),
    'finetuned_simclr': Method('server_finetuned', 'simclr', _HEADS),
    'finetuned_simsiam': Method('server_finetuned', 'simsiam', _HEADS),
    'finetuned_byol': Method('server_finetuned', 'byol', _HEADS),
    # Group norm is FedRGD's own advice.
    'fedrgd': Method('fedrgd', 'fixmatch', {'encoder_norm': 'group'}),
    # Of the published program: SGD at 1e-3, and a network without batch norm.
    'fedmatch': Method(
      'fedmatch', 'fedmatch', {'encoder_norm': 'group', 'client_optimizer': 'sgd'}
    ),
    'finetuned_supervised': Method('server_finetuned', 'supervised'),
    # Its clients, which do nothing, are told of in partition.csv.
    'labelled_only': Method(
      'labelled_only', 'supervised', {'partition': 'iid:clients=100'}
    ),
  },
  {
    'simclr': 'finetuned_simclr',
    'simsiam': 'finetuned_simsiam',
    'byol': 'finetuned_byol',
    'supervised': 'finetuned_supervised',
  },
  {
    'partition': 'iid:clients=100',
    'clients_per_round': 5,
    'local_epochs': 5,
    'batch_size': 128,
    'client_optimizer': 'adam',
    'client_learning_rate': 1e-3,
    'encoder_norm': 'batch',
    'evaluation_methods': ['knn', 'logistic', 'finetune'],
    'label_fractions': ['1'],
  },
)

PROGRAMS: Mapping[str, Program] = {
  program.name: program
  for program in (_DCCO, _FEDAVG_SSL, _FEDEMA, _SSFL, _DEC_SSL, _FEDSUP)
}


def values(program: Program, method: Method) -> dict[str, Any]:
  """Returns the values of a method's flags where the command line gives none.

  Args:
    program: That offers it.
    method: One of its rows.

  Returns:
    Value by name, of flags that the table has a value of.
  """
  return {
    **DEFAULTS,
    **ALGORITHMS[method.algorithm].defaults,
    **OBJECTIVES[method.objective].defaults,
    **program.defaults,
    **method.defaults,
  }


def fixed(method: Method) -> Collection[str]:
  """Returns the flags that a method does not take, but has a value of."""
  own = {
    **ALGORITHMS[method.algorithm].defaults,
    **OBJECTIVES[method.objective].defaults,
    **method.defaults,
  }
  return own.keys() - method.flags()
