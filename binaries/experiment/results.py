"""The results of a run: encoder, `evaluation.json`, table on the terminal.

`evaluation.json` holds `round` and the numbers of the run's encoder, under the names of
`evaluation.suite`. With two modalities there are also `right/...` and `retrieval/...`.
Numbers on a task other than the run's are under `transfer/TASK/...`. The baselines
follow under their names, such as `pixels/...` and `random_encoder/...`. Settings that
are not the run's are beside the numbers (`experiment.measured`).
"""

import collections
from collections.abc import Mapping
import math
import os
import pathlib

from binaries.config import run_config
from binaries.experiment import encoder_card
from binaries.experiment import measured_with
from binaries.experiment import own_metrics
from binaries.experiment import precision_marks
from tasks import task_types
from tff_ssl.encoders import network
from tff_ssl.evaluation import label_draws
from tff_ssl.evaluation import method_names
from tff_ssl.evaluation import retrieval
from tff_ssl.evaluation import suite
from tff_ssl.reporting import model_card
from tff_ssl.reporting import plain_text
from tff_ssl.reporting import run_reader
from tff_ssl.runs import run_folder
from tff_ssl.storage import files

# The run's own encoder, and what it is compared with.
OWN = ''
RANDOM, INITIAL = 'random encoder', 'initial encoder'
SCRATCH = 'supervised from scratch'

# Prefixes of the numbers of two modalities.
RIGHT, RETRIEVAL = 'right/', 'retrieval/'
# Prefix, after `RETRIEVAL`, for projections without their mean and scale.
STANDARDISED = 'standardised/'

# The numbers of one encoder, by name.
Numbers = collections.OrderedDict[str, float]

_FILE = 'evaluation.json'
_ROUND = 'round'
COLUMNS = {
  'knn': 'kNN',
  'linear': 'linear',
  'lars': 'LARS',
  'federated_linear': 'federated',
  'lda': 'LDA',
  'ridge': 'ridge',
  'finetune': 'end to end',
}
_FAIRNESS = {'mean': 'mean', 'std': 'deviation', 'worst_decile': 'worst decile'}
_CLIENTS = 'fairness/clients'
SCORES = {method_names.ACCURACY: 'accuracy', method_names.BALANCED: 'balanced'}


def save_encoder(
  folder: run_folder.RunFolder,
  config: run_config.RunConfig,
  task: task_types.Task,
  encoder: network.Network,
  params: network.Params,
  rounds: int,
  more: Mapping[str, object] = {},
) -> None:
  """Writes `encoder.keras` and its card.

  Args:
    folder: The run folder.
    config: The run.
    task: What the encoder was trained on.
    encoder: The network.
    params: Its parameters.
    rounds: Number of rounds it was trained for.
    more: More entries of the card, by name.
  """
  own = encoder_card.build(config, task, encoder, rounds, more)
  (folder.path / model_card.NAME).unlink(missing_ok=True)  # Written last.
  folder.save_encoder(encoder.to_keras(params), own)


def texts(results: Mapping[str, Numbers], own: str, balanced: bool) -> list[str]:
  """Returns the tables and lines that are printed of an evaluation.

  Args:
    results: Numbers by the name of the encoder.
    own: The name of the run's encoder; others are baselines.
    balanced: Whether balanced accuracy is shown as well.
  """
  numbers, right = results[own], _of_right_tower(results)
  every = (
    table(results, balanced),
    of_draws(results, own),
    right and f'The right tower:\n{table(right, balanced)}',
    _retrieval_table(numbers),
    zero_shot(numbers),
    own_classifier(numbers, balanced),
    own_metrics.table(results, _shares(results)),
    '\n'.join(_finetuning(results)),
    fairness_table(results),
  )
  return [text for text in every if text]


def table(results: Mapping[str, Numbers], balanced: bool) -> str:
  """Lays out the evaluations of several encoders.

  Args:
    results: Numbers by the name of the encoder.
    balanced: Whether balanced accuracy is also shown, in separate rows.

  Returns:
    For each share of the labels a row per encoder, with a column per method; '' if
    there is none. Means over draws of the labels have their deviation.
  """
  rows, columns = [], {**COLUMNS, **own_metrics.columns()}
  for share in _shares(results):
    for score in SCORES if balanced else ('accuracy',):
      for encoder, numbers in results.items():
        found = {
          precision_marks.title(columns[prefix], name, numbers): _with_deviation(
            numbers, name
          )
          for prefix in columns
          if (name := f'{prefix}/{share}/{score}') in numbers
        }
        if found:
          row = {'encoder': encoder, 'labels': labels(share, numbers)}
          rows.append(
            {**row, **({'score': SCORES[score]} if balanced else {}), **found}
          )
  titles = precision_marks.titles(columns.values())
  methods = [title for title in titles if any(title in row for row in rows)]
  names = ['encoder', 'labels', *(['score'] if balanced else []), *methods]
  return (
    plain_text.text(rows, names, right=methods) + precision_marks.legend(methods)
    if rows
    else ''
  )


