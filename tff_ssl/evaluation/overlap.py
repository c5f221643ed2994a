"""Intersection over union of predicted and true masks and boxes.

Everingham et al., "The PASCAL Visual Object Classes (VOC) Challenge", IJCV 2010,
Section 4.2: intersection over union (IoU), and an object counts as found where the IoU
of its box is at least one half.

A box is (left, top, right, bottom) as shares of width and height, at the edges of
pixels, not their middles: the box of a full image is (0, 0, 1, 1).
"""

import numpy as np

# The least IoU at which something counts as found.
FOUND = 0.5


def mask_iou(predicted: np.ndarray, true: np.ndarray) -> np.ndarray:
  """Intersection over union of each pair of masks.

  Args:
    predicted: bool [n, height, width].
    true: Likewise.

  Returns:
    float64 [n] in [0, 1]; 1 where both masks are empty.

  Raises:
    ValueError: Shapes differ, or are not of masks.
  """
  predicted, true = np.asarray(predicted, bool), np.asarray(true, bool)
  if predicted.shape != true.shape or predicted.ndim != 3:
    raise ValueError(
      f'Masks are {list(predicted.shape)} and {list(true.shape)}; both must be '
      '[n, height, width].'
    )
  both = np.sum(predicted & true, axis=(1, 2))
  either = np.sum(predicted | true, axis=(1, 2))
  return np.where(either > 0, both / np.maximum(either, 1), 1.0)


def boxes_of(masks: np.ndarray) -> np.ndarray:
  """The smallest box around all pixels of each mask.

  Args:
    masks: bool [n, height, width]; none may be empty.

  Returns:
    float32 [n, 4].

  Raises:
    ValueError: A mask is empty.
  """
  masks = np.asarray(masks, bool)
  _, height, width = masks.shape
  columns, rows = np.any(masks, axis=1), np.any(masks, axis=2)
  empty = np.flatnonzero(~np.any(rows, axis=1))
  if empty.size:
    raise ValueError(f'Mask {empty[0]} is empty; an empty mask has no box.')
  left, top = np.argmax(columns, axis=1), np.argmax(rows, axis=1)
  right = width - np.argmax(columns[:, ::-1], axis=1)
  bottom = height - np.argmax(rows[:, ::-1], axis=1)
  return np.stack(
    [left / width, top / height, right / width, bottom / height], axis=1
  ).astype(np.float32)


def box_iou(predicted: np.ndarray, true: np.ndarray) -> np.ndarray:
  """Intersection over union of each pair of boxes.

  Args:
    predicted: [n, 4]; a box whose right is not beyond its left has no area.
    true: Likewise.

  Returns:
    float64 [n] in [0, 1]; 0 where neither has an area.

  Raises:
    ValueError: Shapes differ, or are not of boxes.
  """
  predicted, true = np.asarray(predicted, np.float64), np.asarray(true, np.float64)
  if predicted.shape != true.shape or predicted.shape[1:] != (4,):
    raise ValueError(
      f'Boxes are {list(predicted.shape)} and {list(true.shape)}; both must be [n, 4].'
    )
  low = np.maximum(predicted[:, :2], true[:, :2])
  high = np.minimum(predicted[:, 2:], true[:, 2:])
  shared = np.prod(np.maximum(high - low, 0), axis=1)
  areas = [
    np.prod(np.maximum(box[:, 2:] - box[:, :2], 0), axis=1) for box in (predicted, true)
  ]
  total = areas[0] + areas[1] - shared
  return np.where(total > 0, shared / np.where(total > 0, total, 1.0), 0.0)
