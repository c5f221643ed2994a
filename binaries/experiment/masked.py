"""Evaluates encoders by masks: evaluate's methods segmentation and detection."""

import collections
from collections.abc import Mapping
import os
from typing import Any

from binaries.building import evaluation
from binaries.config import evaluations
from binaries.config import run_config
from binaries.experiment import from_scratch
from binaries.experiment import results
from tasks import masks as masks_lib
from tasks import task_types
from tff_ssl.encoders import network
from tff_ssl.evaluation import dense
from tff_ssl.evaluation import method_names
from tff_ssl.evaluation import population_statistics
from tff_ssl.evaluation import stages
from tff_ssl.reporting import plain_text

_WAYS = {dense.FROZEN: 'frozen', dense.FINETUNED: 'end to end'}
_SCORES = {'iou': 'IoU', 'found': 'IoU >= 0.5'}
_WITHOUT = 'one for all images'


def check(config: run_config.RunConfig, added: evaluations.Additions) -> None:
  """Checks what is asked for, without data.

  Raises:
    ValueError: If something does nothing.
  """
  methods = config.evaluation.methods
  if added.masks != evaluations.Masks() and not evaluation.of_masks(config):
    raise ValueError(
      '--masks is given, but the evaluation has none of the methods '
      f'{", ".join(method_names.DENSE)}; it must have one.'
    )
  if added.fairness and set(methods) == set(evaluation.of_masks(config)):
    raise ValueError(
      f'--fairness is given, but the evaluation has only {" and ".join(methods)}; it '
      'needs methods with accuracies.'
    )


class Evaluator:
  """Evaluates parameters of one encoder by a task's masks; compiles only once."""

  def __init__(
    self,
    config: run_config.RunConfig,
    masks: evaluations.Masks,
    task: task_types.Task,
    encoder: network.Network,
  ):
    """Loads the masks, and prints their number.

    Args:
      config: The run, with what is evaluated.
      masks: Where the masks are, and for how long heads train.
      task: A task whose images are files.
      encoder: The network whose parameters are evaluated.

    Raises:
      ValueError: If there are no masks, or the encoder has no feature maps.
    """
    if encoder.field != network.IMAGE:
      raise ValueError(
        f'The encoder reads {encoder.field!r}; '
        f'{" and ".join(evaluation.of_masks(config))} are for encoders of images only.'
      )
    self._config = config
    found = masks_lib.load(task, masks.dir)
    for line in found.report:
      print(line)
    train, test = (_masked(found, split) for split in (task.train, task.test))
    # In float32, as it is exported; fine-tuning also trains it in float32.
    self._encoder = encoder = encoder.with_precision(network.FLOAT32)
    self._train = train
    self._dense = dense.Evaluator(
      encoder, train, test, dense.DenseConfig(num_steps=masks.steps)
    )
    self._initial = from_scratch.initial_params(config, encoder)

  def report(
    self,
    folder: str | os.PathLike[str],
    round: int,
    name: str,
    params: network.Params,
    prefix: str = '',
  ) -> None:
    """Evaluates an encoder, prints a table and adds to `evaluation.json`.

    Args:
      folder: The run folder.
      round: The round after which the encoder was saved.
      name: Name of the encoder in the table.
      params: Parameters of the encoder, with its population statistics if it has any.
      prefix: Prefix of the numbers' names in `evaluation.json`.
    """
    with stages.show_progress():
      found = self._all(name, params)
    print(table(found))
    results.write(folder, round, name, found, prefix)

  def _all(self, name: str, params: network.Params) -> dict[str, results.Numbers]:
    """Returns the numbers of the encoder, and of baselines if these are wanted."""
    found: dict[str, results.Numbers] = {}
    if self._config.evaluation.baselines:
      initial = population_statistics.build_complete(self._encoder)(
        self._initial, self._train.image
      )
      found[results.RANDOM] = self._evaluate(initial)
    found[name] = self._evaluate(params)
    if self._config.evaluation.baselines:
      found[results.SCRATCH] = self._evaluate(
        initial,
        ways=(dense.FINETUNED,),
        num_steps=self._config.evaluation.supervised_steps,
      )
    return found

  def _evaluate(self, params: network.Params, **given: Any) -> results.Numbers:
    return self._dense.evaluate(
      params,
      evaluation.of_masks(self._config),
      self._config.evaluation.label_fractions,
      self._config.random_seed,
      **given,
    )


def _masked(found: masks_lib.Masks, examples: task_types.Examples) -> dense.Masked:
  positions, pixels = found.of(examples)
  return dense.Masked(examples.image[positions], pixels, examples.case[positions])


def table(found: Mapping[str, results.Numbers]) -> str:
  """Lays out the evaluations of several encoders by masks.

  Args:
    found: Numbers by the name of the encoder.

  Returns:
    For each method and share of the masks a row per encoder, and one for a prediction
    that does not look at the image.
  """
  first = next(iter(found.values()))
  shares = [name.removeprefix('masks/') for name in first if name.startswith('masks/')]
  rows: list[dict[str, object]] = []
  columns = [f'{way} {score}' for way in _WAYS.values() for score in _SCORES.values()]
  for method in method_names.DENSE:
    for share in shares:
      start = f'{method}/{share}'
      count = f'{share} ({first[f"masks/{share}"]:,.0f})'
      for encoder, numbers in found.items():
        row = _row(numbers, start, _WAYS)
        if row:
          rows.append({'method': method, 'masks': count, 'encoder': encoder, **row})
      without = _row(first, start, {dense.WITHOUT_IMAGE: _WAYS[dense.FROZEN]})
      if without:
        rows.append({'method': method, 'masks': count, 'encoder': _WITHOUT, **without})
  shown = [column for column in columns if any(column in row for row in rows)]
  return plain_text.text(rows, ['method', 'masks', 'encoder', *shown], percent=shown)


def _row(
  numbers: results.Numbers, start: str, ways: Mapping[str, str]
) -> collections.OrderedDict[str, object]:
  return collections.OrderedDict(
    (f'{title} {shown}', numbers[f'{start}/{way}/{score}'])
    for way, title in ways.items()
    for score, shown in _SCORES.items()
    if f'{start}/{way}/{score}' in numbers
  )