def _with_deviation(numbers: Numbers, name: str) -> str:
  """Writes an accuracy, with its deviation if it is a mean over draws of labels."""
  deviation = numbers.get(f'{name}/{label_draws.DEVIATION}', math.nan)
  return plain_text.number(name, numbers[name], deviation)


def of_draws(results: Mapping[str, Numbers], own: str) -> str:
  """Returns a line on the draws behind a table's deviations; '' if it has none.

  Args:
    results: Numbers by the name of the encoder, as in `table`.
    own: The name of the run's encoder.
  """
  counts: dict[str, int] = {}
  for encoder, numbers in results.items():
    for share in _shares(results):
      if (name := f'{label_draws.NUMBER}/{share}') in numbers:
        counts[encoder] = int(numbers[name])
  if own not in counts:
    return ''
  others = {encoder: count for encoder, count in counts.items() if count != counts[own]}
  more = ''.join(f', of {encoder} {count}' for encoder, count in others.items())
  return f'±: deviation over {counts[own]} draws of the labels{more}; without it, one'


def _of_right_tower(results: Mapping[str, Numbers]) -> dict[str, Numbers]:
  """Returns the numbers of right towers, named like those of the left ones."""
  found = {
    encoder: collections.OrderedDict(
      (name.removeprefix(RIGHT), value)
      for name, value in numbers.items()
      if name.startswith(RIGHT)
    )
    for encoder, numbers in results.items()
  }
  return {encoder: numbers for encoder, numbers in found.items() if numbers}


def _retrieval_table(numbers: Numbers) -> str:
  """Lays out recall at k of retrieval both ways, and of chance; '' without any."""
  if RETRIEVAL + retrieval.PAIRS not in numbers:
    return ''
  pairs = numbers[RETRIEVAL + retrieval.PAIRS]
  title = f'retrieval among {pairs:,.0f} pairs'
  rows: list[dict[str, object]] = [
    {
      title: (kind + way).replace('_', ' ').replace('/', ' '),
      **{
        f'recall at {k}': numbers[f'{RETRIEVAL}{kind}{way}/{retrieval.recall_name(k)}']
        for k in retrieval.KS
      },
    }
    for kind in ('', STANDARDISED)
    for way in (retrieval.LEFT_TO_RIGHT, retrieval.RIGHT_TO_LEFT)
  ]
  by_chance = {f'recall at {k}': retrieval.chance(pairs, k) for k in retrieval.KS}
  rows.append({title: 'chance', **by_chance})
  return plain_text.text(rows, percent=tuple(by_chance))


def zero_shot(numbers: Numbers) -> str:
  """Returns a line on classification by class descriptions; '' if there are none.

  Args:
    numbers: Numbers of a model of two modalities.
  """
  if f'{RETRIEVAL}{retrieval.ZERO_SHOT}accuracy' not in numbers:
    return ''
  parts = [
    ', '.join(
      f'{title} {numbers[RETRIEVAL + kind + retrieval.ZERO_SHOT + score]:.1%}'
      for score, title in SCORES.items()
    )
    for kind in ('', STANDARDISED)
  ]
  return f"Zero-shot, by the classes' names: {parts[0]}; standardised: {parts[1]}"


def own_classifier(numbers: Numbers, balanced: bool) -> str:
  """Returns a line on the classifier trained with an encoder; '' if there was none.

  Args:
    numbers: Numbers of the encoder.
    balanced: Whether balanced accuracy is shown as well.
  """
  found = [
    f'{SCORES[score]} {numbers[name]:.1%}'
    for score in (SCORES if balanced else ('accuracy',))
    if (name := f'{suite.CLASSIFIER}/{score}') in numbers
  ]
  return f'Its own classifier, tested directly: {", ".join(found)}' if found else ''


def _finetuning(results: Mapping[str, Numbers]) -> list[str]:
  """Returns a line for each fine-tuning rate that was chosen."""
  lines = []
  for share in _shares(results):
    for encoder, numbers in results.items():
      start = f'finetune/{share}'
      if f'{start}/learning_rate' not in numbers:
        continue
      rate, steps = numbers[f'{start}/learning_rate'], numbers[f'{start}/steps']
      held_out = int(numbers[f'{start}/validated'])
      how = f'chosen on {held_out:,} held-out labels'
      if not held_out:
        how = 'not chosen, because no class has two labels'
      lines.append(
        f'Fine-tuning of {encoder} with {labels(share, numbers)} labels: '
        f'rate {rate:g}, {steps:.0f} steps, {how}'
      )
  return lines


