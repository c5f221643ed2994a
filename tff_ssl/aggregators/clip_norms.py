"""The clip norms of an aggregation that adds noise: numbers, or norms that adapt."""

from collections.abc import Mapping

from tff_ssl.aggregators import adaptive_clipping
from tff_ssl.aggregators import bounds
from tff_ssl.aggregators import noise_split

# A fixed norm, or how one adapts.
Clip = float | adaptive_clipping.AdaptiveClip
_Adaptive = Mapping[str, adaptive_clipping.AdaptiveClip]


def divided(
  update: Clip, statistics: Clip, metrics: Clip | None
) -> tuple[dict[str, adaptive_clipping.AdaptiveClip], dict[str, float]]:
  """Returns the norms that adapt, and those to which sums clip, by what they clip.

  What is clipped to a norm that adapts is divided by it before it is summed.

  Args:
    update: Of updates.
    statistics: Of statistics.
    metrics: Of metrics; None: they do not leave clients.
  """
  given = {noise_split.UPDATE: update, noise_split.STATISTICS: statistics}
  if metrics is not None:
    given[noise_split.METRICS] = metrics
  adaptive: dict[str, adaptive_clipping.AdaptiveClip] = {}
  norms: dict[str, float] = {}
  for name, clip in given.items():
    if isinstance(clip, adaptive_clipping.AdaptiveClip):
      adaptive[name], norms[name] = clip, 1.0
    else:
      norms[name] = clip
  if adaptive:
    norms[noise_split.WITHIN] = adaptive_clipping.HALF
  return adaptive, norms


def multipliers(
  given: float | Mapping[str, float], adaptive: _Adaptive, norms: Mapping[str, float]
) -> dict[str, float]:
  """Returns the noise multipliers of releases, by what is clipped.

  Args:
    given: Of each release, but of counts of clients within a norm; or of all, by what
      is clipped.
    adaptive: As of `divided`.
    norms: As of `divided`.

  Raises:
    ValueError: If a number is out of range (`bounds`).
  """
  clips = {f'{name}_clip': norm for name, norm in norms.items()}
  if not isinstance(given, Mapping):
    bounds.check_noise(given, **clips)
    given = dict.fromkeys(norms, given) | of_counts(adaptive, given)
  for each in given.values():
    bounds.check_noise(each, **clips)
  return dict(given)


def of_counts(adaptive: _Adaptive, noise_multiplier: float) -> dict[str, float]:
  """Returns the noise multiplier of each count of clients within a norm, by its name.

  Args:
    adaptive: As of `divided`; if it is empty, so is what is returned.
    noise_multiplier: z, of all releases of a round together.
  """
  found = [clip.of_count(noise_multiplier) for clip in adaptive.values()]
  return {noise_split.WITHIN: max(found)} if found else {}
