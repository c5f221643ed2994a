"""No file starts a program: what could do that is not called, or says what it may do.

The tests of each reader show what becomes of a file. This one finds a new reader.
"""

import ast
import pathlib

import pytest

_ROOT = pathlib.Path(__file__).parents[1]
# Where files of strangers are read.
_PACKAGES = ('tff_ssl', 'tasks', 'binaries', 'docs')
# These compare this library with others, in files that they have written themselves.
_OWN_FILES = ('docs/elsewhere/', 'docs/race/')
# Each is a program in another language, or may run one.
_FORBIDDEN = {
  'eval',
  'exec',
  'os.popen',
  'os.system',
  'pickle.load',
  'pickle.loads',
  'np.fromfile',
  'np.load',
  'np.memmap',
  'yaml.load',
  'tarfile.open',
  'zipfile.ZipFile',
  # It parses without a limit.
  'json.load',
  'json.loads',
}
# What may, with the reason.
_ALLOWED = {
  # Our own worker, by the name of its file in our environment.
  ('tff_ssl/execution/worker_process.py', 'subprocess.Popen'),
  # Modules that the command line names by --import; none that a file names.
  ('tff_ssl/runs/own_modules.py', 'spec.loader.exec_module'),
  # Our own programs, by the name of their module.
  ('binaries/launching/job_runner.py', 'subprocess.Popen'),
  # Archives are opened in one place, which measures them first.
  ('tff_ssl/storage/archives.py', 'tarfile.open'),
  # The folder of a run of our own, on its way to a machine of the cluster and back.
  ('tff_ssl/execution/ray_programs.py', 'tarfile.open'),
  ('tff_ssl/storage/archives.py', 'zipfile.ZipFile'),
  # It writes one.
  ('tff_ssl/encoders/keras_archive.py', 'zipfile.ZipFile'),
  # A file of pixels that the driver of the run has open, with the type it has there.
  ('tff_ssl/execution/ray_parts.py', 'np.memmap'),
  # JSON is parsed in one place; what else parses has its own, or what its key shows.
  ('tff_ssl/storage/files.py', 'json.loads'),
  ('tasks/cache.py', 'json.loads'),
  # What the program itself has just written.
  ('tff_ssl/export/exports.py', 'tf.keras.models.load_model'),
  ('tff_ssl/export/exports.py', 'tf.saved_model.load'),
  ('tff_ssl/export/squares.py', 'spec.loader.exec_module'),
}


def _calls(path):
  """Yields the dotted names of what a file calls, with the call."""
  for node in ast.walk(ast.parse(path.read_text(encoding='utf-8'))):
    if isinstance(node, ast.Call):
      yield ast.unparse(node.func), node


def _may_run(name):
  last = name.rpartition('.')[2]
  return (
    name in _FORBIDDEN
    # An error starts nothing.
    or (name.startswith('subprocess.') and last != 'TimeoutExpired')
    or last in ('load_model', 'decode_image', 'exec_module')
    or name.endswith('saved_model.load')
  )


@pytest.mark.parametrize('package', _PACKAGES)
def test_no_reader_runs_what_it_reads(package):
  count = 0
  for path in (_ROOT / package).rglob('*.py'):
    where = str(path.relative_to(_ROOT))
    if where.startswith(_OWN_FILES):
      continue
    for name, call in _calls(path):
      count += 1
      assert not _may_run(name) or (where, name) in _ALLOWED, (where, name)
      named = {keyword.arg for keyword in call.keywords}
      assert 'allow_pickle' not in named or ast.unparse(call).endswith('=False)'), where
  assert count > 300


def test_allowed_calls_still_exist():
  for where, name in _ALLOWED:
    assert name in [called for called, _ in _calls(_ROOT / where)], (where, name)
