import pytest

from tff_ssl.computing import processor


@pytest.mark.parametrize(
  ('text', 'expected'),
  [
    ('flags\t\t: fpu avx512_bf16 amx_bf16 amx_tile\n', 'AMX'),
    ('model name\t: x\nflags\t\t: fpu avx512_bf16\nflags\t\t: fpu\n', 'AVX512-BF16'),
    ('flags\t\t: fpu avx2 no_amx_bf16\n', 'none'),
    # As of a processor of another kind.
    ('Features\t: fp asimd bf16\n', 'unknown'),
  ],
)
def test_units_are_the_best_that_linux_names(tmp_path, text, expected):
  (tmp_path / 'cpuinfo').write_text(text)
  assert processor.bfloat16_units(tmp_path / 'cpuinfo') == expected


def test_the_name_is_that_of_the_first_core(tmp_path):
  (tmp_path / 'cpuinfo').write_text(
    'cpu family: 25\nmodel name\t: A: 1\nmodel name: B\n'
  )
  assert processor.model(tmp_path / 'cpuinfo') == 'A: 1'


def test_without_linux_nothing_is_known(tmp_path):
  assert processor.bfloat16_units(tmp_path / 'cpuinfo') == 'unknown'
  assert processor.model(tmp_path / 'cpuinfo') == ''
