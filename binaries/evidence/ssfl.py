"""Claims of SSFL.

"Tackling Label Deficiency in Federated Learning via Personalized Self-Supervision".
"""

from binaries.evidence import claim as claim_lib

_PAPER = 'SSFL'
_NETWORKS = {
  'digits': '--task=digits --encoder_norm=batch --augmentation=mild',
  'cifar': '--task=cifar10 --image_size=16 --encoder_norm=batch --encoder_width=0.5',
}
_PLAN = {
  # Half as wide a network learns too little in 15 rounds. Of the rates that the paper
  # tries, 0.3 is best (0.1 for MAML) with seed 100, which no claim has. At 0.03 the
  # global encoder learns so little that kNN is better on an untrained one.
  'digits': '--participation=1 --local_epochs=5 --batch_size=32 --accumulate=1 '
  '--client_learning_rate=0.3 --client_momentum=0.9 --rounds=15',
  # The weight decay is that of SimSiam on CIFAR-10: without it the centralized encoder
  # learns less. At 0.1 the global encoder learns well; at 0.3 it collapses (seed 100).
  'cifar': '--participation=1 --local_epochs=5 --batch_size=32 --accumulate=1 '
  '--client_learning_rate=0.1 --client_momentum=0.9 --client_weight_decay=5e-4 '
  '--client_schedule=cosine --rounds=15 --examples_per_client_at_most=2000',
}
# Of the personal encoders: an uneven deal that leaves each client some of most classes.
_UNEVEN = '--partition=shares:alpha=0.3,clients=5'
_ALL_LABELS = 'linear/100%/accuracy'
_METHODS = {
  'global': 'global',
  'LA': 'la',
  'MAML': 'maml',
  'BiLevel': 'bilevel',
  'Per': 'per',
}
# Of Per.
_LAMBDA = 0.1
_LAMBDAS = {
  'digits': (10, 1, _LAMBDA, 0.01, 0.001),
  # A run takes ten minutes of a core: the ends alone.
  'cifar': (10, _LAMBDA, 0.001),
}
# The paper's grid. The first is that of the plan on digits.
_RATES = (0.3, 0.1, 0.03, 0.01)
_ALONE = 'stand-alone'
_RANGE = claim_lib.Range('centralized SimSiam', 'random encoder')


def claims(budget: str) -> tuple[claim_lib.Claim, ...]:
  """Returns the claims of a budget.

  Args:
    budget: One of `claim.BUDGETS`.
  """
  return (
    _table_1(budget),
    _table_2(budget, 'ssfl-personal-linear', 'a linear probe', claim_lib.LINEAR),
    _table_2(budget, 'ssfl-personal-knn', 'kNN', claim_lib.KNN),
    _maml(budget),
    _figure_4(budget),
    _figure_5(budget),
    _lambda(budget),
    # Those on CIFAR-10 have the rate that one seed found.
    *([_rate(budget)] if budget == 'digits' else []),
  )


def _global(budget: str, objective: str, deal: str, *more: str) -> claim_lib.Run:
  """Returns a run of FedAvg.

  Args:
    budget: One of `claim.BUDGETS`.
    objective: simsiam or supervised.
    deal: 'iid', or alpha.
    *more: Other flags.
  """
  kind = 'iid:clients=5' if deal == 'iid' else f'shares:alpha={deal},clients=5'
  return claim_lib.run(
    f'fedavg_{objective}_{deal}',
    'fedavg_ssl',
    _NETWORKS[budget],
    _PLAN[budget],
    f'--algorithm=fedavg --objective={objective} --partition={kind}',
    '--label_fractions=0.1,1',
    *more,
  )


def _bounds(budget: str, column: str) -> dict[str, claim_lib.Figure]:
  """Returns the upper and the lower bound: SimSiam on all images, and no training.

  They are tested on all test images; a client's own encoder on those that are dealt to
  the client.

  Args:
    budget: One of `claim.BUDGETS`.
    column: Of an encoder that all clients share.
  """
  central = claim_lib.run(
    'simsiam_centralized_as_ssfl',
    'fedavg_ssl',
    _NETWORKS[budget],
    _PLAN[budget],
    '--algorithm=centralized --objective=simsiam --partition=iid:clients=5',
    '--label_fractions=0.1',
    claim_lib.BASELINES,
  )
  return {
    _RANGE.upper: claim_lib.Figure(central, column),
    _RANGE.lower: claim_lib.Figure(central, claim_lib.untrained(column)),
  }


