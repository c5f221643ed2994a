"""The figure of the race: images per CPU second and per second, bars side by side."""

from collections.abc import Mapping
import os
from typing import Any

from matplotlib import axes as axes_lib
from matplotlib import figure as figure_lib
import numpy as np

from binaries.benchmarking.racing import environments
from binaries.benchmarking.racing import report
from tff_ssl.reporting import look

_INCHES = (8.0, 4.6)
_PANELS = (
  ('images_per_cpu_second', 'images per CPU second'),
  ('images_per_second', 'images per second'),
)
# Colours that the colour-blind can tell apart.
_COLORS = ('#0b6e99', '#d9730d', '#8a8a8a', '#6c4ab6')
_GROUP = 0.84


def write(document: Mapping[str, Any], path: str | os.PathLike[str]) -> None:
  """Draws a race into a PNG file, which is created or replaced."""
  look.save(draw(document), path)


def draw(document: Mapping[str, Any]) -> figure_lib.Figure:
  """Draws a race.

  Args:
    document: What was measured.

  Returns:
    The figure: two panels, each with a group of bars for each regime and loss.
  """
  figure = look.new(*_INCHES)
  panels = figure.subplots(1, len(_PANELS))
  for panel, (field, label) in zip(panels, _PANELS, strict=True):
    _draw(panel, document, field, label)
  panels[-1].legend(loc='upper right', frameon=False, fontsize=9)
  look.title(
    figure,
    'The same rounds by four libraries',
    f'ResNet-8, A: small clients, B: few clients with local batches; '
    f'{document["cpu_count"]} cores of {document["cpu_model"]}',
  )
  return figure


def _draw(
  panel: axes_lib.Axes, document: Mapping[str, Any], field: str, label: str
) -> None:
  heats = document['heats']
  places = np.arange(len(heats))
  width = _GROUP / len(environments.PEERS)
  for k, title in enumerate(environments.PEERS):
    heights = [heat['results'].get(title, {}).get(field, 0.0) for heat in heats]
    where = places + (k + 0.5) * width - _GROUP / 2
    bars = panel.bar(where, heights, width * 0.92, color=_COLORS[k], label=title)
    texts = [f'{height:.0f}' if height else '' for height in heights]
    panel.bar_label(bars, texts, fontsize=6.5, color=look.INK, rotation=90, padding=2)
  names = [
    f'{heat["regime"]}\n{report.LOSSES[heat["loss"]]}'.replace('-', '-\n')
    for heat in heats
  ]
  panel.set_xticks(places, names, fontsize=8)
  panel.margins(y=0.14)
  panel.set_ylabel(label, color=look.INK)
  look.style_axes(panel)
