"""Programs, run as `python -m binaries.NAME`: the only place with flags."""

import os
import warnings

# Before anything imports TensorFlow: its start-up lines bury what a program says.
os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
# A dependency of TFF says this of itself at every start.
warnings.filterwarnings('ignore', message='pkg_resources is deprecated')
