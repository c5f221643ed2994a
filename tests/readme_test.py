"""The README's example runs as it stands; commands, and links of all pages, exist."""

import pathlib
import re

_ROOT = pathlib.Path(__file__).parents[1]
_README = (_ROOT / 'README.md').read_text()


def test_the_python_example_of_a_process_trains(capsys):
  example = re.search(r'```python\n(import numpy.*?)```', _README, re.DOTALL).group(1)
  exec(compile(example, 'README.md', 'exec'), {'__name__': '__main__'})
  losses = [float(line) for line in capsys.readouterr().out.split()]
  # 128 dimensions of independent noise: C is near 0, so the loss is above 128 / 2.
  assert len(losses) == 3
  assert all(64 < loss < 10_000 for loss in losses)


def test_binaries_that_are_named_exist():
  named = {
    name
    for page in _pages()
    for name in re.findall(r'python -m (binaries\.[a-z_]+)', page.read_text())
  }
  assert {'binaries.dcco', 'binaries.evaluate', 'binaries.benchmark'} <= named
  for name in named:
    assert (_ROOT / f'{name.replace(".", "/")}.py').is_file(), name


def test_make_verbs_that_are_named_exist():
  makefile = (_ROOT / 'Makefile').read_text()
  for page in _pages():
    for verb in set(re.findall(r'`make ([a-z-]+)\b', page.read_text())):
      assert re.search(rf'^{verb}:', makefile, re.MULTILINE), (page.name, verb)
  for verb in set(re.findall(r'^\$ make ([a-z-]+)$', _README, re.MULTILINE)):
    assert re.search(rf'^{verb}:', makefile, re.MULTILINE), verb


def test_the_readme_is_short():
  assert len(_README.splitlines()) <= 150


def test_links_to_files_exist():
  pages = _pages()
  assert len(pages) > 2
  for page in pages:
    for target in re.findall(r'\]\(([^)#:]+)\)', page.read_text()):
      assert (page.parent / target).exists(), (page.name, target)


def _pages():
  names = 'README.md', 'CONTRIBUTING.md', 'SECURITY.md'
  return [*(_ROOT / name for name in names), *_ROOT.glob('docs/*.md')]
