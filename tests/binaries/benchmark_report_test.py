"""What the benchmark prints and draws of numbers that are given."""

import json

import numpy as np
import pytest

from binaries import benchmark
from binaries.benchmarking import growth_plot
from binaries.benchmarking import report
from binaries.benchmarking import workloads
from tests.binaries import in_process


def result(**numbers) -> dict[str, object]:
  return {
    'experiment': 'dcco',
    'regime': None,
    'clients': 64,
    'examples_per_client': 4,
    'population': 64,
    'federated_seconds': 2.0,
    'centralized_seconds': 1.0,
    'ratio': 2.0,
    'cpu_ratio': float('nan'),
    'samples_per_second': 128.0,
    'peak_memory_mib': 900.0,
    'register_seconds': 1.25,
    **numbers,
  }


def growth(name: str, exponent: float) -> dict[str, object]:
  """Returns the document of a growth with a given power of what grows."""
  axis = workloads.GROWTH[name]
  points = [
    result(
      **{axis.field: x},
      federated_seconds=0.3 * x**exponent,
      centralized_seconds=0.1 * x ** (exponent / 2),
    )
    for x in axis.points
  ]
  return {
    'experiment': 'dcco',
    'growth': name,
    'encoder': 'resnet8',
    **report.slopes(points, axis.field),
    'points': points,
    'cpu_count': 2,
    'cpu_model': 'abacus',
  }


def test_lines_are_aligned_and_say_what_was_measured():
  lines = [
    report.line(result(**numbers))
    for numbers in (
      {'regime': 'D', 'clients': 256, 'population': 256, 'examples_per_client': 1.344},
      {'clients': 5, 'population': 5, 'examples_per_client': 500},
      {'population': 100_000},
    )
  ]
  assert lines[0].split()[:5] == ['dcco', 'D', '256', 'x', '1.344']
  assert lines[1].split()[:4] == ['dcco', '5', 'x', '500']
  assert len({line.index('federated') for line in lines}) == 1
  assert lines[2].endswith('of 100000 clients, registered in 1.25 s')
  assert 'registered' not in lines[0] + lines[1]


def test_the_program_prints_a_line_a_cohort(monkeypatch):
  measured = result(experiment='fedavg', regime='C', clients=512, population=512)
  monkeypatch.setattr(benchmark, '_measure', lambda *_: measured)
  ended = in_process.run(benchmark, '--experiment=fedavg', '--regime=C')
  assert (ended.status, ended.stderr) == (0, '')
  assert ended.stdout == f'{report.line(measured)}\n'


def test_what_is_no_number_is_null_wherever_it_stands():
  text = report.json_text({'a': float('nan'), 'points': [result()]})
  read = json.loads(text, parse_constant=pytest.fail)
  assert read['a'] is read['points'][0]['cpu_ratio'] is None
  assert read['points'][0]['ratio'] == 2.0


def test_slope_is_the_power_of_a_power_law():
  document = growth('clients', exponent=0.7)
  assert document['federated_slope'] == pytest.approx(0.7)
  assert document['centralized_slope'] == pytest.approx(0.35)
  assert report.slopes_line(document, 'clients') == (
    'seconds grow as clients to the power of 0.70 (federated), 0.35 (centralized)'
  )


@pytest.mark.parametrize('name', workloads.GROWTH)
def test_figure_has_both_sides_and_a_guide_of_the_slope_that_is_hoped_for(name):
  axis = workloads.GROWTH[name]
  document = growth(name, exponent=0.7)
  (plot,) = growth_plot.draw(document).axes
  drawn = {line.get_label().split(',')[0]: line.get_xydata() for line in plot.lines}
  for side in ('federated', 'centralized'):
    np.testing.assert_allclose(
      drawn[side], [(p[axis.field], p[f'{side}_seconds']) for p in document['points']]
    )
  guide = np.log(drawn[f'slope {axis.exponent}'])
  slopes = np.diff(guide[:, 1]) / np.diff(guide[:, 0])
  np.testing.assert_allclose(slopes, 0 if name == 'population' else 1, atol=1e-9)
  low, high = plot.get_ylim()
  assert all(low < y < high for line in drawn.values() for y in line[:, 1])


def test_lines_that_do_not_grow_are_not_blown_up():
  (plot,) = growth_plot.draw(growth('population', exponent=0.001)).axes
  low, high = plot.get_ylim()
  assert high / low > 10


def test_figure_replaces_the_file_when_it_is_whole(tmp_path, monkeypatch):
  path = tmp_path / 'growth.png'
  growth_plot.write(growth('clients', exponent=1), path)
  before = path.read_bytes()
  assert before.startswith(b'\x89PNG')

  def fail_half_way(figure, aside, **_):
    aside.write_bytes(b'half')
    raise OSError('no space')

  monkeypatch.setattr(growth_plot.figure_lib.Figure, 'savefig', fail_half_way)
  with pytest.raises(OSError, match='no space'):
    growth_plot.write(growth('clients', exponent=2), path)
  assert path.read_bytes() == before
  assert [file.name for file in tmp_path.iterdir()] == [path.name]
