"""The race: the page, its processes, and tff_ssl as one of its peers."""

import contextlib
import dataclasses
import pathlib
import sys
import time

import numpy as np
import psutil
import pytest
import tensorflow as tf

from docs.race import __main__ as race
from docs.race import heats
from docs.race import process as process_lib
from docs.race import report
from docs.race import work
from docs.race.peers import own
from docs.race.peers import protocol
from tff_ssl.execution import contexts
from tff_ssl.storage import files

_PAGE = pathlib.Path(__file__).parents[2] / 'docs' / 'benchmarks.md'


def _result(speed=10.0, fall=1.25):
  return {
    'versions': {'lib': '1.2'},
    'notes': 'in a way',
    'parameters': 78042,
    'weight_difference': 1e-5,
    'loss_before': 2.5,
    'loss_after': 2.5 - fall,
    'peak_pss_mib': 512.4,
    'images_per_cpu_second': speed,
    'images_per_second': 2 * speed,
    'lowest_images_per_cpu_second': speed - 1,
    'highest_images_per_cpu_second': speed + 1,
    'times_float32': 1.0,
  }


def _heat(regime='A', precision=protocol.FLOAT32, **results):
  loss = protocol.CROSS_ENTROPY
  return {'regime': regime, 'loss': loss, 'precision': precision, 'results': results}


def _run(*heats_of_run):
  return {
    'date': '2026-01-01',
    'command': 'python -m docs.race',
    'cpu_count': 2,
    'cpu_model': 'a machine',
    'python': '3.11.7',
    'load_average': 0.1,
    'repeats': 3,
    'warm_up_rounds': 3,
    'heats': list(heats_of_run),
  }


def _document():
  absent = {'not_measured': 'no environment: no a | b'}
  return {'runs': [_run(_heat(tff_ssl=_result(100.0), FedJAX=absent))]}


def test_page_gets_a_new_section_between_its_marks(tmp_path):
  page = tmp_path / 'page.md'
  page.write_text(f'before\n{report.BEGIN}\nold\n{report.END}\nafter\n')
  files.write_json(tmp_path / 'race.json', _document())
  race.main(race.Options(repeats=0, out=str(page)))
  text = page.read_text()
  assert text.startswith(f'before\n{report.BEGIN}\n\nMeasured on 2026-01-01')
  assert text.endswith(f'\n\n{report.END}\nafter\n')
  row = '| 100 | 99 to 101 | 200 | 512 | 1.00 |'
  assert f'| A | cross-entropy | float32 | tff_ssl {row}' in text
  assert '| FedJAX | not measured: no environment: no a / b |' in text
  assert '| 78,042 | 2.500 | 1.250 | 1e-05 |' in text
  assert '| tff_ssl | in a way | lib 1.2 |' in text
  report.write_page(_document(), page)
  assert page.read_text() == text


@pytest.mark.parametrize('text', ['', report.BEGIN, f'{report.END}\n{report.BEGIN}'])
def test_page_without_marks_is_refused(tmp_path, text):
  page = tmp_path / 'page.md'
  page.write_text(text)
  with pytest.raises(ValueError, match='must have the lines'):
    report.write_page(_document(), page)


def test_path_that_is_no_page_is_refused():
  with pytest.raises(ValueError, match="out is 'x'; it must be a"):
    race.main(race.Options(out='x'))


def test_section_has_each_precision_beside_float32_and_names_the_first():
  half = {**_result(90.0), 'times_float32': 0.9}
  later = _heat(precision=protocol.BFLOAT16, tff_ssl=half, Flower=_result(180.0))
  first = _heat(tff_ssl=_result(100.0), Flower=_result(80.0))
  other = _heat('B', tff_ssl=_result(50.0))
  section = report.section({'runs': [_run(other), _run(later, first)]})
  rows = [row for row in section.splitlines() if row.startswith(('| A', '| B'))]
  leads, speeds = rows[:3], rows[3:8]
  assert leads == [
    f'| A | cross-entropy | float32 {"| tff_ssl, 1.25 times Flower " * 2}|',
    f'| A | cross-entropy | bfloat16 {"| Flower, 2.00 times tff_ssl " * 2}|',
    '| B | cross-entropy | float32 | tff_ssl | tff_ssl |',
  ]
  assert speeds[2].startswith('| A | cross-entropy | bfloat16 | tff_ssl | 90 |')
  assert [row.split()[-2] for row in speeds] == ['1.00', '1.00', '0.90', '1.00', '1.00']
  # The run of the older numbers says which they are.
  assert 'docs.race`: B cross-entropy; 2 cores' in section


