"""What of a private run may be given away: one rule for each file, metric and entry.

The rules are for a run whose sums have noise. The run, the encoder's card, the command
that makes a folder to give away and docs/privacy.md all follow these tables. What no
rule names is kept: a new file or metric is private until someone says why it is not.
"""

from collections.abc import Iterable
import enum
import fnmatch
from typing import NamedTuple


class Kind(enum.Enum):
  """What somebody who receives it learns of a client."""

  RELEASED = 'released'
  COMPUTED = 'computed'
  STATED = 'stated'
  KEPT = 'kept'
  REFUSED = 'refused'


MEANINGS = {
  Kind.RELEASED: 'noise was added, and the ledger counts it',
  Kind.COMPUTED: 'follows from what was released and stated; costs nothing more',
  Kind.STATED: 'says what was asked for and how much was released, nothing of the data',
  Kind.KEPT: 'made of the data without noise, or tells who took part: do not give away',
  Kind.REFUSED: 'a private run does not make it: it would enter what is released',
}
UNKNOWN = 'no rule names it'
_PUBLIC = (Kind.RELEASED, Kind.COMPUTED, Kind.STATED)


class Rule(NamedTuple):
  """What holds for something of a run.

  Attributes:
    name: Name of a file in the run folder, a column of metrics.csv or an entry of
      encoder.json; * stands for any text.
    kind: What it is.
    why: The reason.
  """

  name: str
  kind: Kind
  why: str

  @property
  def is_public(self) -> bool:
    """Whether it may be given away."""
    return self.kind in _PUBLIC

  @property
  def is_named(self) -> bool:
    """Whether a table names it; if not, it is kept."""
    return self.why != UNKNOWN


ENCODER, CARD, TEXT = 'encoder.keras', 'encoder.json', 'encoder.md'
NUMBERS = 'metrics.csv'
# The folder of exports that are given no other.
EXPORT = 'export'
_OF_CLIENTS = "clients' own, without noise"
_OF_EXAMPLES = 'computed from examples and labels, without noise'
_COUNTED = 'counted without noise'
_OF_SITES = 'says which sites took part, and of how many clients'
_OF_MAILBOX = 'belongs to the mailbox of a run at sites'
_OF_SIGNALS = 'of noised sums, rounds that the ledger counts'

FILES = (
  Rule(ENCODER, Kind.RELEASED, 'averages of noised sums'),
  Rule(CARD, Kind.COMPUTED, 'what was asked for, and what is promised'),
  Rule(TEXT, Kind.COMPUTED, 'the same for people, and flags without the seed'),
  Rule(
    NUMBERS,
    Kind.COMPUTED,
    'only the columns that may be given away, and the rounds that the card counts',
  ),
  Rule(
    'privacy_ledger.jsonl',
    Kind.KEPT,
    'what it counts is on the card; belongs to the run',
  ),
  Rule(
    'config.json',
    Kind.KEPT,
    'has the seed, which tells cohorts, and a digest of all examples',
  ),
  Rule('evaluation.json', Kind.KEPT, _OF_EXAMPLES),
  Rule('intake.json', Kind.KEPT, 'has names of files'),
  Rule('examples.json', Kind.KEPT, 'has names of files and clients, and digests'),
  Rule('labels.json', Kind.KEPT, 'has names of classes, which may tell of who has one'),
  Rule('parent.json', Kind.KEPT, 'what it says is on the card'),
  Rule('base.npz', Kind.KEPT, 'frozen weights, which the encoder has in it'),
  Rule('partition.csv', Kind.KEPT, 'has the clients, their sizes and their classes'),
  Rule('clients.csv', Kind.KEPT, _OF_CLIENTS),
  Rule('client_states.sqlite', Kind.KEPT, _OF_CLIENTS),
  Rule('clients/*', Kind.KEPT, "a client's own encoder, without noise"),
  Rule('checkpoints/*', Kind.KEPT, 'have the state of the seed, which tells cohorts'),
  Rule(f'{EXPORT}/*', Kind.KEPT, 'has a card of its own'),
  Rule(
    'tensorboard/*', Kind.KEPT, 'has all numbers, the seed, and examples with labels'
  ),
  Rule(
    'trackers.json', Kind.KEPT, 'names copies of all numbers and of the seed elsewhere'
  ),
  Rule('system.csv', Kind.KEPT, 'seconds and memory depend on the sizes of clients'),
  Rule('page.html', Kind.KEPT, 'has numbers without noise, and examples'),
  Rule('worker.log', Kind.KEPT, 'may name anything'),
  Rule('sites.csv', Kind.KEPT, _OF_SITES),
  Rule('joined.json', Kind.KEPT, _OF_SITES),
  Rule('outbox.log', Kind.KEPT, _OF_MAILBOX),
  Rule('read.json', Kind.KEPT, _OF_MAILBOX),
  Rule('run_id.json', Kind.KEPT, _OF_MAILBOX),
  Rule('lock', Kind.KEPT, 'is of no use elsewhere'),
)

