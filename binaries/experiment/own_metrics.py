"""Tables of the metrics that a module of one's own registers (`parts.metric`)."""

from collections.abc import Mapping, Sequence

from tff_ssl.evaluation import label_draws
from tff_ssl.evaluation import method_names
from tff_ssl.reporting import plain_text
from tff_ssl.settings import parts


def columns() -> dict[str, str]:
  """Returns the titles of columns of accuracies, which are the metrics' names."""
  return {name: name for name, part in parts.METRICS.items() if part.is_own}


def table(results: Mapping[str, Mapping[str, float]], shares: Sequence[str]) -> str:
  """Lays out the numbers of metrics that are no scores.

  Args:
    results: Numbers by the name of the encoder.
    shares: Of the labels, as the names of numbers have them.

  Returns:
    A row per share and encoder, with a column per number; '' if there is none.
  """
  rows, names = [], dict[str, None]()
  for share in shares:
    for encoder, numbers in results.items():
      found = {}
      for metric in columns():
        start = f'{metric}/{share}/'
        for name in (each for each in numbers if each.startswith(start)):
          first, _, more = (last := name.removeprefix(start)).partition('/')
          if first in (*method_names.SCORES, 'recall') or more:
            continue
          deviation = numbers.get(f'{name}/{label_draws.DEVIATION}', float('nan'))
          found[f'{metric} {last}'] = plain_text.number(name, numbers[name], deviation)
      if found:
        rows.append({'encoder': encoder, 'labels': share, **found})
        names |= dict.fromkeys(found)
  if not rows:
    return ''
  return plain_text.text(rows, ['encoder', 'labels', *names], right=names)
