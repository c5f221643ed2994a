"""What configurations build is sound, as canaries tell; a clip too large is found."""

import pytest

from binaries.building import aggregation
from tests.binaries import in_process
from tests.runs.privacy import canaries
from tff_ssl.runs.privacy import loss_distributions

_Z, _CLIP, _DELTA = 2.0, 0.5, 1e-5
# Where clients add the noise, a round must have all of them.
_CLIENTS = 60
_CANARIES = canaries.Canaries(_CLIENTS, rounds=4, dimension=2048)


@pytest.mark.long
@pytest.mark.parametrize('too_large', [1, 100])
@pytest.mark.parametrize('kind', ['private', 'distributed'])
def test_canaries_find_only_a_clip_that_is_too_large(tff_context, kind, too_large):
  # The noise is the same: its multiplier is over the clip norm.
  config = in_process.checked(
    'dcco',
    f'--aggregation={kind}:noise_multiplier={_Z / too_large},delta={_DELTA},'
    f'update_clip={_CLIP * too_large},statistics_clip=1 '
    f'--clients_per_round={_CLIENTS}',
  )
  built = aggregation.build(config, [1] * 100)
  found = canaries.audit(built, _Z, _CLIP, _DELTA, _CANARIES)
  assert found.claimed == loss_distributions.gaussian_epsilon(1 / _Z, _DELTA)
  assert found.is_broken == (too_large > 1), found
