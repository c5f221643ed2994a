import pytest

from tff_ssl.reporting import look


@pytest.mark.parametrize('name', ['$no formula', r'$\bad$', r'\$5', '_hidden', 'a_b'])
def test_a_name_is_drawn_and_in_the_legend_as_it_is(tmp_path, name):
  figure = look.new(3, 2)
  plot = figure.add_subplot()
  plot.plot([0, 1], [0, 1], label=look.plain(name))
  plot.set_xticks([0, 1], [look.plain(name)] * 2)
  (shown,) = plot.legend().get_texts()
  # Matplotlib draws an escaped dollar as one.
  assert shown.get_text().strip('\u200b').replace(r'\$', '$') == name
  look.title(figure, name, name)
  # A name that is read as a formula can be an error here.
  look.save(figure, tmp_path / 'figure.png')
  assert (tmp_path / 'figure.png').stat().st_size
