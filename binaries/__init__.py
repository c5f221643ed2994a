"""Programs, run as `python -m binaries.NAME`: the only place with flags."""

import os

# Before anything imports TensorFlow: its start-up lines bury what a program says.
os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
