"""What TensorFlow traces of a training step."""

import tensorflow as tf


def operations(net, params, x):
  """Returns the operations of a gradient of all that a network returns."""

  @tf.function(autograph=False)
  def step(params, x):
    with tf.GradientTape() as tape:
      tape.watch(params)
      loss = tf.reduce_sum(net.apply(params, x))
    return tape.gradient(loss, params)

  return step.get_concrete_function(params, x).graph.get_operations()
