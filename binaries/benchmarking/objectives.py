"""The objectives of the benchmark: the papers' defaults, over one model."""

import collections
from collections.abc import Callable, Mapping
from typing import Any

from tff_ssl.encoders import network
from tff_ssl.encoders import predictor as predictor_lib
from tff_ssl.objectives import byol
from tff_ssl.objectives import dual_encoder
from tff_ssl.objectives import moco
from tff_ssl.objectives import simclr
from tff_ssl.objectives import simsiam
from tff_ssl.objectives import statistics
from tff_ssl.objectives import swav


def predictor(model: dual_encoder.Siamese) -> network.Network:
  """Builds a predictor as wide as the projection."""
  return predictor_lib.build_predictor(model.output_dims[0], model.output_dims[0])


OBJECTIVES: Mapping[str, Callable[[dual_encoder.Siamese], Any]] = (
  collections.OrderedDict(
    simclr=simclr.SimclrObjective,
    simsiam=lambda model: simsiam.SimSiamObjective(model, predictor(model)),
    byol=lambda model: byol.ByolObjective(model, predictor(model)),
    moco=moco.MocoObjective,
    swav=swav.SwavObjective,
    cco=statistics.StatisticsObjective,
  )
)
