"""The list of tests that `make test` leaves out."""

import pathlib
import re

import pytest

from tests import long

_ROOT = pathlib.Path(__file__).parents[1]
# What a row is called where the table is.
_TABLES = {
  'tests/algorithms/conformance_test.py': 'tests/algorithms/table.py',
  'tests/algorithms/forms_test.py': 'tests/algorithms/table.py',
  'tests/algorithms/secure_table_test.py': 'tests/algorithms/table.py',
  'tests/binaries/dcco_test.py': 'tests/binaries/conftest.py',
  'tests/binaries/evaluate_test.py': 'tests/binaries/conftest.py',
}


@pytest.mark.parametrize(('file', 'name'), long.entries())
def test_what_it_lists_is_there(file, name):
  files = {file, _TABLES.get(file, file)}
  text = ''.join((_ROOT / each).read_text(encoding='utf-8') for each in files)
  assert re.search(rf'\b{name.partition("[")[0]}\b', text)


def test_files_that_are_dealt_first_are_there():
  text = (_ROOT / 'tests/conftest.py').read_text(encoding='utf-8')
  dealt = re.findall(r"^  '(tests/\S+_test\.py)',$", text, re.MULTILINE)
  assert len(dealt) == len(set(dealt)) > 30
  assert all((_ROOT / file).is_file() for file in dealt)
