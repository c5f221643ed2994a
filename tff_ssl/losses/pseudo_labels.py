"""Losses that take a network's own predictions as labels.

FixMatch: Kihyuk Sohn, David Berthelot, Chun-Liang Li, Zizhao Zhang, Nicholas Carlini,
Ekin D. Cubuk, Alex Kurakin, Han Zhang, Colin Raffel. FixMatch: Simplifying
Semi-Supervised Learning with Consistency and Confidence. NeurIPS 2020.

FedMatch: Wonyong Jeong, Jaehong Yoon, Eunho Yang, Sung Ju Hwang. Federated
Semi-Supervised Learning with Inter-Client Consistency and Disjoint Learning. ICLR 2021.
"""

import tensorflow as tf


def confident(logits: tf.Tensor, threshold: float) -> tf.Tensor:
  """Which predictions are confident: 1 where the largest probability is high enough.

  Args:
    logits: [n, classes].
    threshold: tau, in [0, 1].

  Returns:
    [n] of 0 and 1, in the dtype of the logits; NaN where a logit is NaN, which must not
    pass for an unsure prediction.
  """
  largest = tf.reduce_max(tf.nn.softmax(logits), axis=1)
  reached = tf.cast(largest >= tf.cast(threshold, logits.dtype), logits.dtype)
  return tf.where(tf.math.is_nan(largest), largest, reached)


def fixmatch(
  weak_logits: tf.Tensor, strong_logits: tf.Tensor, threshold: float
) -> tf.Tensor:
  """Cross-entropy of strong views with the confident classes of weak ones.

  (1/n) sum_b 1(max q_b >= tau) H(argmax q_b, p_b), with q the weak views' predictions,
  a constant, and p the strong views'. Examples that are not confident count in n.

  Args:
    weak_logits: [n, classes]; n may be 0.
    strong_logits: [n, classes], of the same examples.
    threshold: tau, in [0, 1]; 0 takes all examples.

  Returns:
    Scalar, at least 0; 0 for n = 0.

  Source: Sohn et al. 2020, Eq. 4; FedSup, Eq. 3.2.
  """
  weak_logits = tf.stop_gradient(weak_logits)
  entropy = tf.nn.sparse_softmax_cross_entropy_with_logits(
    tf.argmax(weak_logits, axis=1), strong_logits
  )
  return masked_mean(entropy, confident(weak_logits, threshold))


def agreed_labels(own_logits: tf.Tensor, helpers_logits: tf.Tensor) -> tf.Tensor:
  """The class that most of a network and its helpers predict.

  Args:
    own_logits: [n, classes].
    helpers_logits: [H, n, classes]; H may be 0.

  Returns:
    int64 [n]; the lowest class where several have the most votes.

  Source: Jeong et al. 2021, Eq. 3, "agreement-based pseudo-labeling".
  """
  classes = own_logits.shape[-1]
  votes = tf.one_hot(tf.argmax(own_logits, axis=-1), classes)
  votes += tf.reduce_sum(
    tf.one_hot(tf.argmax(helpers_logits, axis=-1), classes), axis=0
  )
  return tf.argmax(votes, axis=-1)


def divergences(helpers_logits: tf.Tensor, logits: tf.Tensor) -> tf.Tensor:
  """Mean over helpers of KL(helper || network), for each example.

  Args:
    helpers_logits: [H, n, classes], constants; H may be 0.
    logits: [n, classes].

  Returns:
    [n], at least 0; 0 without a helper.

  Source: Jeong et al. 2021, Eq. 2, inter-client consistency.
  """
  helpers_logits = tf.stop_gradient(helpers_logits)
  log_helpers = tf.nn.log_softmax(helpers_logits)
  difference = log_helpers - tf.nn.log_softmax(logits)[tf.newaxis]
  each = tf.reduce_sum(tf.exp(log_helpers) * difference, axis=-1)
  count = tf.cast(tf.shape(helpers_logits)[0], logits.dtype)
  return tf.math.divide_no_nan(tf.reduce_sum(each, axis=0), count)


def masked_mean(values: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
  """Returns (1/n) sum_b mask_b values_b, 0 for n = 0.

  Args:
    values: [n]; where the mask is 0 they may be anything, NaN too.
    mask: [n] of 0 and 1; NaN makes the mean NaN.
  """
  counted = tf.where(mask > 0, values, tf.zeros_like(values))
  counted = tf.where(tf.math.is_nan(mask), mask, counted)
  count = tf.cast(tf.shape(values)[0], values.dtype)
  return tf.math.divide_no_nan(tf.reduce_sum(counted), count)
