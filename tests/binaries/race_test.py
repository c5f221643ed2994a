"""The race: flags, requirements, tables and figure, and tff_ssl as one of its peers."""

import pathlib
import re

import numpy as np
import pytest
import tensorflow as tf

from binaries import race
from binaries.benchmarking import workloads
from binaries.benchmarking.racing import environments
from binaries.benchmarking.racing import figure
from binaries.benchmarking.racing import measure
from binaries.benchmarking.racing import report
from binaries.benchmarking.racing import work
from binaries.benchmarking.racing.peers import own
from binaries.benchmarking.racing.peers import protocol
from tests.binaries import in_process
from tff_ssl.execution import contexts
from tff_ssl.federated import local_training

_ROOT = pathlib.Path(race.__file__).parents[1]


def _result(speed, **others):
  return {
    'versions': {'lib': '1.2'},
    'notes': 'in a way',
    'parameters': 78042,
    'output_difference': 5e-7,
    'weight_difference': 1e-5,
    'loss_before': 2.5,
    'loss_after': 1.25,
    'peak_pss_mib': 512.4,
    'images_per_cpu_second': speed,
    'images_per_second': 2 * speed,
    'centralized_images_per_cpu_second': 150.0,
    'centralized_images_per_second': 160.0,
    'cpu_ratio': 150.0 / speed,
    'lowest_images_per_cpu_second': speed - 1,
    'highest_images_per_cpu_second': speed + 1,
    'idle_cpu': 0.03,
    **others,
  }


def _document():
  results = {
    'tff_ssl': _result(100.0),
    'Flower': _result(200.0, images_per_second=50.0, idle_cpu=None),
    'FedJAX': {'not_measured': 'no environment: no a | b'},
  }
  return {
    'date': '2026-01-01',
    'command': 'python -m binaries.race',
    'cpu_count': 2,
    'cpu_model': 'a machine',
    'python': '3.11.7',
    'load_average': 0.1,
    'repeats': 3,
    'warm_up_rounds': 3,
    'heats': [{'regime': 'A', 'loss': 'cross_entropy', 'results': results}],
  }


def test_the_section_says_who_is_ahead_whoever_that_is():
  text = report.section(_document(), 'figures/race.png')
  assert (
    '- A, cross-entropy: Flower has the most images per CPU second, 200 (2.00 times '
    'tff_ssl); tff_ssl has the most images per second, 200 (4.00 times Flower).\n'
  ) in text
  row = '| 100 | 99 to 101 | 200 | 150 | 160 | 1.50 | 512 |'
  assert f'| A | cross-entropy | tff_ssl {row}' in text
  assert '| FedJAX | not measured: no environment: no a / b |' in text
  assert '| 78,042 | 5e-07 | 2.500 | 1.250 | 1e-05 |' in text
  assert '| tff_ssl | in a way | lib 1.2 | 0.03 |' in text
  assert '| Flower | in a way | lib 1.2 | - |' in text
  assert (
    '![Images per CPU second and per second of each library](figures/race.png)'
    in (text)
  )
  # Every line of a table has the cells of its header.
  tables = [line for line in text.splitlines() if line.startswith('|')]
  assert {line.count('|') for line in tables} == {5, 9, 11}


def test_the_section_takes_the_place_of_the_last_one(tmp_path):
  page = tmp_path / 'page.md'
  page.write_text(f'before\n{report.BEGIN}\nold\n{report.END}\nafter\n')
  once = report.write_section(page, 'new')
  page.write_text(once)
  assert once == f'before\n{report.BEGIN}\n\nnew\n{report.END}\nafter\n'
  assert report.write_section(page, 'new') == once


@pytest.mark.parametrize('text', ['', report.BEGIN, f'{report.END}\n{report.BEGIN}'])
def test_a_page_without_marks_is_refused(tmp_path, text):
  page = tmp_path / 'page.md'
  page.write_text(text)
  with pytest.raises(ValueError, match='must have the lines'):
    report.write_section(page, 'new')


def test_the_page_has_its_marks():
  page = _ROOT / 'docs' / 'benchmarks.md'
  assert report.write_section(page, '').count(report.BEGIN) == 1


def test_the_figure_has_a_bar_for_each_library_that_was_measured(tmp_path):
  drawn = figure.draw(_document())
  heights = [[bar.get_height() for bar in panel.patches] for panel in drawn.axes]
  # tff_ssl, pfl-research, Flower, FedJAX.
  assert heights == [[100, 0, 200, 0], [200, 0, 50, 0]]
  figure.write(_document(), tmp_path / 'race.png')
  assert (tmp_path / 'race.png').read_bytes()[:4] == b'\x89PNG'


