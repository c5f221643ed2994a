"""Claims of FedSup.

"Teacher-Student Architecture for Federated Learning with Unlabeled Clients".
"""

from binaries.evidence import claim as claim_lib

_PAPER = 'FedSup'
# The norm is each method's: FedRGD and FedMatch have another than the rest.
_COMMON = {
  'digits': '--task=digits --encoder_width=0.5 --augmentation=mild '
  '--server_batch_size=32 --rounds=25',
  'cifar': '--task=cifar10 --image_size=16 --server_batch_size=128 --rounds=60',
}
# The thesis has a tenth of the labels at the server. A tenth of digits, 144, is so many
# that the labels alone come within eight points of all labels. A twentieth, in batches
# of 32, is three steps an epoch, fifteen in five; a client makes twenty a round.
_LABELS = {
  'digits': '--server_labels=0.05 --server_epochs=5',
  'cifar': '--server_labels=0.1 --server_epochs=1',
}
_SERVER = (
  '--server_training_rate=1e-3 --accuracy_every=0 '
  '--evaluation_methods=logistic,finetune --label_fractions=1 '
  '--finetune_learning_rate=1e-3 --finetune_steps=100'
)
_CLIENTS = {
  'digits': '--clients_per_round=5 --local_epochs=5 --batch_size=16',
  'cifar': '--clients_per_round=5 --local_epochs=5 --batch_size=50',
}
_POPULATION = {'digits': 20, 'cifar': 100}
_LINEAR = 'linear/100%/accuracy'
_SEEN = 0.01
_FINETUNED = 'finetune/100%/accuracy'
_METHODS = {
  'labels alone': 'labelled_only',
  'FixMatch': 'fixmatch',
  'SimCLR': 'finetuned_simclr',
  'SimSiam': 'finetuned_simsiam',
  'BYOL': 'finetuned_byol',
  'FedMatch': 'fedmatch',
  'FedRGD': 'fedrgd',
  'FedSup': 'fedsup',
  'all labels': 'finetuned_supervised',
}
# All but FedSup and its upper bound; of these those that Table 6.1 has on CIFAR-100.
_OTHERS = tuple(title for title in _METHODS if title not in ('FedSup', 'all labels'))
_OF_IMAGES = tuple(title for title in _OTHERS if title not in ('FedMatch', 'FedRGD'))
_RANGE = claim_lib.Range('all labels', 'labels alone')
_SMALL = {'digits': '--projector=64,64 --predictor_width=64', 'cifar': ''}


def claims(budget: str) -> tuple[claim_lib.Claim, ...]:
  """Returns the claims of a budget.

  Args:
    budget: One of `claim.BUDGETS`.
  """
  return (
    _order(budget, 'fedsup-finetuned', 'Table 6.1', 'fine-tuned', _FINETUNED, _OTHERS),
    # The thesis's Table 6.2 has neither FedMatch nor FedRGD.
    _order(
      budget, 'fedsup-linear', 'Table 6.2', 'by a linear probe', _LINEAR, _OF_IMAGES
    ),
    _feature_maps(budget),
    _ablation(
      budget,
      'fedsup-consistency',
      'Table 6.4',
      'Without its consistency loss FedSup is worse on IID clients.',
      'without consistency',
      '--noconsistency',
    ),
    _ablation(
      budget,
      'fedsup-groups',
      'Section 4.1',
      'Averaging clients in groups with the teacher is better than FedAvg.',
      'FedAvg',
      '--averaging=fedavg',
    ),
    _heterogeneity(budget),
    *([_one_percent(budget), *_cifar_100(budget)] if budget == 'cifar' else []),
  )


def _run(budget: str, method: str, name: str = '', *more: str) -> claim_lib.Run:
  """Returns the run of a method.

  Args:
    budget: One of `claim.BUDGETS`.
    method: As the program names it.
    name: Of what is special; '' for the method as it is.
    *more: Flags of that.
  """
  own = [_COMMON[budget], f'--method={method}', _LABELS[budget], _SERVER]
  if method != 'labelled_only':
    population = _POPULATION[budget]
    own += [f'--partition=iid:clients={population}', _CLIENTS[budget]]
  if method in ('fedsup', 'finetuned_byol', 'finetuned_simsiam'):
    own.append(_SMALL[budget])
  if method == 'finetuned_simclr' and _SMALL[budget]:
    own.append('--projector=64,64')
  return claim_lib.run('_'.join(filter(None, [method, name])), 'fedsup', *own, *more)


def _figure(
  budget: str, method: str, column: str, name: str = '', *more: str
) -> claim_lib.Figure:
  return claim_lib.Figure(_run(budget, method, name, *more), column)


def _order(
  budget: str,
  claim: str,
  source: str,
  how: str,
  column: str,
  others: tuple[str, ...],
) -> claim_lib.Claim:
  return claim_lib.Claim(
    claim,
    _PAPER,
    source,
    f'With few labels at the server, FedSup ({how}) is ahead of these labels alone and '
    'of all methods without labels on the clients, and behind all labels.',
    budget,
    _figures(budget, column, others),
    _first_of(others),
    _RANGE,
  )


