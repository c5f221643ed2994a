"""The card of an encoder: `encoder.json` for programs, `encoder.md` for people."""

import collections
from collections.abc import Mapping
import os
import pathlib

from binaries.config import run_config
from binaries.config import task_defaults
from binaries.experiment import next_step
from tasks import brightness
from tasks import task_types
from tff_ssl.encoders import network
from tff_ssl.encoders import registry
from tff_ssl.reporting import model_card
from tff_ssl.storage import files

# Settings that the text for people shows of a private run too: none of them tells who
# took part.
PUBLIC = (
  'partition',
  'data.image_size',
  'data.fit',
  'data.pixel_range',
  'objective',
  'augmentation',
  'clients.epochs',
  'clients.batch_size',
)


def build(
  config: run_config.RunConfig,
  task: task_types.Task,
  encoder: network.Network,
  rounds: int,
  more: Mapping[str, object] = {},
) -> collections.OrderedDict[str, object]:
  """Returns the card of an encoder.

  Args:
    config: The run.
    task: What it was trained on.
    encoder: Its network.
    rounds: Rounds that it was trained for.
    more: Further entries: the run it started from, privacy, its client.
  """
  shape = ', '.join(map(str, encoder.input_shape))
  units = 'pixels in [0, 1]'
  if len(encoder.input_shape) == 1:
    units = 'standardised by the training examples'
    if task.scaling is None:
      units = 'as they are'
    elif not task.measured:
      units = '(x - center) / scale'
  if encoder.field != network.IMAGE:
    units += f', the field {encoder.field}'
  known = collections.OrderedDict[str, object](
    encoder=encoder.name,
    algorithm=config.title,
    task=task.name,
    data=task.describe(),
    rounds=rounds,
    trained_in=encoder.precision,
    input=f'float32 [n, {shape}], {units}',
    output=f'float32 [n, {encoder.output_dim}], features',
    parameters=encoder.plain.num_parameters,
    network=registry.describe(encoder),
    load="tf.keras.models.load_model('encoder.keras')",
  )
  if encoder.adapters is not None:
    known['trained_parameters'] = encoder.num_parameters
  if task.files is not None and units.startswith('pixels'):
    how = task_defaults.reading(config.data)
    known['fit'] = how.fit
    if how.pixel_range is not None:
      known['pixel_range'] = list(how.pixel_range)
    for key in brightness.MEASURED:
      if key in (own := dict(task.files.ranges)):
        known[f'{task_defaults.MEASURED}{key}'] = list(own[key])
  if task.scaling is not None and not task.measured:
    center, factor = task.scaling
    known['scaling'] = {'center': center.tolist(), 'scale': (1 / factor).tolist()}
  known.update(more)
  if model_card.is_private(known):
    # Which examples have a label is counted without noise.
    known['data'] = task.describe(of_labels=False)
  return known


def write_text(folder: str | os.PathLike[str]) -> None:
  """Writes `encoder.md` of a run that has an encoder, with the run's next step."""
  path = pathlib.Path(folder, model_card.ENCODER)
  if path.is_file():
    advised = next_step.of_folder(folder)
    hashed = {model_card.ENCODER: path}
    text = model_card.build(folder, hashed, public=PUBLIC, advised=advised)
    files.write(pathlib.Path(folder, model_card.NAME), text)
