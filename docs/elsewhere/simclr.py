r"""Trains SimCLR on all data in one place, here and in plain PyTorch, side by side.

  python -m docs.elsewhere.simclr --torch=build/elsewhere/lite0/bin/python \
      --data_dir=~/tensorflow_datasets

Both have a ResNet-8 of half the width on 5,000 random images of CIFAR-10 at 16 x 16.
Here it is the default row of `--method=centralized` at temperature 0.2, 20 passes;
PyTorch (`torch_simclr.py`) gets as many CPU seconds as the rounds here took, on one
thread. The same linear probe has 10 % of the labels. Runs are kept in build/simclr; one
that is complete is not made again. `make simclr` makes the environment first.
"""

import dataclasses
import pathlib
import subprocess
import sys

import numpy as np
import pandas as pd

from binaries.config import command_line
from binaries.launching import program
from tasks import registry
from tasks import task_types
from tff_ssl.computing import kinds
from tff_ssl.evaluation import label_fractions
from tff_ssl.evaluation import linear_probe
from tff_ssl.reporting import run_reader

_SIZE, _IMAGES, _LABELS = 16, 5000, 0.1
_FLAGS = (
  '--task=cifar10',
  f'--image_size={_SIZE}',
  f'--data=at_most={_IMAGES}',
  '--partition=iid:clients=1',
  '--participation=1',
  '--method=centralized',
  '--objective=simclr:temperature=0.2',
  '--rounds=20',
  '--encoder=width=0.5',
  f'--evaluation=methods=linear,label_fractions={_LABELS},knn_every=0',
  '--trackers=',
)
_NORMS = ('batch', 'group')
_FOLDER = pathlib.Path('build/simclr')


@dataclasses.dataclass(frozen=True)
class Options:
  """What is trained.

  Attributes:
    torch: Python of an environment with PyTorch.
    data_dir: Where TFDS has CIFAR-10; none: its own place.
    seeds: Number of seeds.
  """

  torch: command_line.Path = 'build/elsewhere/lite0/bin/python'
  data_dir: command_line.Path | None = None
  seeds: kinds.Count = 3


def main(options: Options) -> None:
  """Trains what is missing, and prints the table.

  Args:
    options: What is trained.

  Raises:
    ValueError: If there is no such Python.
  """
  if not pathlib.Path(options.torch).is_file():
    raise ValueError(
      f'torch is {options.torch}; it must be a Python with PyTorch, as make simclr has.'
    )
  data = options.data_dir and str(pathlib.Path(options.data_dir).expanduser())
  task = registry.load('cifar10', data, _SIZE)
  cells = {}
  for norm in _NORMS:
    rows = [_both(options, data, task, norm, seed) for seed in range(options.seeds)]
    cells[norm] = {
      name: f'{own.mean():.1f} ({" ".join(f"{each:.1f}" for each in own)})'
      for name, own in pd.DataFrame(rows).items()
    }
  print(pd.DataFrame(cells).T.rename_axis('norm').to_markdown(disable_numparse=True))


def _both(
  options: Options, data: str | None, task: task_types.Task, norm: str, seed: int
) -> dict[str, float]:
  """Returns the CPU seconds, both accuracies in per cent and PyTorch's passes."""
  ours, torchs = (_FOLDER / f'{norm}-{seed}' / each for each in ('here', 'torch'))
  if not (ours / 'evaluation.json').exists():
    flags = [*_FLAGS, f'--encoder=norm={norm}', f'--seed={seed}', f'--run_dir={ours}']
    flags += [f'--data_dir={data}'] if data else []
    subprocess.run([sys.executable, '-m', 'binaries.fedavg_ssl', *flags], check=True)
  run = run_reader.read(ours)
  seconds = float(run.system['cpu_seconds'].sum())
  test, known = task.test, task.train
  labelled = label_fractions.label_fraction(known.label, _LABELS, seed)
  if not (torchs / 'features.npz').exists():
    torchs.mkdir(parents=True, exist_ok=True)
    images = np.random.default_rng(seed).permutation(len(known))[:_IMAGES]
    np.savez(
      torchs / 'images.npz',
      train=known.fields['image'][images],
      labelled=known.fields['image'][labelled],
      test=test.fields['image'],
    )
    arguments = [str(torchs), norm, str(seed), str(seconds)]
    command = [options.torch, '-m', 'docs.elsewhere.torch_simclr', *arguments]
    subprocess.run(command, check=True)
  features = np.load(torchs / 'features.npz')
  probe = linear_probe.fit_logistic(
    features['labelled'], known.label[labelled], task.num_classes
  )
  right = np.mean(probe.predict(features['test']) == test.label)
  return {
    'CPU s': seconds,
    'here': 100 * run.evaluation['linear/10%/accuracy'],
    'PyTorch': 100 * float(right),
    'PyTorch, passes': float(features['passes']),
  }


if __name__ == '__main__':
  program.run_module('docs.elsewhere.simclr')
