"""Programs that are changed before they begin, to record noise.

`python -m tests.torture.hooks FILE PROGRAM FLAGS` is a program so.
"""

import functools
import importlib
import pathlib
import runpy
import sys
from typing import Any

_NOISE, _NOTHING = 'noise', 'nothing'


def count(path: pathlib.Path) -> int:
  """Returns the number of client sums recorded in a file, including torn lines."""
  if not path.exists():
    return 0
  lines = path.read_text().split('\n')
  return sum(1 for line in lines if line and line != _NOTHING)


def _note_noise(path: str) -> None:
  """Makes every noised sum of this process append a line to a file before it leaves.

  The graph that draws the noise does this, so nothing that is computed from the sum
  exists before the line. From then on the kernel has the line, and a SIGKILL does not
  remove it. A process that is killed after writing a line may have released nothing:
  there are never fewer lines than releases.

  Args:
    path: Path of the file.
  """
  tf: Any = importlib.import_module('tensorflow')
  noise: Any = importlib.import_module('tff_ssl.aggregators.secret_noise')
  query = noise.GaussianSumQuery
  original = query.get_noised_result

  @functools.wraps(original)
  def noted(self: Any, sample_state: Any, global_state: Any) -> Any:
    result, state, event = original(self, sample_state, global_state)
    sums = [tf.math.count_nonzero(part) for part in tf.nest.flatten(sample_state)]
    # When TFF makes a state, it adds noise to zeros once, to see the result.
    said = tf.where(tf.add_n(sums) > 0, _NOISE, _NOTHING)
    with tf.control_dependencies(tf.nest.flatten(result)):
      note = tf.print(said, output_stream=f'file://{path}')
    with tf.control_dependencies([note]):
      return tf.nest.map_structure(tf.identity, result), state, event

  query.get_noised_result = noted


if __name__ == '__main__':
  file, program = sys.argv[1:3]
  del sys.argv[1:3]
  _note_noise(file)
  runpy.run_module(f'binaries.{program}', run_name='__main__', alter_sys=True)
