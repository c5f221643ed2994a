"""The page of a run is there while the run goes on."""

from binaries import dcco
from tests.binaries import in_process
from tests.binaries import launch
from tff_ssl.reporting import run_page


def test_page_is_written_at_each_evaluation_and_shows_examples_at_the_end(
  tmp_path, monkeypatch
):
  written, build = [], run_page.build

  def recorded(run, read, advised, pictures):
    written.append((run.state, pictures is not None))
    return build(run, read, advised, pictures)

  monkeypatch.setattr(run_page, 'build', recorded)
  flags = '--rounds=4', '--evaluation=every=2,methods=knn,knn_every=0'
  ended = in_process.run(dcco, *launch.SMALL, *flags, f'--run_dir={tmp_path / "run"}')
  assert ended.status == 0, ended.stderr
  assert written == [
    ('unfinished, round 2 of 4', False),
    ('finished, 4 rounds', True),
  ]
  assert 'http-equiv' not in (tmp_path / 'run' / 'page.html').read_text()
