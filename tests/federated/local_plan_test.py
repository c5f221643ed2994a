"""Tests of the checks of a client's plan."""

import pytest

from tff_ssl.federated import local_training


@pytest.mark.parametrize(
  ('field', 'value'),
  [
    ('accumulate', 2),
    ('drop_last', 'often'),
    ('drop_last', 'always'),
  ],
)
def test_plan_names_what_is_out_of_range(field, value):
  with pytest.raises(ValueError, match=f'{field} is {value!r}'):
    local_training.LocalPlan(**{field: value})
