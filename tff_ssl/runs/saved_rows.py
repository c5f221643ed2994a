"""Digests of a checkpoint's rows, which a run compares when it resumes."""

from collections.abc import Collection, Mapping
import pathlib
from typing import Any

from tff_ssl.runs import round_table

# Up to this size clients.csv is read at each checkpoint, and compared on resuming.
_MOST_BYTES = 2**23


class SavedRows:
  """The rows of metrics.csv and clients.csv up to a round, as digests."""

  def __init__(self, folder: pathlib.Path):
    """Reads nothing yet.

    Args:
      folder: The run folder.
    """
    self._folder = folder
    self._of_metrics = round_table.TableDigest(folder / 'metrics.csv')
    self._of_clients = round_table.TableDigest(folder / round_table.CLIENTS)

  def about(self, round: int) -> dict[str, Any]:
    """Returns the JSON values that a checkpoint holds of the rows up to a round.

    Args:
      round: The checkpoint's.
    """
    rows, columns = self._metrics_until(round)
    clients, of_clients = self._clients_until(round)
    return {
      'columns': columns,
      'rows': rows,
      'client_columns': of_clients,
      'clients': clients,
    }

  def check(self, round: int, about: Mapping[str, Any]) -> None:
    """Compares the rows with what a checkpoint holds of them.

    Args:
      round: The checkpoint's.
      about: What the checkpoint holds.

    Raises:
      ValueError: If the rows are not those that were written, or it is damaged.
    """
    where = f'of the checkpoint of round {round} in {self._folder}'
    columns, of_clients = (
      _names(about.get(name, []), f"the '{name}' {where}")
      for name in ('columns', 'client_columns')
    )
    rows, _ = self._metrics_until(round, columns)
    clients, _ = self._clients_until(round, of_clients)
    for name, is_same in (
      ('metrics.csv', rows == about.get('rows')),
      (
        round_table.CLIENTS,
        clients is None or about.get('clients') in (None, clients),
      ),
    ):
      if not is_same:
        raise ValueError(
          f'{self._folder / name} has different numbers for rounds 1 to {round} from '
          'those that were written'
        )

  def _metrics_until(
    self, round: int, columns: Collection[str] | None = None
  ) -> tuple[str, list[str]]:
    """Returns a digest of metrics.csv, and the columns that count in the last round.

    Args:
      round: The last round that counts.
      columns: The columns that count in its row, which an evaluation may complete;
        None: all columns that the row has now.
    """
    rows = self._of_metrics.rows_of(round)
    if columns is None:
      columns = {name for row in rows for name in row if name != round_table.ROUND}
    digest = self._of_metrics.until(round, rows, [*columns, round_table.ROUND])
    return digest, sorted(columns)

  def _clients_until(
    self, round: int, columns: Collection[str] | None = None
  ) -> tuple[str | None, list[str]]:
    """Returns a digest of clients.csv, and the columns that count in the last round.

    Args:
      round: The last round that counts. An evaluation may complete its rows, and add to
        them.
      columns: The columns that count in its rows; empty: only earlier rounds count;
        None: all columns that the rows have now.

    Returns:
      The digest (None for a table too large to be read at each checkpoint), and the
      columns.
    """
    path = self._folder / round_table.CLIENTS
    if path.exists() and path.stat().st_size > _MOST_BYTES:
      return None, []
    rows = self._of_clients.rows_of(round)
    if columns is None:
      columns = {name for row in rows for name in row}
    numbers = {*columns} - {round_table.ROUND, round_table.CLIENT}
    counted = [row for row in rows if numbers & {*row}]
    return self._of_clients.until(round, counted, columns), sorted(columns)


def _names(value: Any, what: str) -> list[str]:
  if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
    raise ValueError(f'{what} is {repr(value)[:60]}; it must be a list of names')
  return value
