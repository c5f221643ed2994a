"""Claims of FedSup.

"Teacher-Student Architecture for Federated Learning with Unlabeled Clients".
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from binaries.evidence import claim as claim_lib


class _Variant(NamedTuple):
  """What distinguishes a run from its method's run as it is.

  Attributes:
    name: Follows the method's in the name of the run.
    flags: Further flags.
  """

  name: str
  flags: str


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
_CIFAR_100 = _Variant('cifar100', '--task=cifar100')
# The least of the thesis's Figure 6.1. On CIFAR-10 all labels on the clients add 18
# points to so few; to a tenth they add five to eight in so few rounds, too few to tell
# methods apart.
_ONE_PERCENT = _Variant('one_percent', '--server_labels=0.01')


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
    *_ablations(budget),
    *([*_one_percent(budget), *_cifar_100(budget)] if budget == 'cifar' else []),
  )


def _run(budget: str, method: str, *variants: _Variant) -> claim_lib.Run:
  """Returns the run of a method.

  Args:
    budget: One of `claim.BUDGETS`.
    method: As the program names it.
    *variants: What is special.
  """
  own = [_COMMON[budget], f'--method={method}', _LABELS[budget], _SERVER]
  if method != 'labelled_only':
    population = _POPULATION[budget]
    own += [f'--partition=iid:clients={population}', _CLIENTS[budget]]
  if method in ('fedsup', 'finetuned_byol', 'finetuned_simsiam'):
    own.append(_SMALL[budget])
  if method == 'finetuned_simclr' and _SMALL[budget]:
    own.append('--projector=64,64')
  name = '_'.join([method, *(variant.name for variant in variants)])
  return claim_lib.run(name, 'fedsup', *own, *(variant.flags for variant in variants))


def _figure(
  budget: str, method: str, column: str, *variants: _Variant
) -> claim_lib.Figure:
  return claim_lib.Figure(_run(budget, method, *variants), column)


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
  budget: str, column: str, others: Sequence[str], *variants: _Variant
) -> dict[str, claim_lib.Figure]:
  """Returns the figures of FedSup, its upper bound and others; see `_run`."""
  return {
    title: _figure(budget, _METHODS[title], column, *variants)
    for title in (*others, 'FedSup', _RANGE.upper)
  }


def _first_of(others: Sequence[str]) -> tuple[claim_lib.Comparison, ...]:
  """Returns that FedSup is ahead of the others and behind all labels."""
  return (
    *(claim_lib.ahead('FedSup', title) for title in others),
    claim_lib.ahead(_RANGE.upper, 'FedSup'),
  )


def _cifar_100(budget: str) -> tuple[claim_lib.Claim, ...]:
  """Returns the claims of a data set of a hundred classes."""
  return (
    claim_lib.Claim(
      'fedsup-cifar100-finetuned',
      _PAPER,
      'Table 6.1',
      'On CIFAR-100, too, FedSup (fine-tuned) is ahead of the labels alone and of all '
      'methods without labels on the clients, and behind all labels.',
      budget,
      _figures(budget, _FINETUNED, _OF_IMAGES, _CIFAR_100),
      _first_of(_OF_IMAGES),
      _RANGE,
    ),
    claim_lib.Claim(
      'fedsup-cifar100-linear',
      _PAPER,
      'Table 6.2',
      'On CIFAR-100 BYOL is ahead of FedSup by a linear probe.',
      budget,
      _figures(budget, _LINEAR, _OF_IMAGES, _CIFAR_100),
      (claim_lib.ahead('BYOL', 'FedSup'),),
      _RANGE,
    ),
  )


def _one_percent(budget: str) -> tuple[claim_lib.Claim, ...]:
  """Returns the claims at a hundredth of the labels."""
  others = ('labels alone', 'SimCLR', 'BYOL')
  return (
    claim_lib.Claim(
      'fedsup-one-percent',
      _PAPER,
      'Figure 6.1',
      'With one per cent of the labels FedSup is behind SimCLR and BYOL.',
      budget,
      _figures(budget, _FINETUNED, others, _ONE_PERCENT),
      (claim_lib.ahead('SimCLR', 'FedSup'), claim_lib.ahead('BYOL', 'FedSup')),
      _RANGE,
    ),
    *_ablations(budget, _ONE_PERCENT),
  )


def _ablations(budget: str, *few: _Variant) -> tuple[claim_lib.Claim, ...]:
  """Returns the claims of FedSup without one of its parts, and of uneven classes.

  Args:
    budget: One of `claim.BUDGETS`.
    *few: `_ONE_PERCENT`, or nothing, for the labels of the budget.
  """
  uneven = f'--partition=shares:alpha=0.1,clients={_POPULATION[budget]}'
  return (
    _feature_maps(budget, *few),
    _ablation(
      budget,
      'consistency',
      'Table 6.4',
      'Without its consistency loss FedSup is worse on IID clients',
      {
        'FedSup': (),
        'without consistency': (_Variant('without_consistency', '--noconsistency'),),
      },
      claim_lib.ahead('FedSup', 'without consistency'),
      few=few,
    ),
    _ablation(
      budget,
      'groups',
      'Section 4.1',
      'Averaging clients in groups with the teacher is better than FedAvg',
      {'FedSup': (), 'FedAvg': (_Variant('fedavg', '--averaging=fedavg'),)},
      claim_lib.ahead('FedSup', 'FedAvg'),
      few=few,
    ),
    _ablation(
      budget,
      'alpha',
      'Tables 6.1 and 6.2',
      'Uneven classes (alpha = 0.1) cost FedSup next to nothing',
      {'IID': (), 'alpha = 0.1': (_Variant('uneven', uneven),)},
      claim_lib.level('IID', 'alpha = 0.1', within=0.02),
      few=few,
    ),
  )


def _feature_maps(budget: str, *few: _Variant) -> claim_lib.Claim:
  return _ablation(
    budget,
    'feature-maps',
    'Table 6.3',
    'The feature maps are what FedSup gains by: without any (N = 0) it is level with '
    'the labels alone, and one map is better than none',
    {
      'N = 0': (_Variant('stages_0', '--stages=0'),),
      'N = 1': (_Variant('stages_1', '--stages=1'),),
      'all maps': (),
    },
    claim_lib.level('N = 0', 'labels alone', within=0.03),
    # Nine and twelve points in the thesis; a tenth is within chance of 10,000 images.
    claim_lib.ahead('N = 1', 'N = 0', by=_SEEN),
    claim_lib.ahead('all maps', 'N = 0', by=_SEEN),
    few=few,
  )


def _ablation(
  budget: str,
  name: str,
  source: str,
  sentence: str,
  variants: Mapping[str, tuple[_Variant, ...]],
  *comparisons: claim_lib.Comparison,
  few: tuple[_Variant, ...],
) -> claim_lib.Claim:
  """Returns a claim on variants of FedSup, fine-tuned, between its bounds.

  Args:
    budget: One of `claim.BUDGETS`.
    name: Of the claim, without the algorithm's.
    source: Table or section.
    sentence: The claim, without its full stop.
    variants: By the title of their figure.
    *comparisons: Of these.
    few: As in `_ablations`.
  """
  figures = {
    title: _figure(budget, 'fedsup', _FINETUNED, *own, *few)
    for title, own in variants.items()
  }
  bounds = {
    title: _figure(budget, _METHODS[title], _FINETUNED, *few)
    for title in (_RANGE.upper, _RANGE.lower)
  }
  end = ', with one per cent of the labels.' if few else '.'
  return claim_lib.Claim(
    '-'.join([f'fedsup-{name}', *(variant.name.replace('_', '-') for variant in few)]),
    _PAPER,
    source,
    sentence + end,
    budget,
    {**figures, **bounds},
    comparisons,
    _RANGE,
  )
