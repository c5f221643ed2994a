"""Flags for evaluating clients' own encoders, for methods whose clients have any."""

from absl import flags

from tff_ssl.evaluation import personal_encoders

_AFTERWARDS = tuple(
  m for m in personal_encoders.METHODS if m not in personal_encoders.KNN
)
METHODS = flags.DEFINE_list(
  'personal_methods',
  None,
  "How clients' own encoders are evaluated after the last round, in addition to kNN: "
  f'some of {", ".join(_AFTERWARDS)}; if empty, they are not.',
)
CLIENTS = flags.DEFINE_integer(
  'personal_clients',
  None,
  'Clients to evaluate, drawn at random; by default all that have test examples.',
  lower_bound=1,
)
EXPORT = flags.DEFINE_list(
  'export_clients', [], 'Clients whose encoders are written to RUN_DIR/clients.'
)
NAMES = (METHODS.name, CLIENTS.name, EXPORT.name)
# Flags that may change when a run is resumed, because they do not change its numbers.
MAY_DIFFER = (METHODS.name, EXPORT.name)


def check() -> None:
  """Checks the flags, without data.

  Raises:
    ValueError: If one is out of range.
  """
  for method in METHODS.value:
    if method not in _AFTERWARDS:
      raise ValueError(
        f'personal_methods has {method!r}; it must be one of {", ".join(_AFTERWARDS)}.'
      )


def is_asked_for() -> bool:
  """Returns whether a flag asks for clients' own encoders if no default does."""
  return bool(METHODS.value or EXPORT.value or CLIENTS.value)
