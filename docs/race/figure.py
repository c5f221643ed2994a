"""The figure of the race: images per CPU second and per second, bars side by side."""

from collections.abc import Mapping
import os
from typing import Any

import numpy as np

from docs.race import environments
from tff_ssl.reporting import look

_PANELS = ('images_per_cpu_second', 'images_per_second')
# Colours that the colour-blind can tell apart.
_COLORS = ('#0b6e99', '#d9730d', '#8a8a8a', '#6c4ab6')
_GROUP = 0.84


def write(document: Mapping[str, Any], path: str | os.PathLike[str]) -> None:
  """Draws a race into a PNG file: a group of bars for each regime and loss.

  Args:
    document: What was measured.
    path: The file, which is created or replaced.
  """
  figure = look.new(8.0, 4.6)
  heats, width = document['heats'], _GROUP / len(environments.PEERS)
  panels = figure.subplots(1, len(_PANELS))
  for panel, field in zip(panels, _PANELS, strict=True):
    for k, title in enumerate(environments.PEERS):
      heights = [heat['results'].get(title, {}).get(field, 0.0) for heat in heats]
      where = np.arange(len(heats)) + (k + 0.5) * width - _GROUP / 2
      bars = panel.bar(where, heights, width * 0.92, color=_COLORS[k], label=title)
      texts = [f'{height:.0f}' if height else '' for height in heights]
      panel.bar_label(bars, texts, fontsize=6.5, color=look.INK, rotation=90, padding=2)
    names = [f'{heat["regime"]}\n{heat["loss"]}'.replace('_', '-\n') for heat in heats]
    panel.set_xticks(np.arange(len(heats)), names, fontsize=8)
    panel.margins(y=0.14)
    panel.set_ylabel(field.replace('_', ' '), color=look.INK)
    look.style_axes(panel)
  panels[-1].legend(loc='upper right', frameon=False, fontsize=9)
  look.title(
    figure,
    'The same rounds by four libraries',
    f'ResNet-8, A: small clients, B: few clients with local batches; '
    f'{document["cpu_count"]} cores of {document["cpu_model"]}',
  )
  look.save(figure, path)
