"""The README's example runs as it stands; commands, and links of all pages, exist."""

import pathlib
import re

from tests import quick
from tff_ssl.execution import contexts

_ROOT = pathlib.Path(__file__).parents[1]
_README = (_ROOT / 'README.md').read_text()


# Appended to the blocks of the README and of docs/embedding.md.
_CHECKS = """
assert features.shape == (64, encoder.output_dim)
assert 0 <= accuracy <= 1 and predicted.shape == (32,)
np.testing.assert_allclose(mean['statistics'], images.mean((0, 1, 2)), rtol=1e-5)
assert mean['num_examples'] == 64
weight = tff.TensorType(np.float32)
for chosen in (secure, private, distributed):
  process = chosen.statistics.create(tff.TensorType(np.float32, [3]), weight)
  with contexts.in_process():
    output = process.next(process.initialize(), means, sizes)
  # Secure sums are of n_k times means, clipped; the others have noise.
  total = sum(np.clip(4 * mean, -64, 64) for mean in means)
  if chosen is secure:
    np.testing.assert_allclose(output.result['statistics'], total / 64, rtol=1e-5)
  assert output.result['num_examples'] == 64
own = with_ids(anonymous)
numbered = [
  int(example['example_id'])
  for name in strangers.ids
  for example in own.create_tf_dataset_for_client(name)
]
assert numbered == [2**20 * k + j for k in range(16) for j in range(4)]
import tensorflow as tf
reloaded = tf.keras.models.load_model('encoder.keras', compile=False)
np.testing.assert_allclose(
  reloaded(images / np.float32(255)), features, rtol=1e-4, atol=1e-4
)
"""


def test_blocks_of_readme_and_embedding_run(tmp_path, monkeypatch, capsys):
  blocks = [re.search(r'```python\n(import numpy.*?)```', _README, re.DOTALL).group(1)]
  page = (_ROOT / 'docs' / 'embedding.md').read_text(encoding='utf-8')
  blocks += re.findall(r'^```python\n(.*?)^```', page, re.MULTILINE | re.DOTALL)
  assert len(blocks) == 7
  # A notebook that trains DCCO has graphs optimized, which takes as long again here.
  for name, opened in quick.contexts().items():
    monkeypatch.setattr(contexts, name, opened)
  monkeypatch.chdir(tmp_path)
  program = compile('\n'.join([*blocks, _CHECKS]), 'README.md', 'exec')
  exec(program, {'__name__': '__main__'})
  *printed, counted, clip, colour = capsys.readouterr().out.splitlines()
  losses = [float(line) for line in printed]
  # 128 dimensions of independent noise: C is near 0, so the loss is above 128 / 2.
  assert len(losses) == 3
  assert all(64 < loss < 10_000 for loss in losses)
  assert (counted, clip) == ('64', '1.0')
  assert colour.endswith('64.0')


def test_programs_that_are_named_exist():
  named = {
    name
    for page in _pages()
    for name in re.findall(r'python -m ((?:binaries|docs)\.[a-z_]+)', page.read_text())
  }
  assert {'binaries.dcco', 'binaries.evaluate', 'docs.bench'} <= named
  for name in named:
    path = _ROOT / name.replace('.', '/')
    assert path.with_suffix('.py').is_file() or (path / '__main__.py').is_file(), name


def test_make_verbs_that_are_named_exist():
  makefile = (_ROOT / 'Makefile').read_text()
  for page in _pages():
    for verb in set(re.findall(r'`make ([a-z-]+)\b', page.read_text())):
      assert re.search(rf'^{verb}:', makefile, re.MULTILINE), (page.name, verb)
  for verb in set(re.findall(r'^\$ make ([a-z-]+)$', _README, re.MULTILINE)):
    assert re.search(rf'^{verb}:', makefile, re.MULTILINE), verb


def test_the_readme_is_short():
  assert len(_README.splitlines()) <= 125


def test_links_to_files_exist():
  pages = _pages()
  assert len(pages) > 2
  for page in pages:
    for target in re.findall(r'\]\(([^)#:]+)\)', page.read_text()):
      assert (page.parent / target).exists(), (page.name, target)


def _pages():
  names = 'README.md', 'CONTRIBUTING.md', 'SECURITY.md'
  return [*(_ROOT / name for name in names), *_ROOT.glob('docs/*.md')]