def fairness_table(results: Mapping[str, Numbers]) -> str:
  """Lays out how evenly accuracies are spread over clients.

  Args:
    results: Numbers by the name of the encoder.

  Returns:
    For each share of the labels and each method a row per encoder, with the mean of the
    clients' test accuracies, their deviation, and the mean of the lowest tenth; '' if
    it was not measured.
  """
  rows = []
  for share in _shares(results):
    for method, title in COLUMNS.items():
      for encoder, numbers in results.items():
        start = f'fairness/{method}/{share}/accuracy'
        if f'{start}/mean' in numbers:
          rows.append(
            {
              'encoder': encoder,
              'labels': labels(share, numbers),
              'method': precision_marks.title(
                title, f'{method}/{share}/accuracy', numbers
              ),
              'clients': int(numbers[_CLIENTS]),
              **{shown: numbers[f'{start}/{k}'] for k, shown in _FAIRNESS.items()},
            }
          )
  return plain_text.text(rows, percent=tuple(_FAIRNESS.values())) if rows else ''


def _shares(results: Mapping[str, Numbers]) -> list[str]:
  """Returns the shares of the labels in the order of their first appearance."""
  names = collections.OrderedDict.fromkeys(
    name for numbers in results.values() for name in numbers
  )
  return [name.removeprefix('labels/') for name in names if name.startswith('labels/')]


def labels(share: str, numbers: Numbers) -> str:
  """Returns a table's name for a share of the labels, with their number if known."""
  count = numbers.get(f'labels/{share}')
  return share if count is None else f'{share} ({count:,.0f})'


def read(folder: str | os.PathLike[str], round: int) -> Numbers:
  """Returns what `evaluation.json` holds; nothing if it is of another round.

  Args:
    folder: The run folder.
    round: The round whose encoder is asked for.
  """
  stored_round, numbers = _read(pathlib.Path(folder) / _FILE)
  return numbers if stored_round == round else collections.OrderedDict()


def of_baseline(
  stored: Mapping[str, float], baseline: str, prefix: str, asked: Mapping[str, float]
) -> Numbers:
  """Returns the numbers of a baseline in `evaluation.json`; none if it has none.

  Args:
    stored: What the file holds.
    baseline: Name of the baseline.
    prefix: Prefix of the numbers' names, after the baseline's.
    asked: The run's own numbers: those alone are wanted that were measured like them.
  """
  start = _start(baseline) + prefix
  own = {k.removeprefix(start): v for k, v in stored.items() if k.startswith(start)}
  alike = [n for n in asked if n in own and measured_with.is_alike(n, own, asked)]
  names = dict.fromkeys((*alike, *measured_with.beside(alike, own)))
  return collections.OrderedDict((name, own[name]) for name in names)


def _start(baseline: str) -> str:
  return f'{baseline.lower().replace(",", "").replace(" ", "_")}/'


def write(
  folder: str | os.PathLike[str],
  round: int,
  encoder: str,
  results: Mapping[str, Numbers],
  prefix: str = '',
) -> None:
  """Adds evaluations to `evaluation.json`.

  Numbers of the same round remain unless they are evaluated again, so that methods can
  be evaluated one by one. Numbers of an earlier round are removed. If the file is of a
  later round, because the run continued, it is left unchanged, which is printed.

  Args:
    folder: The run folder.
    round: The round whose encoder was evaluated.
    encoder: The name of the run's encoder in `results`; others are baselines.
    results: Numbers by the name of the encoder.
    prefix: Prefix of the numbers' names, after a baseline's name.

  Raises:
    ValueError: If the file cannot be read.
  """
  path = pathlib.Path(folder) / _FILE
  stored_round, stored = _read(path)
  if stored_round > round:
    print(f'{folder} has been evaluated at a later round: {_FILE} is unchanged')
    return
  numbers = stored if stored_round == round else collections.OrderedDict()
  starts = {name: _start(name) for name in results if name != encoder}
  # The run's own encoder comes first.
  for name in (encoder, *starts):
    measured_with.overwrite(numbers, results[name], starts.get(name, '') + prefix)
  files.write_json(path, {_ROUND: round, **numbers})


def _read(path: pathlib.Path) -> tuple[int, Numbers]:
  """Returns the round and the numbers of the file; round -1 if there is none."""
  if not path.exists():
    return -1, collections.OrderedDict()
  numbers = collections.OrderedDict(run_reader.read_numbers(path))
  round = numbers.pop(_ROUND, math.nan)
  if round % 1 != 0:
    raise ValueError(f'{path} has the round {round}; it must be a whole number.')
  return int(round), numbers
