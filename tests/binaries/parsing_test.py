"""What a malformed command line is told, in one sentence."""

from absl import flags
import pytest

from binaries import dcco
from binaries import fedema  # noqa: F401
from binaries.flags import parsing
from tests.binaries import in_process


@pytest.mark.parametrize(
  ('flag', 'said'),
  [
    ('--roundz=3', 'There is no flag --roundz; did you mean --rounds?'),
    ('--nobaseline', 'There is no flag --nobaseline; did you mean --baselines?'),
    ('--qqq', 'There is no flag --qqq; --help lists all flags.'),
    ('--rounds=many', '--rounds=many: it must be a whole number of at least 1.'),
    ('--rounds=0', '--rounds=0: it must be a whole number of at least 1.'),
    ('--seed=-1', f'--seed=-1: it must be a whole number between 0 and {2**63 - 1}.'),
    ('--encoder_width=wide', '--encoder_width=wide: it must be a number.'),
    ('--encoder_norm=x', '--encoder_norm=x: it must be one of group, batch.'),
    ('--download=perhaps', '--download=perhaps: it must be true or false.'),
    ('--nodownload=1', '--nodownload=1 does not take an argument.'),
    ('--rounds', '--rounds has no value; it must be given as --rounds=VALUE.'),
    ('--run_dir=~nobody_x/y', '--run_dir=~nobody_x/y: ~nobody_x is not a home folder'),
  ],
)
def test_a_malformed_flag_is_one_sentence(flag, said):
  ended = in_process.run(dcco, flag)
  assert ended.status == 1
  assert ended.stderr.startswith(f'Error: {said}')
  assert ended.stderr.count('\n') == 1


def test_only_flags_that_a_program_offers_are_suggested():
  error = flags.UnrecognizedFlagError('tauu')
  assert parsing.sentence(error, ['tau', 'task']).endswith('did you mean --tau?')
  assert '--tau' not in parsing.sentence(error, ['rounds', 'task']).partition(';')[2]
