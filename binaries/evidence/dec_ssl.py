"""Claims of Dec-SSL.

"Does Learning from Decentralized Non-IID Unlabeled Data Benefit from Self Supervision?"
"""

from binaries.evidence import claim as claim_lib

_PAPER = 'Dec-SSL'
_COMMON = {
  'digits': '--task=digits --encoder_width=0.5 --augmentation=mild '
  '--client_learning_rate=2e-3',
  'cifar': '--task=cifar10 --image_size=16 --encoder_width=0.5 '
  '--augmentation=simclr_no_blur --client_learning_rate=1e-3',
}
_PLAN = (
  '--algorithm=fedavg --encoder_norm=batch --batch_size=64 --client_optimizer=adam '
  '--label_fractions=0.1,1'
)
# Clients of equal size, each with class proportions of its own.
_EXAMPLES = {
  'digits': {5: 287, 20: 71},
  'cifar': {5: 10000, 20: 2500},
}
# How many of them are used: as many in all, a tenth of CIFAR-10.
_AT_MOST = {5: 1000, 20: 250}
# Local epochs in all, and of a round where they are many.
_EPOCHS = 40
_MANY = 20
_EVEN, _UNEVEN = '5', '0.02'
# Arguments of `_run` after alpha: one epoch a round, five clients, all of them.
_PLAIN = ('--local_epochs=1', _EPOCHS, 5, 1.0)
_ALL_LABELS = 'linear/100%/accuracy'
_ALONE = 'Dec-SSL, one client alone'
_RANGE = claim_lib.Range(f'Dec-SLRep, alpha = {_EVEN}', 'random encoder')
# Each title with its objective and its column.
_TITLES = {
  'Dec-SSL': ('simclr', _ALL_LABELS),
  'Dec-SLRep': ('supervised', _ALL_LABELS),
  'Dec-SL': ('supervised', 'classifier/accuracy'),
}


def claims(budget: str) -> tuple[claim_lib.Claim, ...]:
  """Returns the claims of a budget.

  Args:
    budget: One of `claim.BUDGETS`.
  """
  one, many = ('--local_epochs=1', _EPOCHS), (f'--local_epochs={_MANY}', 2)
  return (
    _robust(
      budget,
      'dec-ssl-alpha',
      'Figure 6 (a)',
      'Uneven classes (alpha = 0.02 against 5) cost Dec-SSL less than Dec-SLRep, and '
      'that less than Dec-SL.',
      {
        f'alpha = {_EVEN}': (_EVEN, *_PLAIN),
        f'alpha = {_UNEVEN}': (_UNEVEN, *_PLAIN),
      },
    ),
    _robust(
      budget,
      'dec-ssl-epochs',
      'Figure 6 (c)',
      f'With alpha = 0.02, {_MANY} local epochs a round in place of one cost Dec-SSL '
      'less than Dec-SLRep, and that less than Dec-SL.',
      {
        'E = 1': (_UNEVEN, *_PLAIN),
        f'E = {_MANY}': (_UNEVEN, *many, 5, 1.0),
      },
    ),
    _robust(
      budget,
      'dec-ssl-participation',
      'Figure 6 (d)',
      'With alpha = 0.02 and 20 clients, a fifth of them a round in place of all costs '
      'Dec-SSL less than Dec-SLRep, and that less than Dec-SL.',
      {
        'p = 1': (_UNEVEN, *one, 20, 1.0),
        'p = 0.2': (_UNEVEN, *one, 20, 0.2),
      },
    ),
    _representation(budget),
    *(
      [_transfer('cifar10', 'cifar100'), _transfer('cifar100', 'cifar10')]
      if budget == 'cifar'
      else []
    ),
  )


def _run(
  budget: str,
  objective: str,
  alpha: str,
  epochs: str,
  rounds: int,
  clients: int,
  participation: float,
) -> claim_lib.Run:
  deal = f'dirichlet:alpha={alpha},examples={_EXAMPLES[budget][clients]}'
  where = f'{alpha}_{epochs.rpartition("=")[2]}x{rounds}_{clients}_{participation:g}'
  # The lower bound of all.
  is_first = (objective, alpha, rounds) == ('simclr', _EVEN, _EPOCHS)
  return claim_lib.run(
    f'dec_{objective}_{where}',
    'fedavg_ssl',
    _COMMON[budget],
    _PLAN,
    f'--objective={objective} --partition={deal} --participation={participation:g}',
    f'{epochs} --rounds={rounds}',
    f'--examples_per_client_at_most={_AT_MOST[clients]}' if budget == 'cifar' else '',
    claim_lib.BASELINES if is_first else '',
  )


def _figure(budget: str, title: str, setting: tuple) -> claim_lib.Figure:
  objective, column = _TITLES[title]
  return claim_lib.Figure(_run(budget, objective, *setting), column)


