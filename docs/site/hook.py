"""MkDocs' hook: pages that are made of sources, and links of all pages.

The site has the pages of docs, those of the root (README and others), the notebooks,
the page of methods and the reference. All are made when the site is built.
"""

import pathlib
from typing import Any

from mkdocs import exceptions
from mkdocs.structure import files as files_lib

from binaries.documenting import links
from binaries.documenting import methods
from binaries.documenting import notebooks
from binaries.documenting import reference
from docs.claims import page as claims_page

_ROOT = pathlib.Path(__file__).resolve().parents[2]


def on_config(config: Any) -> Any:
  """Fills the part of the navigation that is called Reference."""
  for part in config.nav:
    if 'Reference' in part:
      part['Reference'] = reference.navigation(_ROOT)
  return config


def on_files(files: Any, config: Any) -> Any:
  """Adds the pages that do not lie in docs."""

  def add(place: str, text: str) -> None:
    shown = files_lib.InclusionLevel.INCLUDED
    if place.startswith(f'{links.SOURCES}/'):
      shown = files_lib.InclusionLevel.NOT_IN_NAV
    files.append(files_lib.File.generated(config, place, content=text, inclusion=shown))

  for place, source in links.ROOT_PAGES.items():
    add(place, _rewritten(place, _read(source), add, files))
  for path in sorted((_ROOT / links.DOCS / links.NOTEBOOKS).glob('*.py')):
    source = path.read_text(encoding='utf-8')
    place = f'{links.NOTEBOOKS}/{path.stem}'
    add(f'{place}.ipynb', notebooks.to_ipynb(source))
    page = f'{place}.md'
    text = _rewritten(page, notebooks.to_markdown(source), add, files)
    title, _, rest = text.partition('\n')
    add(page, f'{title}\n\n[Download as a Jupyter notebook]({path.stem}.ipynb)\n{rest}')
  for made in (methods.page(_ROOT), *reference.pages(_ROOT)):
    add(made.place, made.text)
  for file in list(files.documentation_pages()):
    if file.generated_by is None:
      # In the repository it is the short one.
      if file.src_uri == 'claims.md':
        file.content_string = claims_page.markdown()
      text = _rewritten(file.src_uri, file.content_string, add, files)
      file.content_string = text
  return files


def _rewritten(place: str, text: str, add: Any, files: Any) -> str:
  """Returns a page's text with the links of the site; adds what they lead to."""

  def needed(file: str) -> None:
    place = links.place_of(file)
    if files.get_file_from_path(place) is None:
      content = _read(file)
      if file.endswith('.py'):
        content = f'# `{file}`\n\n```python\n{content}```\n'
      add(place, content)

  try:
    return links.rewrite(text, place, _ROOT, needed)
  except ValueError as error:
    raise exceptions.PluginError(str(error)) from error


def _read(source: str) -> str:
  return (_ROOT / source).read_text(encoding='utf-8')
