"""Programs, run as `python -m binaries.NAME`: the only place with flags."""

import os
import sys
import warnings

from binaries.flags import stopping
from binaries.flags import streams

# Set before anything imports TensorFlow, whose start-up lines would bury a program's
# own output.
os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
# A dependency of TFF prints this warning at every start.
warnings.filterwarnings('ignore', message='pkg_resources is deprecated')

# `python -m` sets this while it imports the packages that contain the program.
if sys.argv[:1] == ['-m']:
  stopping.while_it_imports()
  streams.fill()
  # sys.argv does not name the program yet; orig_argv does: ['binaries.dcco', ...].
  _given = sys.orig_argv[len(sys.orig_argv) - len(sys.argv) :]
  _name = _given[0].removeprefix(f'{__name__}.') if _given else ''
  # Only where flags are recorded: what `race` runs for other libraries has no absl.
  if os.path.exists(f'{os.path.dirname(__file__)}/flags/outlines/{_name}.json'):  # noqa: PTH110, PTH120
    from binaries.flags import outline

    outline.look(_name, _given[1:])
