"""Digests of tables that grow, against one hash of all rows that are there."""

import hashlib

import numpy as np

from tff_ssl.runs import round_table
from tff_ssl.runs import table_digest


def _whole(path, last, columns):
  """All rows up to a round, read at once; of the last round's some columns count."""
  found = hashlib.blake2b(digest_size=8)
  for row in round_table.Table(path).rows():
    if int(row['round']) < last:
      found.update(repr(sorted(row.items())).encode())
    elif int(row['round']) == last:
      cells = {name: cell for name, cell in row.items() if name in columns}
      found.update(repr(sorted(cells.items())).encode())
  return found.hexdigest()


def test_a_digest_that_grows_is_that_of_all_rows(tmp_path):
  path = tmp_path / 't.csv'
  generator = np.random.default_rng(0)
  written, grown = round_table.Table(path), table_digest.Digest(path)
  columns = ['round', 'client', 'a', 'b']
  for round in range(1, 40):
    names = ['client', 'a', 'b', *(['c'] if round in (9, 30) else [])]
    rows = [
      {name: float(generator.normal()) for name in names}
      for _ in range(int(generator.integers(1, 4)))
    ]
    # A new column, in round 9, writes the file anew.
    written.extend(round, rows)
    if round == 20:
      # As an evaluation completes the last round.
      written.replace(round, [{**row, 'd': 1} for row in rows])
    if round % 3:
      continue
    for last in (round, round - 1, round):
      found = grown.until(last, grown.rows_of(last), columns)
      assert found == _whole(path, last, columns)
  before = grown.until(39, grown.rows_of(39), columns)
  path.write_text(path.read_text().replace('0.', '1.', 1))
  changed = table_digest.Digest(path)
  assert changed.until(39, changed.rows_of(39), columns) != before
  path.unlink()
  assert grown.rows_of(39) == []
