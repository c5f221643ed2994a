"""What a person may get wrong in a run, and what is then said."""

import json
import re
from unittest import mock

import pytest

from binaries import dcco
from binaries.building import data
from binaries.building import objectives
from binaries.config import programs
from binaries.config import run_config
from tests.binaries import in_process
from tests.binaries import launch
from tests.runs import stored
from tff_ssl.augment import configs
from tff_ssl.encoders import mlp
