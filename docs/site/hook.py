"""What MkDocs calls: pages that are made of other files, and the links of all pages."""

from typing import Any

import griffe
import jupytext
from mkdocs import exceptions
from mkdocs.structure import files as files_lib

from docs.claims import page as claims_page
from docs.site import layout
from docs.site import pages


class Layout(griffe.Extension):
  """Lays out each docstring by `layout.to_markdown`."""

  def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
    """Changes the docstring of a module, class, function or attribute."""
    if obj.docstring is not None:
      obj.docstring.value = layout.to_markdown(obj.docstring.value)


def on_files(files: Any, config: Any) -> None:
  """Adds pages of files outside docs, notebooks and tables; changes links."""

  def add(place: str, text: str) -> None:
    if files.get_file_from_path(place) is None:
      files.append(files_lib.File.generated(config, place, content=text))

  def linked(file: str, text: str = '') -> str:
    try:
      text, sources = pages.with_links(text or _read(file), file)
    except ValueError as error:
      raise exceptions.PluginError(str(error)) from error
    for source in sorted(sources):
      code = _read(source)
      if source.endswith('.py'):
        code = f'# `{source}`\n\n```python\n{code}```\n'
      add(pages.place_of(source), code)
    return text

  for page in list(files.documentation_pages()):
    if page.generated_by is None:
      # In the repository the page of claims is a short one.
      text = claims_page.text(full=True) if page.src_uri == 'claims.md' else ''
      page.content_string = linked(f'docs/{page.src_uri}', text)
  methods = files.get_file_from_path('methods.md')
  for package in ('algorithms', 'objectives'):
    table = pages.methods_table(package)
    methods.content_string += f'\n## {package.title()}\n\n{table}\n'
  for source, place in pages.ROOT_PAGES.items():
    add(place, linked(source))
  for path in sorted(pages.ROOT.glob('docs/notebooks/*.py')):
    book = jupytext.read(path)
    book.metadata['kernelspec'] = {'name': 'python3', 'display_name': 'Python 3'}
    add(f'notebooks/{path.stem}.ipynb', jupytext.writes(book, 'ipynb'))
    book.metadata['jupytext']['cell_metadata_filter'] = '-all'
    text = linked(f'docs/notebooks/{path.name}', jupytext.writes(book, 'md'))
    title, _, rest = text.partition('\n')
    download = f'[Download as a Jupyter notebook]({path.stem}.ipynb)'
    add(f'notebooks/{path.stem}.md', f'{title}\n\n{download}\n{rest}')


def _read(file: str) -> str:
  return (pages.ROOT / file).read_text(encoding='utf-8')
