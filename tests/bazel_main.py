"""Runs, under Bazel, the test file named in the arguments with pytest."""

import sys

import pytest

if __name__ == '__main__':
  sys.exit(pytest.main(['-p', 'no:cacheprovider', *sys.argv[1:]]))
