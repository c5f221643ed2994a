"""The collapse alarm: says when encodings no longer differ."""

from collections.abc import Mapping
import sys
from typing import TextIO

import tqdm

from tff_ssl.runtime import metrics as metrics_lib

_METRIC = 'encoding_std'


class CollapseAlarm:
  """Warns in the round in which the spread of the encodings falls under a threshold.

  It warns once, and again only after the spread has been above it.
  """

  def __init__(self, threshold: float, stream: TextIO | None = None):
    """Watches nothing yet.

    Args:
      threshold: Of `encoding_std`, which goes from about 1 (spread out) to 0.
      stream: Where to warn; None: stderr.
    """
    self._threshold = threshold
    self._stream = stream or sys.stderr
    self._collapsed = False

  def update(self, round: int, metrics: Mapping[str, int | float]) -> None:
    """Looks at a round's flat metrics; what they do not hold is no alarm."""
    spread = metrics_lib.find(metrics, _METRIC)
    if spread is None:
      return
    # A round without examples has a spread of exactly 0, and says nothing.
    collapsed = 0 < spread < self._threshold
    if collapsed and not self._collapsed:
      # Not `write`: a progress bar may stand on the line.
      tqdm.tqdm.write(
        f'warning: in round {round} the spread of the encodings is {spread:.3g}, under '
        f'{self._threshold:g}: they may have collapsed to a point',
        file=self._stream,
      )
    if spread:
      self._collapsed = collapsed