def test_stored_section_is_that_of_the_stored_numbers():
  numbers = files.read_json(_PAGE.with_name('race.json'))
  assert f'\n\n{report.section(numbers)}\n\n{report.END}' in _PAGE.read_text()


def test_new_numbers_replace_those_of_the_same_work_in_all_precisions():
  kept, old = _heat('B'), _heat(precision=protocol.BFLOAT16)
  runs = [_run(kept, old), _run(_heat())]
  new = _run(_heat(tff_ssl=_result(1.0)))
  assert race.merged({'runs': runs}, new) == {'runs': [_run(kept), new]}


@pytest.mark.parametrize(
  ('fall', 'drawn', 'times'),
  [
    (0.96, False, 1.5),
    (1.04, False, 1.5),
    (0.94, False, None),
    (1.06, False, None),
    (0.21, True, 1.5),
    (4.9, True, 1.5),
    (0.19, True, None),
    (5.1, True, None),
    (float('nan'), True, None),
  ],
)
def test_library_that_learns_otherwise_than_in_float32_is_not_measured(
  fall, drawn, times
):
  in_float32, half = {'Flower': _result(fall=1.0)}, {'Flower': _result(15.0, fall)}
  heats.compare_with_float32(half, in_float32, drawn)
  assert half['Flower'].get('times_float32') == times
  if times is None:
    assert half['Flower'] == {
      'not_measured': f'its loss fell by {fall:.3f}; it must fall by 1.000, as in '
      f'float32, within a factor of {"5" if drawn else "1.05"}'
    }


def test_library_that_learns_nothing_is_not_measured_in_any_precision():
  results = {'Flower': _result(fall=0.0), 'FedJAX': _result(fall=0.5)}
  heats.compare_with_float32(results, results, is_drawn=False)
  assert 'its loss fell by 0.000' in results['Flower']['not_measured']
  assert results['FedJAX']['times_float32'] == 1.0
  half = {'Flower': _result(fall=1.0), 'FedJAX': _result(fall=0.5)}
  heats.compare_with_float32(half, results, is_drawn=False)
  assert half['Flower'] == {'not_measured': 'its loss in float32 is not known'}


def _problem(precision=protocol.FLOAT32):
  """Returns two clients of two images."""
  full = work.problem('A', protocol.CROSS_ENTROPY, precision)
  few = {'images': full.images[:4], 'labels': full.labels[:4], 'batch_size': 2}
  return dataclasses.replace(full, num_clients=2, **few)


def test_precisions_have_the_same_work_but_for_the_encoder(tmp_path):
  whole, half = (_problem(each) for each in protocol.PRECISIONS)
  protocol.write(half, tmp_path)
  read = protocol.read(tmp_path)
  assert (whole.precision, read.precision) == protocol.PRECISIONS
  np.testing.assert_array_equal(whole.images, read.images)
  for name, value in whole.weights.items():
    assert read.weights[name].tobytes() == value.tobytes()
  assert [read.client(k) for k in range(2)] == [slice(0, 2), slice(2, 4)]
  networks = work.objective(half.loss, half.precision).networks
  assert [network.precision for network in networks.values()] == ['bfloat16', 'float32']


def test_batches_are_drawn_if_they_are_smaller_and_views_always():
  whole = _problem()
  assert not whole.is_drawn
  assert dataclasses.replace(whole, batch_size=1).is_drawn
  assert dataclasses.replace(whole, loss=protocol.SIMCLR).is_drawn


def test_peer_without_an_environment_is_not_measured(tmp_path, monkeypatch):
  monkeypatch.setattr(heats, 'FOLDER', tmp_path)
  # Its Python ends at once.
  made = tmp_path / 'fed_jax' / 'bin'
  made.mkdir(parents=True)
  (made / 'python').symlink_to('/bin/false')
  (tmp_path / 'fed_jax' / 'installed.txt').touch()
  results = heats.run(_problem(), 'A', ['Flower', 'FedJAX'], 1)
  absent = f'no environment in {tmp_path}/flower'
  assert results['Flower'] == {'not_measured': absent}
  assert results['FedJAX']['not_measured'].startswith('its process ended')