def _alone(budget: str, alpha: str, clients: int) -> claim_lib.Figure:
  """Returns what one client reaches that trains alone, by Dec-SSL's loss.

  Its one round has as many epochs as all rounds of the others, and its encoder is
  tested as theirs are, on all test images. The seed chooses the client.

  Args:
    budget: One of `claim.BUDGETS`.
    alpha: Of the partition.
    clients: That hold the images.
  """
  plan = (f'--local_epochs={_EPOCHS}', 1, clients, 1 / clients)
  return _figure(budget, 'Dec-SSL', (alpha, *plan))


def _bounds(budget: str) -> dict[str, claim_lib.Figure]:
  """Returns the upper and the lower bound: all labels, evenly dealt, and no training.

  Args:
    budget: One of `claim.BUDGETS`.
  """
  untrained = claim_lib.untrained(_ALL_LABELS)
  return {
    _RANGE.upper: _figure(budget, 'Dec-SLRep', (_EVEN, *_PLAIN)),
    _RANGE.lower: claim_lib.Figure(_run(budget, 'simclr', _EVEN, *_PLAIN), untrained),
  }


def _robust(
  budget: str,
  name: str,
  source: str,
  sentence: str,
  settings: dict[str, tuple],
) -> claim_lib.Claim:
  """Returns a claim on what the second of two settings costs.

  Args:
    budget: One of `claim.BUDGETS`.
    name: Of the claim.
    source: Table or figure.
    sentence: The claim.
    settings: The arguments of `_run` after the objective, by name.
  """
  easy, hard = settings
  figures = {
    f'{title}, {how}': _figure(budget, title, setting)
    for title in _TITLES
    for how, setting in settings.items()
  }
  for alpha, _, _, clients, _ in settings.values():
    figures[f'{_ALONE}, alpha = {alpha}'] = _alone(budget, alpha, clients)

  def fall(title: str) -> tuple[str, str]:
    return f'{title}, {easy}', f'{title}, {hard}'

  return claim_lib.Claim(
    name,
    _PAPER,
    source,
    sentence,
    budget,
    {**figures, **_bounds(budget)},
    (
      claim_lib.wider(fall('Dec-SLRep'), fall('Dec-SSL')),
      claim_lib.wider(fall('Dec-SL'), fall('Dec-SLRep')),
    ),
    _RANGE,
  )


def _representation(budget: str) -> claim_lib.Claim:
  setting = (_UNEVEN, *_PLAIN)
  return claim_lib.Claim(
    'dec-ssl-representation',
    _PAPER,
    'Figure 6 (a)',
    'With alpha = 0.02 the encoder of Dec-SL, probed (Dec-SLRep), is ahead of its own '
    'classifier, and that of Dec-SSL ahead of both.',
    budget,
    {
      **{title: _figure(budget, title, setting) for title in _TITLES},
      _ALONE: _alone(budget, _UNEVEN, 5),
      **_bounds(budget),
    },
    (
      claim_lib.ahead('Dec-SLRep', 'Dec-SL'),
      claim_lib.ahead('Dec-SSL', 'Dec-SLRep'),
    ),
    _RANGE,
  )


def _transfer(source: str, target: str) -> claim_lib.Claim:
  """Returns the claim on encoders of one task that are probed on another.

  Args:
    source: The task that they are trained on.
    target: The task that they are evaluated on.
  """

  def run_of(objective: str, alpha: str, task: str) -> claim_lib.Run:
    run = _run('cifar', objective, alpha, *_PLAIN)
    if task == 'cifar10':
      return run
    return claim_lib.run(
      f'{run.name}_{task}', run.program, *run.flags, f'--task={task}'
    )

  figures = {
    f'{title}, alpha = {alpha}': claim_lib.Figure(
      run_of(objective, alpha, source), f'transfer/{target}/{_ALL_LABELS}'
    )
    for title, objective in (('Dec-SSL', 'simclr'), ('Dec-SLRep', 'supervised'))
    for alpha in (_EVEN, _UNEVEN)
  }
  # An encoder that learns from the target's own labels, and one that learns nothing.
  bounds = claim_lib.Range(f'Dec-SLRep, trained on {target}', _RANGE.lower)
  figures[bounds.upper] = claim_lib.Figure(
    run_of('supervised', _EVEN, target), _ALL_LABELS
  )
  figures[bounds.lower] = claim_lib.Figure(
    run_of('simclr', _EVEN, target), claim_lib.untrained(_ALL_LABELS)
  )
  return claim_lib.Claim(
    f'dec-ssl-transfer-{target}',
    _PAPER,
    'Tables 2 and 4',
    f'Trained on {source} and probed on {target}, with alpha = 0.02 the encoder of '
    'Dec-SSL is ahead of that of Dec-SLRep, and loses less by uneven classes.',
    'cifar',
    figures,
    (
      claim_lib.ahead(f'Dec-SSL, alpha = {_UNEVEN}', f'Dec-SLRep, alpha = {_UNEVEN}'),
      claim_lib.wider(
        (f'Dec-SLRep, alpha = {_EVEN}', f'Dec-SLRep, alpha = {_UNEVEN}'),
        (f'Dec-SSL, alpha = {_EVEN}', f'Dec-SSL, alpha = {_UNEVEN}'),
      ),
    ),
    bounds,
  )
