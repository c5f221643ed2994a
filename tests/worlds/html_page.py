"""What is on a page of HTML, by Python's own parser."""

import html.parser

_VOID = {'meta', 'img'}
# Attributes that make a browser load something.
_LOADING = {'src', 'href', 'srcset', 'data', 'action', 'poster', 'background'}


class Page(html.parser.HTMLParser):
  """The elements, attributes and texts of a page whose tags are balanced."""

  def __init__(self, text: str):
    super().__init__(convert_charrefs=True)
    self.open, self.tags, self.attributes, self.cells = [], [], [], []
    self.feed(text)
    self.close()
    assert not self.open

  @property
  def loaded(self):
    return [value for name, value in self.attributes if name in _LOADING]

  def handle_starttag(self, tag, attrs):
    self.tags.append(tag)
    self.attributes += attrs
    if tag not in _VOID:
      self.open.append(tag)
    if tag in ('td', 'th', 'li', 'pre', 'title', 'style'):
      self.cells.append((tag, ''))

  def handle_endtag(self, tag):
    assert self.open.pop() == tag

  def handle_data(self, data):
    if self.open and self.cells and self.open[-1] == self.cells[-1][0]:
      self.cells[-1] = (self.open[-1], self.cells[-1][1] + data)

  def texts(self, *tags):
    return [text for tag, text in self.cells if tag in tags]
