"""Claims of DCCO.

"Federated Training of Dual Encoding Models on Small Non-IID Client Datasets".
"""

from collections.abc import Mapping
import itertools

from binaries.evidence import claim as claim_lib

_PAPER = 'DCCO'
_ALGORITHMS = {
  'DCCO': 'dcco',
  'FedAvg + NT-Xent': 'fedavg_nt_xent',
  'FedAvg + CCO': 'fedavg_cco',
}
# Table 1: a fixed number of images a round, of more or fewer clients.
_COMMON = {
  'digits': '--task=digits --augmentation=mild --rounds=100 '
  '--server_learning_rate=8e-3 --label_fractions=0.1',
  'cifar': '--task=cifar10 --image_size=16 --encoder_width=0.5 --projector=128,32 '
  '--rounds=500 --server_learning_rate=4e-3 --label_fractions=0.1',
}
_ONE_CLASS, _IID = _DEALS = ('one class', 'IID')
# Images a client -> clients a round: 256 and 512 images. With 64 images of digits DCCO
# learns little in any number of rounds of a minute: their correlations are too noisy.
_SPLITS = {
  'digits': {1: 256, 4: 64, 16: 16},
  'cifar': {1: 512, 4: 128, 8: 64, 16: 32},
}
# Five times as long as the other runs of CIFAR-10: 26 passes over its images.
_LONGER = '--rounds=2500'
_SUPERVISED_STEPS = {'digits': 500, 'cifar': 1000}
# Table 2: clients a round, of two images, or of cases of one to six.
_COHORTS = {
  'digits': (16, 64, 256),
  'cifar': (64, 128, 256),
}
_OF_COHORTS = {
  'digits': '--task=digits --augmentation=mild --rounds=100 '
  '--server_learning_rate=8e-3 --label_fractions=0.1 '
  '--partition=dirichlet:alpha=0,examples=2 --packs=2',
  'cifar': '--task=ham10000 --image_size=32 --encoder_width=0.5 --projector=128,32 '
  '--rounds=300 --server_learning_rate=4e-3 --label_fractions=0.1,1 '
  '--partition=case --packs=2',
}
_OF_COLLAPSE = {
  'digits': '--task=digits --augmentation=mild --encoder_width=0.5 '
  '--projector=64,32 --rounds=30',
  'cifar': '--task=cifar10 --image_size=16 --encoder_width=0.5 '
  '--examples_per_client_at_most=2000 --client_weight_decay=5e-4 --rounds=20',
}


def claims(budget: str) -> tuple[claim_lib.Claim, ...]:
  """Returns the claims of a budget.

  Args:
    budget: One of `claim.BUDGETS`.
  """
  return (
    *_baselines(budget),
    *([_longer(budget)] if budget == 'cifar' else []),
    *_trends(budget),
    _cohorts(budget),
    _collapse(budget),
  )


def _table_1(
  budget: str,
  name: str,
  sentence: str,
  *comparisons: claim_lib.Comparison,
) -> claim_lib.Claim:
  """Returns a claim on the figures of Table 1.

  Args:
    budget: One of `claim.BUDGETS`.
    name: Of the claim.
    sentence: The claim.
    *comparisons: What decides.
  """
  named = {title for comparison in comparisons for title in comparison.terms}
  bounds = claim_lib.Range('centralized CCO', 'random encoder')
  named |= {bounds.upper, bounds.lower}
  figures = _figures_of_table_1(budget)
  return claim_lib.Claim(
    name,
    _PAPER,
    'Table 1',
    sentence,
    budget,
    {title: figures[title] for title in figures if title in named},
    comparisons,
    bounds,
  )


