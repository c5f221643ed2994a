"""The race: the page, and tff_ssl as one of its peers."""

import pathlib

import numpy as np
import pytest
import tensorflow as tf

from docs.race import __main__ as race
from docs.race import heats
from docs.race import report
from docs.race import work
from docs.race.peers import own
from docs.race.peers import protocol
from tff_ssl.execution import contexts
from tff_ssl.storage import files

_PAGE = pathlib.Path(__file__).parents[2] / 'docs' / 'benchmarks.md'


def _result(speed):
  return {
    'versions': {'lib': '1.2'},
    'notes': 'in a way',
    'parameters': 78042,
    'weight_difference': 1e-5,
    'loss_before': 2.5,
    'loss_after': 1.25,
    'peak_pss_mib': 512.4,
    'images_per_cpu_second': speed,
    'images_per_second': 2 * speed,
    'lowest_images_per_cpu_second': speed - 1,
    'highest_images_per_cpu_second': speed + 1,
    'times_float32': 1.0,
  }


def _heat(regime='A', precision=protocol.FLOAT32, **results):
  return {
    'regime': regime,
    'loss': protocol.CROSS_ENTROPY,
    'precision': precision,
    'results': results,
  }


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


def test_the_page_gets_a_new_section_between_its_marks(tmp_path):
  page = tmp_path / 'page.md'
  page.write_text(f'before\n{report.BEGIN}\nold\n{report.END}\nafter\n')
  report.write_page(_document(), page)
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


def test_the_page_has_each_precision_beside_float32_and_says_who_is_first():
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


def test_new_numbers_replace_those_of_the_same_work_in_all_precisions():
  kept, old = _heat('B'), _heat(precision=protocol.BFLOAT16)
  runs = [_run(kept, old), _run(_heat())]
  new = _run(_heat(tff_ssl=_result(1.0)))
  assert race.merged({'runs': runs}, new) == {'runs': [_run(kept), new]}


def test_bfloat16_is_not_raced_without_float32(tmp_path):
  options = race.Options(precisions=('bfloat16',), out=f'{tmp_path}/page.md')
  with pytest.raises(ValueError, match='precisions is bfloat16; it must have float32'):
    race.main(options)


def test_a_page_that_is_none_is_refused():
  with pytest.raises(ValueError, match="out is 'x'; it must be a"):
    race.main(race.Options(out='x'))


def _learnt(fall, speed=10.0):
  after = {'loss_before': 2.5, 'loss_after': 2.5 - fall}
  return {**_result(speed), **after}


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
    (-1.0, True, None),
    (float('nan'), True, None),
  ],
)
def test_a_library_that_learns_otherwise_than_in_float32_is_not_measured(
  fall, drawn, times
):
  in_float32, half = {'Flower': _learnt(1.0)}, {'Flower': _learnt(fall, 15.0)}
  heats.compare_with_float32(half, in_float32, drawn)
  assert half['Flower'].get('times_float32') == times
  if times is None:
    assert half['Flower'] == {
      'not_measured': f'its loss fell by {fall:.3f}; it must fall by 1.000, as in '
      f'float32, within a factor of {"5" if drawn else "1.05"}'
    }


def test_a_library_that_learns_nothing_is_not_measured_in_float32_either():
  results = {'Flower': _learnt(0.0), 'FedJAX': _learnt(0.5)}
  heats.compare_with_float32(results, results, is_drawn=False)
  assert 'its loss fell by 0.000' in results['Flower']['not_measured']
  assert results['FedJAX']['times_float32'] == 1.0
  # And what it learnt in bfloat16 is compared with nothing.
  half = {'Flower': _learnt(1.0), 'FedJAX': _learnt(0.5)}
  heats.compare_with_float32(half, results, is_drawn=False)
  assert half['Flower'] == {'not_measured': 'its loss in float32 is not known'}


def test_the_section_of_the_page_is_of_its_numbers():
  numbers = files.read_json(_PAGE.with_name('race.json'))
  assert f'\n\n{report.section(numbers)}\n\n{report.END}' in _PAGE.read_text()


@pytest.mark.parametrize('text', ['', report.BEGIN, f'{report.END}\n{report.BEGIN}'])
def test_a_page_without_marks_is_refused(tmp_path, text):
  page = tmp_path / 'page.md'
  page.write_text(text)
  with pytest.raises(ValueError, match='must have the lines'):
    report.write_page(_document(), page)


def _problem(precision=protocol.FLOAT32):
  return work.problem('A', protocol.CROSS_ENTROPY, precision, clients=2, examples=2)


def test_the_work_is_the_same_in_each_precision_but_for_the_encoder():
  whole, half = (_problem(each) for each in protocol.PRECISIONS)
  assert (whole.precision, half.precision) == protocol.PRECISIONS
  np.testing.assert_array_equal(whole.images, half.images)
  for name, value in whole.weights.items():
    assert half.weights[name].tobytes() == value.tobytes()
  networks = work.objective(half.loss, half.precision).networks
  assert [network.precision for network in networks.values()] == ['bfloat16', 'float32']


@pytest.mark.parametrize(
  ('loss', 'regime', 'is_drawn'),
  [
    (protocol.CROSS_ENTROPY, 'A', False),
    (protocol.CROSS_ENTROPY, 'B', True),
    (protocol.SIMCLR, 'A', True),
  ],
)
def test_batches_are_drawn_if_they_are_smaller_and_views_always(loss, regime, is_drawn):
  assert work.problem(regime, loss, clients=1).is_drawn == is_drawn


def test_a_peer_without_an_environment_is_not_measured(tmp_path, monkeypatch):
  monkeypatch.setattr(heats, 'FOLDER', tmp_path)
  # Its Python ends at once.
  made = tmp_path / 'fed_jax' / 'bin'
  made.mkdir(parents=True)
  (made / 'python').symlink_to('/bin/false')
  (tmp_path / 'fed_jax' / 'installed.txt').touch()
  results = heats.run(_problem(), 1, ['Flower', 'FedJAX'], 1)
  absent = f'no environment in {tmp_path}/flower'
  assert results['Flower'] == {'not_measured': absent}
  assert results['FedJAX']['not_measured'].startswith('its process ended')


def test_a_problem_is_read_as_it_was_written(tmp_path):
  problem = _problem(protocol.BFLOAT16)
  protocol.write(problem, tmp_path)
  read = protocol.read(tmp_path)
  names = ('loss', 'precision', 'images', 'labels', 'num_clients', 'batch_size')
  for name in names:
    np.testing.assert_array_equal(getattr(read, name), getattr(problem, name))
  assert {k: v.tobytes() for k, v in read.weights.items()} == {
    k: v.tobytes() for k, v in problem.weights.items()
  }
  assert [read.client(k) for k in range(2)] == [slice(0, 2), slice(2, 4)]


@pytest.mark.long
def test_tff_ssl_takes_the_mean_of_the_clients_steps():
  problem = _problem()
  rate = problem.learning_rate
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
    expected = problem.weights[name] - rate * steps[name].numpy()
    np.testing.assert_allclose(value, expected, rtol=1e-4, atol=1e-5, err_msg=name)
