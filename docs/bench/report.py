"""The benchmark's numbers as lines and as JSON, with the machine they are from."""

import collections
from collections.abc import Mapping, Sequence
import importlib.metadata
import json
import math
import os
import platform
from typing import Any

import numpy as np

from docs.bench import experiments
from tff_ssl.computing import processor

_PACKAGES = ('tensorflow', 'tensorflow-federated', 'numpy')
_SIDES = ('federated', 'centralized')


def line(result: Mapping[str, Any]) -> str:
  """Returns a result in one line, aligned with the lines of other results."""
  is_precision = result['experiment'] == experiments.PRECISION
  sides = ('bfloat16', 'float32') if is_precision else _SIDES
  text = (
    '{experiment:8s} {regime:1s} {clients:5d} x {examples_per_client:<5.4g}'
    f' {sides[0]} {{federated_seconds:7.3f}} s  {sides[1]} {{centralized_seconds:7.3f}}'
    ' s  ratio {ratio:5.2f}  CPU ratio {cpu_ratio:5.2f}'
    '  {samples_per_second:6.0f} samples/s  peak {peak_memory_mib:5.0f} MiB'
  ).format(**{**result, 'regime': result['regime'] or ''})
  if result['population'] > result['clients']:
    text += (
      '  of {population:6d} clients, registered in {register_seconds:.2f} s'.format(
        **result
      )
    )
  return text


def slopes(
  results: Sequence[Mapping[str, Any]], field: str
) -> collections.OrderedDict[str, float]:
  """Fits the power of a field with which seconds grow, by least squares of logs.

  Args:
    results: At least two, with different values of `field`.
    field: The field that grows.

  Returns:
    `federated_slope` and `centralized_slope`: 1 where the time of a round is
    proportional to the field, 0 where it does not depend on it.
  """
  x = np.log([result[field] for result in results])
  fitted = collections.OrderedDict()
  for side in _SIDES:
    y = np.log([result[f'{side}_seconds'] for result in results])
    fitted[f'{side}_slope'] = float(np.polyfit(x, y, 1)[0])
  return fitted


def machine() -> dict[str, Any]:
  """Returns what the numbers depend on apart from the configuration."""
  return collections.OrderedDict(
    cpu_count=len(os.sched_getaffinity(0)),
    cpu_model=processor.model() or platform.machine(),
    bfloat16=processor.bfloat16_units(),
    load_average=os.getloadavg()[0],
    python=platform.python_version(),
    **{name: importlib.metadata.version(name) for name in _PACKAGES},
  )


def json_text(document: Mapping[str, Any]) -> str:
  """Returns a document as JSON in one line, with null for NaN."""
  return json.dumps(_without_nan(document))


def _without_nan(value: Any) -> Any:
  # JSON has no NaN.
  if isinstance(value, Mapping):
    return {name: _without_nan(each) for name, each in value.items()}
  if isinstance(value, list):
    return [_without_nan(each) for each in value]
  return None if isinstance(value, float) and math.isnan(value) else value