def _figures(
  budget: str, column: str, others: tuple[str, ...], name: str = '', *more: str
) -> dict[str, claim_lib.Figure]:
  """Returns the figures of FedSup, its upper bound and others; see `_run`."""
  return {
    title: _figure(budget, _METHODS[title], column, name, *more)
    for title in (*others, 'FedSup', 'all labels')
  }


def _first_of(others: tuple[str, ...]) -> tuple[claim_lib.Comparison, ...]:
  """Returns that FedSup is ahead of the others and behind all labels."""
  return (
    *(claim_lib.ahead('FedSup', title) for title in others),
    claim_lib.ahead('all labels', 'FedSup'),
  )


def _cifar_100(budget: str) -> tuple[claim_lib.Claim, ...]:
  """Returns the claims of a data set of a hundred classes."""

  def figures(column: str) -> dict[str, claim_lib.Figure]:
    return _figures(budget, column, _OF_IMAGES, 'cifar100', '--task=cifar100')

  return (
    claim_lib.Claim(
      'fedsup-cifar100-finetuned',
      _PAPER,
      'Table 6.1',
      'On CIFAR-100, too, FedSup (fine-tuned) is ahead of the labels alone and of all '
      'methods without labels on the clients, and behind all labels.',
      budget,
      figures(_FINETUNED),
      _first_of(_OF_IMAGES),
      _RANGE,
    ),
    claim_lib.Claim(
      'fedsup-cifar100-linear',
      _PAPER,
      'Table 6.2',
      'On CIFAR-100 BYOL is ahead of FedSup by a linear probe.',
      budget,
      figures(_LINEAR),
      (claim_lib.ahead('BYOL', 'FedSup'),),
      _RANGE,
    ),
  )


def _bounds(budget: str) -> dict[str, claim_lib.Figure]:
  """Returns the upper and the lower bound of fine-tuned encoders.

  Args:
    budget: One of `claim.BUDGETS`.
  """
  return {
    title: _figure(budget, _METHODS[title], _FINETUNED)
    for title in (_RANGE.upper, _RANGE.lower)
  }


def _feature_maps(budget: str) -> claim_lib.Claim:
  return claim_lib.Claim(
    'fedsup-feature-maps',
    _PAPER,
    'Table 6.3',
    'The feature maps are what FedSup gains by: without any (N = 0) it is level with '
    'the labels alone, and one map is better than none.',
    budget,
    {
      'N = 0': _figure(budget, 'fedsup', _FINETUNED, 'stages_0', '--stages=0'),
      'N = 1': _figure(budget, 'fedsup', _FINETUNED, 'stages_1', '--stages=1'),
      'all maps': _figure(budget, 'fedsup', _FINETUNED),
      **_bounds(budget),
    },
    (
      claim_lib.level('N = 0', 'labels alone', within=0.03),
      # Nine and twelve points in the thesis; a tenth is within chance of 10,000 images.
      claim_lib.ahead('N = 1', 'N = 0', by=_SEEN),
      claim_lib.ahead('all maps', 'N = 0', by=_SEEN),
    ),
    _RANGE,
  )


def _ablation(
  budget: str, claim: str, source: str, sentence: str, title: str, flag: str
) -> claim_lib.Claim:
  name = title.replace(' ', '_').lower()
  return claim_lib.Claim(
    claim,
    _PAPER,
    source,
    sentence,
    budget,
    {
      'FedSup': _figure(budget, 'fedsup', _FINETUNED),
      title: _figure(budget, 'fedsup', _FINETUNED, name, flag),
      **_bounds(budget),
    },
    (claim_lib.ahead('FedSup', title),),
    _RANGE,
  )


def _heterogeneity(budget: str) -> claim_lib.Claim:
  uneven = f'--partition=shares:alpha=0.1,clients={_POPULATION[budget]}'
  return claim_lib.Claim(
    'fedsup-alpha',
    _PAPER,
    'Tables 6.1 and 6.2',
    'Uneven classes (alpha = 0.1) cost FedSup next to nothing.',
    budget,
    {
      'IID': _figure(budget, 'fedsup', _FINETUNED),
      'alpha = 0.1': _figure(budget, 'fedsup', _FINETUNED, 'uneven', uneven),
      **_bounds(budget),
    },
    (claim_lib.level('IID', 'alpha = 0.1', within=0.02),),
    _RANGE,
  )


def _one_percent(budget: str) -> claim_lib.Claim:
  few = '--server_labels=0.01'
  figures = {
    title: _figure(budget, _METHODS[title], _FINETUNED, 'one_percent', few)
    for title in ('labels alone', 'SimCLR', 'BYOL', 'FedSup', 'all labels')
  }
  return claim_lib.Claim(
    'fedsup-one-percent',
    _PAPER,
    'Figure 6.1',
    'With one per cent of the labels FedSup is behind SimCLR and BYOL.',
    budget,
    figures,
    (claim_lib.ahead('SimCLR', 'FedSup'), claim_lib.ahead('BYOL', 'FedSup')),
    _RANGE,
  )
