"""DINO: the student's distribution over prototypes is drawn to the teacher's.

Mathilde Caron, Hugo Touvron, Ishan Misra, Herve Jegou, Julien Mairal, Piotr Bojanowski,
Armand Joulin. Emerging Properties in Self-Supervised Vision Transformers. ICCV 2021.
"""

from collections.abc import Sequence

import tensorflow as tf

_CENTRE_MOMENTUM = 0.9


def cross_entropy(
  teacher: Sequence[tf.Tensor],
  student: Sequence[tf.Tensor],
  centre: tf.Tensor,
  teacher_temperature: float | tf.Tensor,
  student_temperature: float,
) -> tf.Tensor:
  """Returns the mean cross-entropy over all pairs of different views.

      -sum_k P_t[k] log P_s[k],   P_t = softmax((t - centre) / teacher_temperature)
                                  P_s = softmax(s / student_temperature)

  The centre keeps one prototype from taking all examples. The teacher's low temperature
  keeps P_t from becoming uniform. No gradient flows into P_t.

  Args:
    teacher: Logits of the global views, each floating [n, K].
    student: Logits of all views, the same global views first, each [n, K].
    centre: [K].
    teacher_temperature: Above 0.
    student_temperature: Above 0.

  Returns:
    A scalar, 0 where n = 0.

  Raises:
    ValueError: If there is no pair of different views.

  Source: Eq. 1 and 3, and Algorithm 1.
  """
  if not teacher or len(student) < max(2, len(teacher)):
    raise ValueError(
      f'The teacher has {len(teacher)} views and the student {len(student)}; the '
      'teacher needs at least 1 and the student at least 2, including all of the '
      "teacher's."
    )
  if tf.is_tensor(teacher_temperature):
    teacher_temperature = tf.cast(teacher_temperature, teacher[0].dtype)
  targets = [
    tf.stop_gradient(tf.nn.softmax((logits - centre) / teacher_temperature))
    for logits in teacher
  ]
  predicted = [tf.nn.log_softmax(logits / student_temperature) for logits in student]
  pairs = [
    -tf.reduce_sum(target * log_probability, axis=1)
    for i, target in enumerate(targets)
    for j, log_probability in enumerate(predicted)
    if i != j
  ]
  mean = tf.add_n(pairs) / len(pairs)
  return tf.math.divide_no_nan(
    tf.reduce_sum(mean), tf.cast(tf.shape(mean)[0], mean.dtype)
  )


def next_centre(centre: tf.Tensor, teacher: Sequence[tf.Tensor]) -> tf.Tensor:
  """Returns 0.9 * centre + 0.1 * mean of the teacher's logits (Eq. 4).

  The momentum is that of the authors' program.

  Args:
    centre: [K].
    teacher: Logits of the global views, each [n, K]; no gradient flows into them.
  """
  logits = tf.stop_gradient(tf.concat(teacher, axis=0))
  count = tf.cast(tf.shape(logits)[0], logits.dtype)
  mean = tf.math.divide_no_nan(tf.reduce_sum(logits, axis=0), count)
  return _CENTRE_MOMENTUM * centre + (1.0 - _CENTRE_MOMENTUM) * mean
