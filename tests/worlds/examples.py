"""Examples as an evaluation takes them: inputs by field, labels and cases."""

import types

import numpy as np


class Examples(types.SimpleNamespace):
  """Fields of examples, also by `examples[field]`, with `label` and `case`."""

  def __getitem__(self, field):
    return getattr(self, field)


def lit(num_cases, images_per_case, seed, num_classes=3):
  """Returns cases of images whose channel `label` is lit, in no order."""
  random = np.random.default_rng(seed)
  case = random.permutation(np.repeat(np.arange(num_cases), images_per_case))
  label = (case % num_classes).astype(np.int32)
  image = random.integers(0, 40, [len(case), 4, 4, 3])
  image[np.arange(len(case)), :, :, label] += 150
  return Examples(image=image.astype(np.uint8), label=label, case=case)
