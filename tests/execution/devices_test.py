"""The devices that computations without a worker are placed on."""

import re

import pytest
import tensorflow as tf

from tests import forked
from tff_ssl.execution import contexts


@pytest.fixture(scope='module')
def on_devices():
  """Returns what one and two logical CPUs, in the place of GPUs, have said."""
  process = forked.Process('tests.execution.two_devices')
  printed, said = process.communicate()
  assert process.returncode == 0, said
  return printed


def test_two_devices_give_the_numbers_of_one(on_devices):
  one, two = re.findall('^sum (.*)', on_devices, re.M)
  assert one == two


def test_clients_are_computed_on_the_devices_in_turn(on_devices):
  used = set(re.findall(r'\(MatMul\): .*device:(CPU:\d)', on_devices))
  assert used == {'CPU:0', 'CPU:1'}


@pytest.mark.parametrize(
  ('device', 'message'),
  [
    ('gpu', 'device is gpu; it must be cpu, because TensorFlow sees no GPU'),
    ('tpu', "device is 'tpu'; it must be cpu, gpu or a list"),
    ([], 'it must be cpu, gpu or a list'),
    (['CPU:7'], "device has 'CPU:7'; TensorFlow has /device:CPU:0"),
    (['nonsense'], "device has 'nonsense'; TensorFlow has /device:CPU:0"),
  ],
)
def test_devices_that_are_not_there(device, message):
  if device == 'gpu' and tf.config.list_physical_devices('GPU'):
    pytest.skip('TensorFlow sees a GPU')
  with pytest.raises(ValueError, match=re.escape(message)):
    contexts.in_process(device)