def _baselines(budget: str) -> list[claim_lib.Claim]:
  """Returns the claims on DCCO against other methods."""
  pairs = [(size, deal) for size in _sizes(budget) for deal in _DEALS]
  return [
    _table_1(
      budget,
      'dcco-centralized',
      'With clients of one image DCCO is level with centralized training by CCO.',
      claim_lib.level(_name('DCCO', 1, _ONE_CLASS), 'centralized CCO', within=0.03),
    ),
    _table_1(
      budget,
      'dcco-fedavg-cco',
      'FedAvg with the CCO loss within each client fails: with clients of four images '
      'it is far behind DCCO.',
      *(
        claim_lib.ahead(_name('DCCO', 4, deal), _name('FedAvg + CCO', 4, deal), by=0.08)
        for deal in _DEALS
      ),
    ),
    _table_1(
      budget,
      'dcco-nt-xent',
      'DCCO is ahead of FedAvg with NT-Xent, whatever the size of the clients, IID or '
      'of one class each.',
      *(
        claim_lib.ahead(_name('DCCO', *pair), _name('FedAvg + NT-Xent', *pair))
        for pair in pairs
      ),
    ),
    _table_1(
      budget,
      'dcco-supervised',
      'With a tenth of the labels a linear probe of DCCO is ahead of supervised '
      'training from scratch.',
      claim_lib.ahead(_name('DCCO', 1, _ONE_CLASS), 'supervised from scratch'),
      claim_lib.ahead(_name('DCCO', 4, _ONE_CLASS), 'supervised from scratch'),
    ),
  ]


def _longer(budget: str) -> claim_lib.Claim:
  """Returns the claim on NT-Xent for clients of four images, of longer runs."""
  size = 4
  figures = {
    _name(title, size, deal): claim_lib.Figure(
      _split(budget, _ALGORITHMS[title], size, deal, longer=True)
    )
    for title in ('DCCO', 'FedAvg + NT-Xent')
    for deal in _DEALS
  }
  figures['random encoder'] = _figures_of_table_1(budget)['random encoder']
  return claim_lib.Claim(
    'dcco-nt-xent-longer',
    _PAPER,
    'Table 1',
    'In five times as many rounds DCCO is ahead of FedAvg with NT-Xent, of clients of '
    'four images, IID or of one class each.',
    budget,
    figures,
    tuple(
      claim_lib.ahead(_name('DCCO', size, deal), _name('FedAvg + NT-Xent', size, deal))
      for deal in _DEALS
    ),
    claim_lib.Range(_name('DCCO', size, _IID), 'random encoder'),
  )


def _trends(budget: str) -> list[claim_lib.Claim]:
  """Returns the claims on the size of clients, for as many images a round."""
  sizes = _sizes(budget)
  smallest, largest = sizes[0], sizes[-1]
  return [
    _table_1(
      budget,
      'dcco-smallest',
      'DCCO gains most over FedAvg with NT-Xent for the smallest clients.',
      *(
        claim_lib.wider(
          (_name('DCCO', smallest, deal), _name('FedAvg + NT-Xent', smallest, deal)),
          (_name('DCCO', largest, deal), _name('FedAvg + NT-Xent', largest, deal)),
        )
        for deal in _DEALS
      ),
    ),
    _table_1(
      budget,
      'dcco-trend-one-class',
      'Of clients of one class, more and smaller ones are better for the same images '
      'a round.',
      *(
        claim_lib.ahead(
          _name('DCCO', smaller, _ONE_CLASS), _name('DCCO', larger, _ONE_CLASS)
        )
        for smaller, larger in itertools.pairwise([1, *sizes])
      ),
    ),
    _table_1(
      budget,
      'dcco-trend-iid',
      'Of IID clients, their size does not matter for the same images a round.',
      claim_lib.level(
        _name('DCCO', smallest, _IID), _name('DCCO', largest, _IID), within=0.03
      ),
    ),
  ]


def _sizes(budget: str) -> list[int]:
  """Returns the sizes of clients that have a loss within each."""
  return [size for size in _SPLITS[budget] if size > 1]


def _figures_of_table_1(budget: str) -> Mapping[str, claim_lib.Figure]:
  common = _COMMON[budget]
  steps = _SUPERVISED_STEPS[budget]
  splits = _SPLITS[budget]
  central = claim_lib.run(
    'dcco_centralized',
    'dcco',
    common,
    f'--algorithm=centralized_cco {_deal(1, _IID)} --clients_per_round={splits[1]}',
    f'--baselines --supervised_steps={steps}',
  )
  figures = {
    'random encoder': claim_lib.Figure(central, claim_lib.untrained()),
    'supervised from scratch': claim_lib.Figure(
      central, 'supervised_from_scratch/finetune/10%/accuracy'
    ),
    'centralized CCO': claim_lib.Figure(central),
  }
  for title, algorithm in _ALGORITHMS.items():
    for size in splits:
      for deal in _DEALS:
        # One image has one class, and no loss within its client.
        if size == 1 and (algorithm != 'dcco' or deal == _IID):
          continue
        run = _split(budget, algorithm, size, deal)
        figures[_name(title, size, deal)] = claim_lib.Figure(run)
  return figures


