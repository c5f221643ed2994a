"""The flag without which no machine is contacted and no port opened."""

from absl import flags

TRUSTED = flags.DEFINE_bool(
  'i_trust_this_network',
  False,
  "Allows reaching TFF's workers over the network: they execute whatever anyone sends "
  'them, and nothing is encrypted.',
)
