"""Divergences against those of dp_accounting, and in limiting cases."""

import dp_accounting
import numpy as np
import pytest

from tff_ssl.runs.privacy import divergences

_ORDERS = [1.5, 2, 2.5, 3, 7.3, 10, 33, 64, 128]


@pytest.mark.parametrize('z', [0.2, 0.54, 3.0, 20.0])
@pytest.mark.parametrize('chance', [1e-3, 0.01, 0.3])
def test_they_are_those_of_dp_accounting(chance, z):
  gaussian = dp_accounting.GaussianDpEvent(z)
  poisson = dp_accounting.rdp.RdpAccountant(_ORDERS)
  poisson.compose(dp_accounting.PoissonSampledDpEvent(chance, gaussian))
  found = divergences.of_poisson(chance, z, _ORDERS)
  np.testing.assert_allclose(found, poisson.rdp, rtol=1e-6)
  # Beyond, dp_accounting's differences of moments lose their digits.
  orders = [a for a in _ORDERS if a < 50 or chance < 0.3 or z < 10]
  fixed = dp_accounting.rdp.RdpAccountant(
    orders, dp_accounting.NeighboringRelation.REPLACE_ONE
  )
  of_1000 = round(1000 * chance)
  fixed.compose(dp_accounting.SampledWithoutReplacementDpEvent(1000, of_1000, gaussian))
  without = divergences.of_gaussian(z, orders)
  np.testing.assert_allclose(without, np.array(orders) / (2 * z**2))
  found = divergences.of_fixed(chance, z, orders)
  np.testing.assert_allclose(found, np.minimum(fixed.rdp, without), rtol=1e-6)


@pytest.mark.parametrize('order', [100, 5_000, 16_384])
def test_with_much_noise_they_are_of_the_second_moment_alone(order):
  """The first term of each series; dp_accounting's bound does not become small."""
  chance, z = 1e-3, 1e4
  second = order * chance**2 / (2 * z**2)
  found = divergences.of_poisson(chance, z, [order])
  np.testing.assert_allclose(found, second, rtol=1e-2)
  found = divergences.of_fixed(chance, z, [order])
  np.testing.assert_allclose(found, 4 * second, rtol=1e-2)
