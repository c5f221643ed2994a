"""The task of a coordinator of sites: what an example looks like, and no example.

The data are at the sites, each of which has a task of its own. A black image stands for
each split, so that networks and views can be built; nothing is trained or evaluated on
it.
"""

import dataclasses

import numpy as np

from tasks import array_tasks
from tasks import task_types

NAME = 'sites'


@dataclasses.dataclass(frozen=True, eq=False)
class AtSites(task_types.Task):
  """The task of a coordinator."""

  def describe(self, of_labels: bool = True) -> str:
    """What an example looks like, in one line; see `Task.describe`."""
    del of_labels
    height, width, channels = self.image_shape
    return f'{NAME}: images of {height}x{width}x{channels}, which stay at the sites'


def load(image_size: int | None = None) -> task_types.Task:
  """Returns the task.

  Args:
    image_size: Height and width of the images, which each site makes of its own.

  Raises:
    ValueError: If no size is given.
  """
  if image_size is None:
    raise ValueError(
      f'image_size is None with --task={NAME}; it must say how large images are at all '
      'sites, as in --image_size=32.'
    )
  black = np.zeros([2, image_size, image_size, 3], np.uint8)
  examples = array_tasks.numbered({task_types.IMAGE: black}, np.full([2], -1))
  made = array_tasks.split_task(NAME, (), examples, np.array([False, True]))
  fields = {each.name: getattr(made, each.name) for each in dataclasses.fields(made)}
  return AtSites(**fields)
