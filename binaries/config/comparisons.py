"""How runs are compared."""

import dataclasses
import importlib
import typing
from typing import Literal

from tff_ssl.computing import kinds

Curve = Literal['accuracy', 'knn', 'loss', 'spread', 'bytes', 'seconds']
Format = Literal['markdown', 'latex', 'png', 'svg', 'pdf']


@dataclasses.dataclass(frozen=True)
class Comparison(kinds.Kind):
  """How runs are compared.

  Attributes:
    metric: Numbers to show, by name or pattern, such as 'linear/*,loss,bytes'; by
      default all accuracies and the cost of training.
    curves: Curves to draw: some of accuracy, knn, loss, spread, bytes and seconds.
    vary_axis: A setting, and settings that change with it; draws accuracies against the
      first.
    label: Settings whose values name the groups, as in method,encoder; by default the
      method, the objective and all other settings in which they differ.
    sort_by: A number that sorts groups, best first, as 'linear/10%/accuracy'.
    against: The method that the others are tested against; by default each is tested
      against each.
    positive: Of two classes the one whose recall is the sensitivity; by default the
      second by order of names.
    checkpoint: Which round of each run is compared: the last; the best evaluated round
      by accuracy on its validation split (best); or the best by another number of that
      split, as 'validation/knn/10%/accuracy'.
    formats: What to write in addition to page and CSV: some of markdown, latex, png,
      svg and pdf.
  """

  metric: tuple[str, ...] = ()
  curves: tuple[Curve, ...] = typing.get_args(Curve)
  vary_axis: tuple[str, ...] = ()
  label: tuple[str, ...] = ()
  sort_by: str | None = None
  against: str | None = None
  positive: str | None = None
  checkpoint: str = 'last'
  formats: tuple[Format, ...] = typing.get_args(Format)

  def __post_init__(self) -> None:
    """Raises ValueError if a value is not allowed."""
    super().__post_init__()
    if self.checkpoint != 'last':
      # Only here: `--help` needs no reader of runs.
      best_round = importlib.import_module('tff_ssl.reporting.best_round')
      best_round.check(self.checkpoint)