def test_the_requirements_are_pinned():
  needed = {
    'Flower': {'flwr', 'ray', 'torch'},
    'pfl-research': {'pfl', 'torch'},
    'FedJAX': {'fedjax', 'jax', 'jaxlib', 'dm-haiku'},
  }
  for title, peer in environments.PEERS.items():
    if not peer.is_own:
      assert needed[title] <= set(environments.pins(peer.requirements))
  pins = [
    environments.pins(environments.PEERS[title].requirements)['torch']
    for title in ('Flower', 'pfl-research')
  ]
  assert pins[0] == pins[1]


@pytest.mark.parametrize('line', ['torch', 'torch>=2', 'a @ file:///a', 'a==1\na==2'])
def test_what_is_not_pinned_is_refused(tmp_path, line):
  path = tmp_path / 'requirements.txt'
  path.write_text(f'# a comment\n{line}\n')
  with pytest.raises(ValueError, match='must be one name==version'):
    environments.pins(path)


def test_a_peer_without_an_environment_is_a_line_and_no_failure(tmp_path):
  of = _problem(protocol.CROSS_ENTROPY, 1)
  pythons = {'Flower': 'no environment: no network', 'FedJAX': tmp_path / 'no_python'}
  results = measure.heat(of, 1, pythons, 1, tmp_path)
  assert results['Flower'] == {'not_measured': 'no environment: no network'}
  assert results['FedJAX']['not_measured'].startswith('its process ended')


@pytest.mark.parametrize(
  ('flag', 'said'),
  [
    ('--peers=TFF', "--peers has 'TFF'; allowed are tff_ssl, pfl-research, Flower"),
    ('--regimes=C', "--regimes has 'C'; allowed are A, B."),
    (
      '--losses=simclr,simclr',
      "--losses is 'simclr,simclr'; it must be different values of",
    ),
    ('--out=page.html', "out is 'page.html'; it must end in .md."),
    ('--out=no/such/page.md', 'its folder must exist'),
  ],
)
def test_bad_flags_are_refused_before_anything_is_installed(flag, said):
  with pytest.raises(ValueError, match=re.escape(said)):
    in_process.call(race, flag)


def _problem(loss, clients, batch_size=None):
  plan = local_training.LocalPlan(batch_size=batch_size)
  return work.problem(workloads.Workload(clients, 2, plan), loss, seed=3)


def test_a_problem_is_read_as_it_was_written(tmp_path):
  of = _problem(protocol.SIMCLR, 3, 1)
  protocol.write(of, tmp_path)
  read = protocol.read(tmp_path)
  assert read.settings == of.settings
  for name in ('images', 'labels', 'sizes'):
    np.testing.assert_array_equal(getattr(read, name), getattr(of, name))
  assert {k: v.tobytes() for k, v in read.weights.items()} == {
    k: v.tobytes() for k, v in of.weights.items()
  }
  assert [read.client(k) for k in range(3)] == [slice(0, 2), slice(2, 4), slice(4, 6)]
  assert read.batches() == [slice(k, k + 1) for k in range(6)]


@pytest.mark.long
def test_tff_ssl_takes_the_mean_of_the_clients_steps():
  of = _problem(protocol.CROSS_ENTROPY, 2)
  rate = of.settings.learning_rate
  params = {name: tf.constant(value) for name, value in of.weights.items()}
  # Of clients of one size and one step FedAvg is one step on all examples, by the
  # gradient of the mean cross-entropy written out.
  with tf.GradientTape() as tape:
    tape.watch(params)
    encoder, _ = work.objective(of.settings).networks.values()
    encoder_params = {k[8:]: v for k, v in params.items() if k.startswith('encoder/')}
    features = encoder.apply(encoder_params, of.images.astype(np.float32) / 255)
    logits = features @ params['head/dense0/kernel'] + params['head/dense0/bias']
    rows = tf.range(len(of.labels))
    chosen = tf.gather_nd(logits, tf.stack([rows, of.labels], 1))
    loss = tf.reduce_mean(tf.reduce_logsumexp(logits, 1) - chosen)
  steps = tape.gradient(loss, params)
  np.testing.assert_allclose(work.mean_loss(of, of.weights), loss, rtol=1e-5)
  with contexts.in_process(optimize_graphs=False):
    federation = own.Federation(of)
    np.testing.assert_allclose(
      federation.outputs(of.images), logits, rtol=1e-4, atol=1e-5
    )
    federation.rounds(1)
    trained = federation.weights()
  assert set(trained) == set(of.weights)
  for name, value in trained.items():
    expected = of.weights[name] - rate * steps[name].numpy()
    np.testing.assert_allclose(value, expected, rtol=1e-4, atol=1e-5, err_msg=name)