@pytest.mark.long
def test_tff_ssl_takes_the_mean_of_the_clients_steps():
  problem = _problem()
  params = {name: tf.constant(value) for name, value in problem.weights.items()}
  # With clients of one size and one step FedAvg is one step on all examples, by the
  # gradient of the mean cross-entropy written out.
  with tf.GradientTape() as tape:
    tape.watch(params)
    encoder, _ = work.objective(problem.loss).networks.values()
    encoder_params = {k[8:]: v for k, v in params.items() if k.startswith('encoder/')}
    features = encoder.apply(encoder_params, problem.images.astype(np.float32) / 255)
    logits = features @ params['head/dense0/kernel'] + params['head/dense0/bias']
    rows = tf.range(len(problem.labels))
    chosen = tf.gather_nd(logits, tf.stack([rows, problem.labels], 1))
    loss = tf.reduce_mean(tf.reduce_logsumexp(logits, 1) - chosen)
  steps = tape.gradient(loss, params)
  np.testing.assert_allclose(work.mean_loss(problem, problem.weights), loss, rtol=1e-5)
  with contexts.in_process(optimize_graphs=False):
    federation = own.Federation(problem)
    federation.rounds(1)
    trained = federation.weights()
  assert set(trained) == set(problem.weights)
  for name, value in trained.items():
    expected = problem.weights[name] - problem.learning_rate * steps[name].numpy()
    np.testing.assert_allclose(value, expected, rtol=1e-4, atol=1e-5, err_msg=name)


# A peer of Python alone: rounds are the work of a child, and a daemon in a session of
# its own stays, as Ray's do.
_PEER = """
import os, pathlib, subprocess, sys, time
import numpy as np
from docs.race.peers import protocol

BURN = 'import time; b = b"x" * (80 * 2**20); t = time.process_time\\n'
BURN += 'while t() < {seconds}: pass'

class Fake:
  def rounds(self, count):
    print('noise on standard output', flush=True)
    if count > 2:
      raise RuntimeError('only two rounds')
    code = BURN.format(seconds=0.3 * count)
    subprocess.run([sys.executable, '-c', code], check=True)

  def weights(self):
    return {'w': np.arange(3.0)}

channel = protocol.Channel()
daemon = subprocess.Popen(
  [sys.executable, '-c', 'import time; time.sleep(60)'], start_new_session=True
)
pathlib.Path(sys.argv[1]).write_text(f'{os.getpid()} {daemon.pid}')
channel.serve(Fake(), ['numpy'], 'as a test')
"""


def _start(tmp_path, text=_PEER):
  script = tmp_path / 'peer.py'
  script.write_text(text)
  command = [sys.executable, str(script), str(tmp_path / 'pids')]
  return process_lib.Process(command, tmp_path / 'log')


@pytest.mark.long
def test_work_of_all_processes_is_counted_and_none_is_left(tmp_path):
  with contextlib.closing(_start(tmp_path)) as peer:
    assert (peer.versions, peer.notes) == ({'numpy': np.__version__}, 'as a test')
    np.testing.assert_array_equal(peer.weights()['w'], [0, 1, 2])
    before = peer.cpu_seconds()
    # The child has ended by the time it is counted.
    peer.rounds(2, watch=True)
    after = peer.cpu_seconds()
    with pytest.raises(process_lib.UnavailableError, match='its process ended'):
      peer.rounds(3)
  assert 0.5 < after['peer'] - before['peer'] < 1.5
  assert peer.peak_mib > 80
  pids = [int(pid) for pid in (tmp_path / 'pids').read_text().split()]
  deadline = time.monotonic() + 10
  while any(map(psutil.pid_exists, pids)) and time.monotonic() < deadline:
    time.sleep(0.05)
  assert not any(map(psutil.pid_exists, pids))
  log = (tmp_path / 'log').read_text()
  assert 'noise on standard output' in log and 'only two rounds' in log


def test_peer_without_its_library_says_so(tmp_path):
  fails = 'from docs.race.peers import protocol\n'
  fails += 'protocol.Channel().fail(ImportError("no torch"))\n'
  with pytest.raises(process_lib.UnavailableError, match='failed: ImportError: no to'):
    _start(tmp_path, fails)
