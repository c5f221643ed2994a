"""The linear theory of Dec-SSL: its objectives, by descent and duality; its bounds."""

import numpy as np
import pytest

from docs.theory import representability

_SETTING = representability.Setting(dimension=60, sources=3)


@pytest.fixture(scope='module')
def studies():
  return {
    d: representability.study(representability.Setting(dimension=d, sources=3))
    for d in (20, 40)
  }


def test_data_are_those_of_the_paper():
  setting = representability.Setting(
    dimension=40, sources=3, tau=5.0, mu=0.01, frequent=500, beta=0.5
  )
  x, y = representability.source_data(setting, 1)
  assert np.bincount(y, minlength=6).tolist() == [6, 0, 500, 500, 6, 0]
  # e_k in class 2k-1 and -e_k in class 2k, of k = 2; the shared directions are -tau q.
  np.testing.assert_allclose(x[y == 2, 1], 1, atol=0.06)
  np.testing.assert_allclose(x[y == 3, 1], -1, atol=0.06)
  shared = x[np.isin(y, [2, 3])][:, [0, 2]]
  assert set(np.unique(np.round(shared)).tolist()) == {-5.0, 0.0}
  assert np.mean(shared) == pytest.approx(-2.5, abs=0.3)
  # Rare classes are one direction each.
  np.testing.assert_allclose(x[y == 4, :3], [[0, 0, 1]] * 6, atol=0.06)
  assert np.std(x[:, 3:]) == pytest.approx(0.01, rel=0.05)


def test_self_supervised_features_minimise_the_loss():
  x, _ = representability.source_data(_SETTING, 0)
  second, rows = x.T @ x / len(x), 6

  w = 0.1 * np.random.default_rng(0).normal(size=[rows, 60])
  for _ in range(4000):
    w = w + 0.05 * w @ (second - w.T @ w)
  span = np.linalg.qr(w.T)[0]
  learned = representability.ssl_features(x, rows)
  np.testing.assert_allclose(
    learned.representability[:3], np.sum(span**2, axis=1)[:3], atol=1e-3
  )
  np.testing.assert_allclose(
    learned.strength[:3], np.sum(w**2, axis=0)[:3], atol=1e-3 * learned.strength.max()
  )


def test_margins_are_those_of_the_quadratic_program():
  # Hard margins of three of four classes.
  random = np.random.default_rng(0)
  y = np.array([0, 0, 1, 1, 3, 3])
  x = 3 * np.eye(4, 5)[y] + 0.3 * random.normal(size=[6, 5])
  hinge = 1e4
  weights = representability.margin_classifier(x, y, 4, hinge)
  margins = [(n, j) for n in range(6) for j in range(4) if j != y[n]]
  slack = [1 - (weights[y[n]] - weights[j]) @ x[n] for n, j in margins]
  assert max(slack) < 1e-3
  # Its dual: multipliers of the margins that bind, of which w is made. The least norm
  # is at least the dual's value, and w has it, but for what is lacking.
  multipliers = hinge * np.maximum(slack, 0)
  made = np.zeros([4, 5])
  for (n, j), multiplier in zip(margins, multipliers, strict=True):
    made[y[n]] += multiplier * x[n]
    made[j] -= multiplier * x[n]
  np.testing.assert_allclose(made, weights, atol=1e-3)
  norm = np.sum(weights**2) / 2
  assert np.sum(multipliers) - np.sum(made**2) / 2 == pytest.approx(norm, rel=1e-3)
  # Two layers v u = w of least |u^T u|^2 + |v^T v|^2 have u^T u = (w^T w)^(1/2).
  values, vectors = np.linalg.eigh(weights.T @ weights)
  root = (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T
  learned = representability.supervised_features(x, y, 4, hinge=1e4)
  np.testing.assert_allclose(learned.strength, np.diag(root), atol=1e-2)


def test_self_supervised_is_uniform_as_theorem_3_2_says():
  lost = {}
  for d in (50, 200):
    setting = representability.Setting(dimension=d, sources=3)
    found = [representability.source_data(setting, k)[0] for k in range(3)]
    local = [representability.ssl_features(x, 6).representability for x in found]
    lost[d] = max(1 - local[k][i] for k in range(3) for i in range(3) if i != k)
    # The constant by the theorem of Davis and Kahan.
    assert 0 < lost[d] <= setting.local_bound
    together = representability.ssl_features(np.concatenate(found), 6).representability
    assert 0 < np.max(1 - together[:3]) <= d**-0.4
  # And at the rate, or faster.
  assert lost[200] <= lost[50] * (200 / 50) ** -0.8


def test_a_study_has_all_objectives(studies):
  setting = representability.Setting(dimension=20, sources=3)
  x, _ = representability.source_data(setting, 2)
  want = representability.ssl_features(x, 6)
  np.testing.assert_array_equal(
    studies[20].ssl[2].representability, want.representability
  )
  together = studies[20].ssl_together.representability
  # m = 6 directions in all.
  assert np.sum(together) == pytest.approx(6)


def test_supervised_has_its_own_direction_alone_as_proposition_4_1_says(studies):
  for d, study in studies.items():
    for k, learned in enumerate(study.sl):
      others = [i for i in range(3) if i != k]
      assert np.max(learned.strength[others]) <= d**-0.1
      assert learned.strength[k] >= 1 - d**-0.1
      assert np.max(learned.representability[others]) < 0.5
      assert learned.representability[k] > 0.6
  # Together it has all: what differs between sources is not in the method.
  assert np.min(studies[40].sl_together.strength[:3]) > 1


def test_out_of_range_values_are_named():
  for arguments, message in (
    ({'sources': 1}, 'sources is 1; it must be at least 2'),
    ({'dimension': 6}, 'dimension is 6; it must be above twice the sources, 6'),
    ({'features': 3}, 'features is 3; it must be above the sources, 3, and below'),
    ({'tau': 0.0}, r'tau is 0\.0; it must be positive'),
    ({'mu': float('inf')}, 'mu is inf; it must be positive and finite'),
    ({'hinge': -1.0}, r'hinge is -1\.0'),
    ({'beta': 1.0}, r'beta is 1\.0; it must be in \[0, 1\)'),
    ({'frequent': 0}, 'frequent is 0; it must be at least 1'),
    ({'seed': -1}, 'seed is -1; it must be at least 0'),
  ):
    with pytest.raises(ValueError, match=message):
      representability.Setting(**arguments)
