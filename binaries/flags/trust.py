"""The flag without which no other machine is spoken to, and no port opened."""

from absl import flags

TRUSTED = flags.DEFINE_bool(
  'i_trust_this_network',
  False,
  "Allows TFF's workers to be reached over the network: they execute what anyone sends "
  'them, and nothing is encrypted.',
)