def _table_1(budget: str) -> claim_lib.Claim:
  even = _global(budget, 'simsiam', 'iid', claim_lib.BASELINES)
  figures = {
    'supervised, IID': claim_lib.Figure(
      _global(budget, 'supervised', 'iid'), 'classifier/accuracy'
    ),
    'supervised, alpha = 0.1': claim_lib.Figure(
      _global(budget, 'supervised', '0.1'), 'classifier/accuracy'
    ),
    'SimSiam, IID': claim_lib.Figure(even, _ALL_LABELS),
    'SimSiam, alpha = 0.1': claim_lib.Figure(
      _global(budget, 'simsiam', '0.1'), _ALL_LABELS
    ),
    'random encoder': claim_lib.Figure(even, claim_lib.untrained(_ALL_LABELS)),
  }
  return claim_lib.Claim(
    'ssfl-supervised',
    _PAPER,
    'Table 1',
    'Supervised FedAvg is ahead of SimSiam under FedAvg, IID and with alpha = 0.1, and '
    'both lose by the uneven classes.',
    budget,
    figures,
    (
      claim_lib.ahead('supervised, IID', 'SimSiam, IID'),
      claim_lib.ahead('supervised, alpha = 0.1', 'SimSiam, alpha = 0.1'),
      claim_lib.ahead('supervised, IID', 'supervised, alpha = 0.1'),
      claim_lib.ahead('SimSiam, IID', 'SimSiam, alpha = 0.1'),
    ),
    claim_lib.Range('supervised, IID', 'random encoder'),
  )


def _method(budget: str, name: str, *more: str) -> claim_lib.Run:
  """Returns a run of a personal method.

  Args:
    budget: One of `claim.BUDGETS`.
    name: Of the run, after `ssfl_`; up to an underscore the method.
    *more: Other flags.
  """
  method = name.split('_')[0]
  own = {
    'per': f'--consensus_weight={_LAMBDA}',
    'bilevel': '--proximity_weight=0.1',
    'maml': '--client_learning_rate=0.1' if budget == 'digits' else '',
  }
  return claim_lib.run(
    f'ssfl_{name}',
    'ssfl',
    _NETWORKS[budget],
    _PLAN[budget],
    f'--method={method} {_UNEVEN} --label_fractions=0.1 --personal_methods=logistic',
    own.get(method, ''),
    *more,
  )


def _per(budget: str, weight: float) -> claim_lib.Run:
  """Returns the run of Per with a lambda; with 0 clients learn alone.

  Args:
    budget: One of `claim.BUDGETS`.
    weight: The lambda.
  """
  if weight == _LAMBDA:
    return _method(budget, 'per')
  return _method(budget, f'per_lambda_{weight}', f'--consensus_weight={weight}')


def _personal(column: str) -> str:
  """Returns the column of clients' own encoders for that of one encoder for all."""
  return f'personal/{column}'


def _alone(budget: str, column: str) -> dict[str, claim_lib.Figure]:
  """Returns what clients reach alone, each tested on its own test images.

  Args:
    budget: One of `claim.BUDGETS`.
    column: Of an encoder that all clients share.
  """
  return {_ALONE: claim_lib.Figure(_per(budget, 0), _personal(column))}


def _table_2(budget: str, claim: str, title: str, column: str) -> claim_lib.Claim:
  return claim_lib.Claim(
    claim,
    _PAPER,
    'Table 2',
    f"Each client's own encoder, by {title} on its own test images: Per is ahead of "
    'BiLevel, BiLevel of LA, LA of the global encoder.',
    budget,
    {
      **{
        title: claim_lib.Figure(_method(budget, method), _personal(column))
        for title, method in _METHODS.items()
        if method != 'maml'
      },
      **_alone(budget, column),
      **_bounds(budget, column),
    },
    (
      claim_lib.ahead('Per', 'BiLevel'),
      claim_lib.ahead('BiLevel', 'LA'),
      claim_lib.ahead('LA', 'global'),
    ),
    _RANGE,
  )


