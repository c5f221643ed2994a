"""The race: the page, and tff_ssl as one of its peers."""

import pathlib

import numpy as np
import pytest
import tensorflow as tf

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
  }


def _document():
  results = {
    'tff_ssl': _result(100.0),
    'FedJAX': {'not_measured': 'no environment: no a | b'},
  }
  return {
    'date': '2026-01-01',
    'command': 'python -m docs.race',
    'cpu_count': 2,
    'cpu_model': 'a machine',
    'python': '3.11.7',
    'load_average': 0.1,
    'repeats': 3,
    'warm_up_rounds': 3,
    'heats': [{'regime': 'A', 'loss': 'cross_entropy', 'results': results}],
  }


def test_the_page_gets_a_new_section_between_its_marks(tmp_path):
  page = tmp_path / 'page.md'
  page.write_text(f'before\n{report.BEGIN}\nold\n{report.END}\nafter\n')
  report.write_page(_document(), page)
  text = page.read_text()
  assert text.startswith(f'before\n{report.BEGIN}\n\nMeasured on 2026-01-01')
  assert text.endswith(f'\n\n{report.END}\nafter\n')
  row = '| 100 | 99 to 101 | 200 | 512 |'
  assert f'| A | cross-entropy | tff_ssl {row}' in text
  assert '| FedJAX | not measured: no environment: no a / b |' in text
  assert '| 78,042 | 2.500 | 1.250 | 1e-05 |' in text
  assert '| tff_ssl | in a way | lib 1.2 |' in text
  report.write_page(_document(), page)
  assert page.read_text() == text


def test_the_section_of_the_page_is_of_its_numbers():
  numbers = files.read_json(_PAGE.with_name('race.json'))
  assert f'\n\n{report.section(numbers)}\n\n{report.END}' in _PAGE.read_text()


@pytest.mark.parametrize('text', ['', report.BEGIN, f'{report.END}\n{report.BEGIN}'])
def test_a_page_without_marks_is_refused(tmp_path, text):
  page = tmp_path / 'page.md'
  page.write_text(text)
  with pytest.raises(ValueError, match='must have the lines'):
    report.write_page(_document(), page)


def _problem():
  return work.problem('A', protocol.CROSS_ENTROPY, clients=2, examples=2)


def test_a_peer_without_an_environment_is_not_measured(tmp_path, monkeypatch):
  monkeypatch.setattr(heats.environments, 'FOLDER', tmp_path)
  pythons = {
    'Flower': 'no environment: no network',
    'FedJAX': pathlib.Path('/bin/false'),
  }
  results = heats.run(_problem(), 1, pythons, 1)
  assert results['Flower'] == {'not_measured': 'no environment: no network'}
  assert results['FedJAX']['not_measured'].startswith('its process ended')


def test_a_problem_is_read_as_it_was_written(tmp_path):
  problem = _problem()
  protocol.write(problem, tmp_path)
  read = protocol.read(tmp_path)
  for name in ('loss', 'images', 'labels', 'num_clients', 'batch_size'):
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