def _split(
  budget: str, algorithm: str, size: int, deal: str, *, longer: bool = False
) -> claim_lib.Run:
  """Returns a run of Table 1.

  Args:
    budget: One of `claim.BUDGETS`.
    algorithm: As the program names it.
    size: Images of a client.
    deal: One of `_DEALS`.
    longer: Whether it is one of `_LONGER`.
  """
  clients = _SPLITS[budget][size]
  name = f'{algorithm}_{clients}x{size}_{deal.replace(" ", "_").lower()}'
  return claim_lib.run(
    f'{name}_longer' if longer else name,
    'dcco',
    _COMMON[budget],
    f'--algorithm={algorithm} {_deal(size, deal)} --clients_per_round={clients}',
    '--packs=2',
    _LONGER if longer else '',
  )


def _deal(size: int, deal: str) -> str:
  kind = 'iid:' if deal == _IID else 'dirichlet:alpha=0,'
  return f'--partition={kind}examples={size}'


def _name(title: str, size: int, deal: str) -> str:
  return f'{title}, clients of {size}, {deal}'


def _cohorts(budget: str) -> claim_lib.Claim:
  sizes = _COHORTS[budget]
  runs = {
    clients: claim_lib.run(
      f'dcco_cohort_{clients}',
      'dcco',
      _OF_COHORTS[budget],
      f'--algorithm=dcco --clients_per_round={clients}',
      claim_lib.BASELINES if clients == sizes[-1] else '',
    )
    for clients in sizes
  }
  figures = {
    f'{clients} clients': claim_lib.Figure(run) for clients, run in runs.items()
  }
  names = list(figures)
  figures['random encoder'] = claim_lib.Figure(runs[sizes[-1]], claim_lib.untrained())
  return claim_lib.Claim(
    'dcco-cohort',
    _PAPER,
    'Table 2',
    'Larger cohorts of small clients give DCCO better encoders.',
    budget,
    figures,
    tuple(
      claim_lib.ahead(larger, smaller) for smaller, larger in itertools.pairwise(names)
    ),
    claim_lib.Range(names[-1], 'random encoder'),
  )


def _collapse(budget: str) -> claim_lib.Claim:
  figures = {}
  bounds = claim_lib.Range('BYOL, batch norm', 'random encoder, batch norm')
  for objective, title in (('byol', 'BYOL'), ('simsiam', 'SimSiam')):
    for norm in ('batch', 'group'):
      name = f'{title}, {norm} norm'
      run = claim_lib.run(
        f'{objective}_centralized_{norm}',
        'fedavg_ssl',
        _OF_COLLAPSE[budget],
        f'--algorithm=centralized --objective={objective} --encoder_norm={norm}',
        '--partition=iid:clients=5 --participation=1 --batch_size=128',
        '--client_learning_rate=0.1 --client_momentum=0.9 --label_fractions=0.1',
        '--predictor_width=64' if budget == 'digits' else '',
        claim_lib.BASELINES if name == bounds.upper else '',
      )
      figures[name] = claim_lib.Figure(run, claim_lib.KNN)
  figures[bounds.lower] = claim_lib.Figure(
    figures[bounds.upper].run, claim_lib.untrained(claim_lib.KNN)
  )
  return claim_lib.Claim(
    'dcco-group-norm',
    _PAPER,
    'Appendix C',
    'BYOL and SimSiam collapse with group norm, and do not with batch norm '
    '(centralized, kNN).',
    budget,
    figures,
    tuple(
      claim_lib.ahead(f'{title}, batch norm', f'{title}, group norm', by=0.08)
      for title in ('BYOL', 'SimSiam')
    ),
    bounds,
  )
