"""FedEMA and FedU in NumPy, and settings of them that differ in what they do."""

import numpy as np

from tests.algorithms import harness
from tests.algorithms.divergence_aware import follower
from tff_ssl.algorithms import fedavg
from tff_ssl.settings import learning
from tff_ssl.settings import personal

_RATE, _EPOCHS = 0.3, 2
TRAINING = fedavg.Training(
  learning.SgdClients(learning_rate=_RATE, epochs=_EPOCHS), seed=harness.SEED
)
SIZES = [2, 1, 3, 1]
MEMBERS = harness.split(SIZES)
# Clients come back after rounds without them, in other places.
ROUNDS = [[0, 1, 2], [2, 3, 0], [1, 3, 0], [3, 2, 0]]
_W = (follower.ENCODER, follower.PROJECTOR)


CONFIGS = {
  'autoscaler': personal.FedEMA(),
  'a large constant scaler': personal.FedEMA(scaler=8.0, divergence_norm='conv_mean'),
  'of the encoder alone': personal.FedEMA(scaler=0.8, ema_on='encoder'),
  'a constant scaler by l2': personal.FedEMA(scaler=0.8, divergence_norm='l2'),
  'set in the first round': personal.FedEMA(autoscaler='first_round'),
  'constant, of the predictor alone': personal.FedEMA(
    constant_mu=0.4, ema_on='predictor'
  ),
  'averaged targets, both replaced': personal.FedEMA('target', 'both', tau=0.5),
  'averaged targets as targets': personal.FedEMA('target', 'target'),
  'alone': personal.FedEMA(replaced='none'),
  'an online first target': personal.FedEMA(first_target='online'),
  'of the training': personal.FedEMA(divergence_of='training'),
  'of the training, by l2': personal.FedEMA(
    divergence_norm='l2', divergence_of='training'
  ),
  'fedu': personal.FedU(threshold=0.1),
  'fedu, of the training': personal.FedU(threshold=0.1, divergence_of='training'),
  'fedu by a quantile': personal.FedU(threshold_quantile=0.3),
}


class Reference:
  """The rounds in NumPy, from the papers; `log`: (round, client) -> numbers."""

  def __init__(self, config):
    self.config = config
    self.model = {name: np.array(v) for name, v in follower.START.items()}
    self.clients, self.scalers, self.log = {}, {}, {}
    # How far the last training moved each client's networks.
    self.moved = {}
    # Of the running quantile: its ratio, and the mean divergence of the last round.
    self.ratio, self.mean, self.thresholds = 1.0, np.inf, []

  def shares(self, k, distance):
    """Returns mu of W and of the predictor."""
    config = self.config
    if isinstance(config, personal.FedU):
      threshold = config.threshold
      if config.threshold_quantile is not None:
        threshold = self.ratio * self.mean
      return 0.0, float(distance >= threshold)
    if config.constant_mu is not None:
      mu = config.constant_mu
    else:
      if config.scaler is not None:
        self.scalers[k] = config.scaler
      elif k not in self.scalers:
        self.scalers[k] = config.tau / distance
      mu = min(self.scalers[k] * distance, 1.0)
    return mu * (config.ema_on != 'predictor'), mu * (config.ema_on != 'encoder')

  def distance(self, one, other):
    gaps = {name: one[name] - other[name] for name in _W}
    config = self.config
    # The authors' constant scaler and divergence go with their norm.
    is_authors = isinstance(config, personal.FedEMA) and (
      config.scaler or config.divergence_of == 'training'
    )
    if (config.divergence_norm or ('conv_mean' if is_authors else 'l2')) == 'conv_mean':
      return np.linalg.norm(gaps[follower.ENCODER])
    return np.linalg.norm(np.concatenate([gaps[name] for name in _W]))

  def receive(self, k, number):
    if k not in self.clients:
      self.log[number, k] = {'mu': 0.0, 'divergence': None, 'lambda': None}
      return follower.begin(self.model)
    own, option = self.clients[k], self.config
    distance = (
      self.moved[k]
      if self.config.divergence_of == 'training'
      else self.distance(self.model, own)
    )
    encoder, predictor = self.shares(k, distance)
    if option.replaced == 'none':
      encoder = predictor = 1.0
    result = dict(own)
    for name in follower.ONLINE:
      mu = predictor if name == follower.PREDICTOR else encoder
      if name in _W and option.replaced == 'target':
        mu = 1.0
      result[name] = mu * own[name] + (1 - mu) * self.model[name]
    if option.replaced in ('target', 'both'):
      for name in _W:
        result[f'target/{name}'] = self.model[name]
    self.log[number, k] = {
      'mu': max(self.shares(k, distance)),
      'divergence': distance,
      'lambda': self.scalers.get(k),
    }
    return result

  def round(self, number, cohort):
    total, mean = sum(SIZES[k] for k in cohort), {}
    new = [k for k in cohort if k not in self.clients]
    for k in cohort:
      images = harness.take(harness.arrays(), MEMBERS[k])['image']
      before = self.receive(k, number)
      client = follower.Client(
        images.astype(np.float64).mean(axis=(1, 2, 3)), dict(before)
      )
      # Without momentum the target is the online network.
      is_online = k in new and self.config.first_target == 'online'
      client.train(_EPOCHS, _RATE, 0.0 if is_online else 0.5)
      self.moved[k] = self.distance(before, client.networks)
      self.clients[k] = client.networks
      for name in follower.ONLINE:
        of_target = name in _W and self.config.averaged == 'target'
        sent = client.networks[f'target/{name}' if of_target else name]
        mean[name] = mean.get(name, 0) + SIZES[k] / total * sent
    self.model = mean
    if getattr(self.config, 'autoscaler', None) == 'first_round':
      for k in new:
        self.scalers[k] = self.config.tau / self.distance(self.model, self.clients[k])
        self.log[number, k]['lambda'] = self.scalers[k]
    if getattr(self.config, 'threshold_quantile', None) is not None:
      self.follow({k: self.log[number, k]['divergence'] for k in cohort})

  def follow(self, divergences):
    """Brings the running quantile after a round (Andrew et al. 2021, geometric)."""
    self.thresholds.append(self.ratio * self.mean)
    known = {k: d for k, d in divergences.items() if d is not None}
    if not known:
      return
    weights = [SIZES[k] for k in known]
    below = [d < self.thresholds[-1] for d in known.values()]
    if np.isfinite(self.mean):
      share = np.average(below, weights=weights)
      self.ratio *= np.exp(-0.2 * (share - self.config.threshold_quantile))
    self.mean = np.average([*known.values()], weights=weights)
