import pytest

from tests.computing import in_fork
from tff_ssl.computing import process_owner


@pytest.mark.forks
def test_only_a_fork_is_another_process():
  here = process_owner.Owner()
  assert here.is_here
  here.check('it')
  assert in_fork.said(lambda: here.is_here) == 'False'
  assert 'it was opened by process' in in_fork.said(lambda: here.check('it'))
