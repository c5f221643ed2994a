r"""Measures a federated round against a centralized step on the same examples.

  python -m docs.bench --experiment=fedavg --regime=B
  python -m docs.bench --experiment=dcco --clients=64 --examples_per_client=4
  python -m docs.bench --experiment=dcco --clients=8,32,128 --rounds=5

Both sides have the same network, objective, augmentation, seed and way of reading
random images. They take turns for `--rounds` rounds after a warm-up, and medians are
reported. `cpu_ratio` divides the CPU seconds of driver and worker by the CPU seconds of
the centralized step. Unlike `ratio`, which compares wall times, it hardly depends on
what else the machine runs. By passes through the network alone it would be 4/3 for
DCCO, whose clients encode twice, and 1 for the others: `fedema`, `per_ssfl` and
`featarc` are measured against the same rounds in memory, one client after another.
Images in chunks that stay in the cache can make it less.

`--regime` sets the cohort: A, 128 clients of 4 examples; B, 5 of 500, which train in
batches of 50; C, 512 of 1; D, 256 cases of 1 to 6. Otherwise `--clients`,
`--examples_per_client` and `--population` do; of one of them several values may be
given, and the powers with which the seconds grow are printed.

`--experiment=precision` measures the centralized step with the encoder in bfloat16
against the step in float32. `--encoder=precision=bfloat16` measures other experiments
in bfloat16. `--runtime=worker` measures rounds in TFF's worker.

`--format=json` prints a single JSON object with all numbers and the machine;
`--format=table` prints a line for each cohort.
"""

from binaries.launching import program
from docs.bench import options as options_lib

# What the command line is parsed into.
Options = options_lib.Options


def main(options: Options) -> None:
  """Measures, and prints the result."""
  config = options_lib.config(options)
  sizes, axis = options_lib.sizes(options)
  # TensorFlow is imported only now, when the command line has been checked.
  program.import_tff()
  from docs.bench import comparison

  comparison.run(config, options, sizes, axis)


if __name__ == '__main__':
  program.run_module('docs.bench.__main__')
