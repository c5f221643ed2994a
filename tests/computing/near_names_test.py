import pytest

from tff_ssl.computing import near_names


@pytest.mark.parametrize(
  ('name', 'question'),
  [
    ('fedma', ' Did you mean fedema?'),
    ('dcoo', ' Did you mean dcco?'),
    ('lamda', ''),
    ('', ''),
  ],
)
def test_the_nearest_name_is_asked_about(name, question):
  assert near_names.question(name, ('dcco', 'fedema')) == question


def test_a_name_unlike_all_may_be_that_of_an_own_part():
  for name, hint in (
    ('mine', ' Parts of your own come with --import=FILE.'),
    ('dcoo', ' Did you mean dcco?'),
  ):
    assert near_names.question(name, ['dcco'], may_be_own=True) == hint


def test_of_two_near_names_the_nearer_one_is_meant():
  assert near_names.nearest('simcrl', ['simsiam', 'simclr']) == 'simclr'
