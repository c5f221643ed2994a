"""What this machine's processor is good at, as Linux tells it."""

import pathlib

_CPUINFO = pathlib.Path('/proc/cpuinfo')
# What computes products of bfloat16, by the flag that Linux has for it; best first.
_UNITS = {'amx_bf16': 'AMX', 'avx512_bf16': 'AVX512-BF16'}
NO_UNITS, UNKNOWN = 'none', 'unknown'


def bfloat16_units(cpuinfo: pathlib.Path = _CPUINFO) -> str:
  """Names the processor's instructions for products of bfloat16.

  Args:
    cpuinfo: Linux's description of the processor.

  Returns:
    AMX (matrices), AVX512-BF16 (vectors), or none; unknown if the description has no
    flags, or there is none.
  """
  if (flags := _described('flags', cpuinfo)) is None:
    return UNKNOWN
  known = flags.split()
  return next((unit for flag, unit in _UNITS.items() if flag in known), NO_UNITS)


def model(cpuinfo: pathlib.Path = _CPUINFO) -> str:
  """Returns the processor's name, such as 'AMD EPYC'; '' if it is not known.

  Args:
    cpuinfo: See `bfloat16_units`.
  """
  return _described('model name', cpuinfo) or ''


def _described(what: str, cpuinfo: pathlib.Path) -> str | None:
  """Returns what the description says of the first core; None: nothing."""
  lines = cpuinfo.read_text(encoding='utf-8').splitlines() if cpuinfo.is_file() else []
  found = (text.partition(':')[2].strip() for text in lines if text.startswith(what))
  return next(found, None)
