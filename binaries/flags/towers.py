"""The dual encoder for two modalities that the flags describe."""

from binaries.flags import common
from tasks import task_types
from tff_ssl.encoders import mlp
from tff_ssl.encoders import network
from tff_ssl.encoders import registry
from tff_ssl.objectives import dual_encoder


def build(
  left: network.Network, task: task_types.Task, output_bias: bool = True
) -> dual_encoder.TwoTower:
  """Builds the dual encoder for a task's two modalities.

  Args:
    left: The encoder that `common.build_encoder` builds for the task.
    task: A task with the fields `left` and `right`.
    output_bias: Whether the projectors' last layers have a bias.
  """
  shape, field = task.shapes[dual_encoder.RIGHT], dual_encoder.RIGHT
  if len(shape) > 1:
    right = common.build_encoder_of_shape(shape, field)
  else:
    # The right modality has vectors; --encoder is for the left one.
    right = registry.build_encoder(
      mlp.NAMES[0], shape, common.WIDTH.value, None, None, common.NORM.value, field
    ).with_precision(common.PRECISION.value)
  return dual_encoder.build_two_towers(
    left, right, common.projector_widths(), output_bias
  )
