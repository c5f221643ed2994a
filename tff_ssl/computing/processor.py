"""What this machine's processor is good at, as Linux tells it."""

import pathlib

# What computes products of bfloat16, by the flag that Linux has for it; best first.
_UNITS = {'amx_bf16': 'AMX', 'avx512_bf16': 'AVX512-BF16'}
NO_UNITS, UNKNOWN = 'none', 'unknown'


def bfloat16_units(cpuinfo: pathlib.Path = pathlib.Path('/proc/cpuinfo')) -> str:
  """Returns what the processor has for products of bfloat16.

  Args:
    cpuinfo: Linux's description of the processor.

  Returns:
    AMX (matrices), AVX512-BF16 (vectors), or none; unknown if the description has no
    flags, or there is none.
  """
  lines = cpuinfo.read_text(encoding='utf-8').splitlines() if cpuinfo.is_file() else []
  flags = next((text.split() for text in lines if text.startswith('flags')), None)
  if flags is None:
    return UNKNOWN
  return next((unit for flag, unit in _UNITS.items() if flag in flags), NO_UNITS)
