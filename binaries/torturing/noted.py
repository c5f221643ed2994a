"""Notes each sum that noise was added to, aside of the ledger that should count it."""

import functools
import importlib
import pathlib
from typing import Any

NOISE, NOTHING = 'noise', 'nothing'


def count(path: pathlib.Path) -> int:
  """Returns how many sums of clients a file notes, torn lines too."""
  if not path.exists():
    return 0
  lines = path.read_text().split('\n')
  return sum(1 for line in lines if line and line != NOTHING)


def note_noise(path: str) -> None:
  """Has every noised sum of this process append a line to a file before it leaves.

  It is done by the graph in which the noise is drawn, so that nothing that is computed
  of the sum is there before the line is; a line is the kernel's from then on, and a
  SIGKILL leaves it. Whoever notes and then is killed may have released nothing: the
  notes are never fewer than the releases.

  Args:
    path: Of the file.
  """
  tf: Any = importlib.import_module('tensorflow')
  query = importlib.import_module('tensorflow_privacy').GaussianSumQuery
  original = query.get_noised_result

  @functools.wraps(original)
  def noted(self: Any, sample_state: Any, global_state: Any) -> Any:
    result, state, event = original(self, sample_state, global_state)
    sums = [tf.math.count_nonzero(part) for part in tf.nest.flatten(sample_state)]
    # TFF adds noise to zeros, once, to see what comes of it when a state is made.
    said = tf.where(tf.add_n(sums) > 0, NOISE, NOTHING)
    with tf.control_dependencies(tf.nest.flatten(result)):
      note = tf.print(said, output_stream=f'file://{path}')
    with tf.control_dependencies([note]):
      return tf.nest.map_structure(tf.identity, result), state, event

  query.get_noised_result = noted