def _maml(budget: str) -> claim_lib.Claim:
  return claim_lib.Claim(
    'ssfl-maml',
    _PAPER,
    'Table 2',
    "MAML's personal encoders are between those of Per and of BiLevel.",
    budget,
    {
      **{
        title: claim_lib.Figure(
          _method(budget, _METHODS[title]), _personal(claim_lib.LINEAR)
        )
        for title in ('Per', 'MAML', 'BiLevel')
      },
      **_alone(budget, claim_lib.LINEAR),
      **_bounds(budget, claim_lib.LINEAR),
    },
    (claim_lib.ahead('Per', 'MAML'), claim_lib.ahead('MAML', 'BiLevel')),
    _RANGE,
  )


def _figure_4(budget: str) -> claim_lib.Claim:
  # Of as many epochs. The paper tunes the rate for each; here larger batches, which
  # take an eighth of the steps, have four times the rate.
  rate = {'digits': 1.2, 'cifar': 0.4}[budget]
  batches = {
    '32 x 8': f'--batch_size=32 --accumulate=8 --client_learning_rate={rate}',
    '256': f'--batch_size=256 --accumulate=1 --client_learning_rate={rate}',
  }
  figures = {
    title: claim_lib.Figure(
      _method(budget, f'global_batch_{title.replace(" ", "")}', flags)
    )
    for title, flags in batches.items()
  }
  figures['32'] = claim_lib.Figure(_method(budget, 'global'))
  return claim_lib.Claim(
    'ssfl-batch',
    _PAPER,
    'Figure 4',
    'SimSiam needs large batches: 256 are better than 32, and 8 gradients of 32 '
    'accumulated do as well.',
    budget,
    {
      **figures,
      **_alone(budget, claim_lib.LINEAR),
      **_bounds(budget, claim_lib.LINEAR),
    },
    (
      claim_lib.ahead('256', '32'),
      claim_lib.ahead('32 x 8', '32'),
      claim_lib.level('32 x 8', '256', within=0.03),
    ),
    _RANGE,
  )


def _figure_5(budget: str) -> claim_lib.Claim:
  return claim_lib.Claim(
    'ssfl-alpha',
    _PAPER,
    'Figure 5',
    'The more uneven the classes, the worse the global encoder: alpha = 0.5 is better '
    'than 0.1.',
    budget,
    {
      **{
        f'alpha = {alpha}': claim_lib.Figure(_global(budget, 'simsiam', alpha))
        for alpha in ('0.5', '0.1')
      },
      **_bounds(budget, claim_lib.LINEAR),
    },
    (claim_lib.ahead('alpha = 0.5', 'alpha = 0.1'),),
    _RANGE,
  )


def _lambda(budget: str) -> claim_lib.Claim:
  personal = _personal(claim_lib.LINEAR)
  figures = {
    f'lambda = {weight}': claim_lib.Figure(_per(budget, weight), personal)
    for weight in _LAMBDAS[budget]
  } | _alone(budget, claim_lib.LINEAR)
  return claim_lib.Claim(
    'ssfl-lambda',
    _PAPER,
    'Section 5.3',
    "Per's lambda must be tuned over {10, 1, 0.1, 0.01, 0.001}: 0.1 is better than "
    'either end.',
    budget,
    {**figures, **_bounds(budget, claim_lib.LINEAR)},
    (
      claim_lib.ahead('lambda = 0.1', 'lambda = 10'),
      claim_lib.ahead('lambda = 0.1', 'lambda = 0.001'),
    ),
    _RANGE,
  )


def _rate(budget: str) -> claim_lib.Claim:
  figures = {
    f'rate {rate}': claim_lib.Figure(
      _method(budget, f'global_rate_{rate}', f'--client_learning_rate={rate}')
    )
    for rate in _RATES[1:]
  }
  best = f'rate {_RATES[0]}'
  return claim_lib.Claim(
    'ssfl-rate',
    _PAPER,
    'Section 5.2',
    'The rate must be searched over {0.3, 0.1, 0.03, 0.01}: the highest, which is best '
    'here, is ahead of the two lowest by five points.',
    budget,
    {
      best: claim_lib.Figure(_method(budget, 'global')),
      **figures,
      **_alone(budget, claim_lib.LINEAR),
      **_bounds(budget, claim_lib.LINEAR),
    },
    tuple(claim_lib.ahead(best, f'rate {rate}', by=0.05) for rate in _RATES[2:]),
    _RANGE,
  )
