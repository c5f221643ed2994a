"""Programs, run as `python -m binaries.NAME`, and `experiment.run` from Python."""

import os
import sys
import warnings

from binaries.launching import stopping

# Set before anything imports TensorFlow, whose start-up lines would bury a program's
# own output.
os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
# By default not without AVX-512: SimCLR on 16 x 16 pixels then takes 3 times as long.
os.environ.setdefault('TF_ENABLE_ONEDNN_OPTS', '1')
# A dependency of TFF prints this warning at every start.
warnings.filterwarnings('ignore', message='pkg_resources is deprecated')

# `python -m` sets this while it imports the packages that contain the program.
if sys.argv[:1] == ['-m']:
  stopping.while_it_imports()
  # Only now: signals come while it is imported, too.
  from binaries.launching import streams

  streams.fill()
