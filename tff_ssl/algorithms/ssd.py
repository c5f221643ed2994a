"""Federated averaging with soft separation and distillation (SSD).

Hung-Chieh Fang, Hsuan-Tien Lin, Irwin King, Yifei Zhang. Soft Separation and
Distillation: Toward Global Uniformity in Federated Unsupervised Learning. ICCV 2025
(arXiv:2508.01251).

A round:
  1. the server broadcasts the model;
  2. client k trains it for E epochs on L_ssl (the paper's is alignment and uniformity),
     drawn into the client's own dimensions, with its features drawn to its projections
     (`objectives.separated`), and sends its update;
  3. the server averages the updates weighted by n_k and applies its optimizer.

With alpha = 1 and delta = 0 it is FedAvg. What a client sends is what it sends in
FedAvg, in sums that may be secure or private. Its dimensions follow from its number in
the population, of which it is told nothing else.

Deviation: the paper's server hands out the dimensions once. Here a client computes
them.
"""

import dataclasses

import tensorflow_federated as tff

from tff_ssl.algorithms import fedavg
from tff_ssl.federated import phases
from tff_ssl.objectives import contextual
from tff_ssl.objectives import dual_encoder
from tff_ssl.objectives import separated


def ssd(
  objective: dual_encoder.PairObjective,
  server_optimizer: tff.learning.optimizers.Optimizer,
  training: fedavg.Training,
  population: int,
  scale: float = 10.0,
  separation_weight: float = 1.0,
  distillation_weight: float = 0.1,
) -> phases.Algorithm:
  """Returns SSD; elements have an int32 `client`, the number in [0, N) of the client.

  Args:
    objective: L_ssl, of two views by one network.
    server_optimizer: Applied to the averaged update; SGD at rate 1.0 is plain FedAvg.
    training: How a client trains, how clients are weighted, and the seed.
    population: N, the number of all clients.
    scale: alpha, of a client's own dimensions.
    separation_weight: gamma.
    distillation_weight: delta.

  Returns:
    The algorithm. Its metrics are, under `client_work`, those of `fedavg.fedavg`, with
    the parts of the loss: `ssl_loss`, `separation` and, with delta above 0,
    `distillation`.

  Raises:
    ValueError: If the objective or a value does not fit (`separated`).
  """
  minimised = separated.SeparatedObjective(
    objective, population, scale, separation_weight, distillation_weight
  )
  plain = fedavg.fedavg(minimised, server_optimizer, training)
  return dataclasses.replace(plain, client_numbers=[contextual.CLIENT])