METRICS = (
  Rule('draws/*', Kind.STATED, 'how often the labels of a share were drawn'),
  Rule('round', Kind.STATED, 'its number'),
  Rule('privacy/*', Kind.STATED, 'counted from the ledger'),
  Rule('sites/*', Kind.STATED, 'how many sites took part'),
  Rule('client_work/clients', Kind.STATED, 'the size of cohorts that was asked for'),
  Rule('client_work/bytes_*', Kind.STATED, 'that size, times the bytes of the model'),
  *(
    Rule(f'client_work/{name}', Kind.KEPT, _COUNTED)
    for name in ('examples', 'empty_clients')
  ),
  Rule(
    'client_work/nonfinite_clients',
    Kind.REFUSED,
    'nobody is told who was discarded, and sums are divided as if nobody were',
  ),
  *(
    Rule(f'client_work/{name}', Kind.COMPUTED, 'of noised sums')
    for name in (
      'loss',
      'personal_loss',
      'consensus',
      'accuracy',
      '*encoding_std',
      '*effective_rank',
      '*effective_rank_32',
      'total_variance',
      'invariance',
      'epps_pulley',
      'ssl_loss',
      'dispersion',
      'separation',
      'distillation',
      'mu',
      'divergence',
      'lambda',
      'below',
      'returning',
      'threshold',
    )
  ),
  Rule('aggregator/*_clipped_count', Kind.KEPT, _COUNTED),
  Rule('aggregator/*_threshold', Kind.STATED, 'the bound of a sum'),
  Rule('finalizer/*/clip', Kind.COMPUTED, 'a clip norm that follows noised counts'),
  Rule('finalizer/update_rejected', Kind.COMPUTED, 'whether a noised sum is finite'),
  Rule('signals/*', Kind.RELEASED, _OF_SIGNALS),
  *(
    Rule(f'{name}/*', Kind.KEPT, _OF_EXAMPLES)
    for name in (
      'online_knn',
      'labels',
      'knn',
      'linear',
      'lars',
      'federated_linear',
      'lda',
      'ridge',
      'finetune',
      'classifier',
      'fairness',
      'personal',
      'validation',
      'right',
      'retrieval',
    )
  ),
)

ENTRIES = (
  *(
    Rule(name, Kind.STATED, 'asked for by flags')
    for name in (
      'encoder',
      'algorithm',
      'task',
      'rounds',
      'trained_in',
      'input',
      'output',
      'parameters',
      'trained_parameters',
      'network',
      'load',
      'scaling',
      'fit',
      'pixel_range',
    )
  ),
  Rule('measured_*', Kind.STATED, 'a private run has none, because it states them'),
  Rule('signals', Kind.RELEASED, _OF_SIGNALS),
  Rule('parent', Kind.STATED, 'the name and a digest of the weights it started from'),
  Rule('data', Kind.STATED, 'numbers of examples and classes, which are not protected'),
  Rule('privacy', Kind.STATED, 'what is promised'),
)

# What would otherwise enter the released values, or a file that is given away.
MEASURED = Rule(
  'inputs scaled by all examples',
  Kind.REFUSED,
  "a client's values would change the inputs of all others; state the scaling",
)
OF_STATES = Rule(
  "an encoder that has what clients keep (FedBN's batch norm)",
  Kind.REFUSED,
  "the mean of clients' own values, without noise",
)
SAME_EXAMPLES = Rule(
  '--init_from a run on the same examples',
  Kind.REFUSED,
  'what that run learnt of them is not counted',
)
FITTED = Rule(
  'export --classifier and --finetuned',
  Kind.REFUSED,
  'they are fitted on the raw examples and labels of all clients',
)
REFUSED = (MEASURED, OF_STATES, SAME_EXAMPLES, FITTED)

# What other programs make of a private run.
OUTPUTS = (
  Rule('export --give_away', Kind.RELEASED, 'the files above that may be given away'),
  Rule('export', Kind.COMPUTED, 'the encoder in other formats, and stated scalings'),
  Rule('export --unprotected', Kind.KEPT, FITTED.why),
  Rule('evaluate', Kind.KEPT, _OF_EXAMPLES),
  Rule('predict', Kind.KEPT, FITTED.why),
  Rule('embed', Kind.KEPT, 'has the pictures it was given, names and features'),
  Rule('compare', Kind.KEPT, 'has the numbers of run folders'),
)


def of_file(name: str) -> Rule:
  """Returns the rule for a file, given its path in the run folder."""
  return _find(FILES, name)


def of_metric(name: str) -> Rule:
  """Returns the rule for a column of metrics.csv."""
  return _find(METRICS, name)


def of_entry(name: str) -> Rule:
  """Returns the rule for an entry of encoder.json."""
  return _find(ENTRIES, name)


def protected() -> str:
  """Says what of a run is protected, for the encoder's card."""
  names = (rule.name for rule in FILES if rule.kind is Kind.RELEASED)
  return (
    f'{", ".join(names)}, and of {NUMBERS} what is computed from noised sums: loss, '
    'encodings, clip norms, signals'
  )


def private() -> str:
  """Names the files that must not be given away, for the encoder's card."""
  names = (rule.name for rule in FILES if rule.kind is Kind.KEPT)
  return (
    f'what else the simulation writes: {", ".join(names)}, and the rest of {NUMBERS}'
  )


def _find(rules: Iterable[Rule], name: str) -> Rule:
  for rule in rules:
    if fnmatch.fnmatchcase(name, rule.name):
      return rule
  return Rule(name, Kind.KEPT, UNKNOWN)
