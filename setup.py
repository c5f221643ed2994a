"""Describes the package; the wheel holds tff_ssl/ alone.

`tasks` and `binaries` are too general as names on everybody's path: they run from the
checkout. `make` does not install the package, and its environment comes from
requirements.txt.
"""

import pathlib
import re

import setuptools

_ROOT = pathlib.Path(__file__).resolve().parent


def _version() -> str:
  source = (_ROOT / 'tff_ssl' / '__init__.py').read_text(encoding='utf-8')
  match = re.search(r"^__version__ = '([^']+)'$", source, re.MULTILINE)
  if match is None:
    raise ValueError('tff_ssl/__init__.py has no line `__version__ = ...`.')
  return match.group(1)


setuptools.setup(
  name='tff_ssl',
  version=_version(),
  description='Federated self-supervised learning on TensorFlow Federated',
  long_description=(_ROOT / 'README.md').read_text(encoding='utf-8'),
  long_description_content_type='text/markdown',
  author='The tff_ssl authors',
  license='Apache-2.0',
  license_files=['LICENSE'],
  python_requires='>=3.11,<3.12',
  packages=setuptools.find_packages(include=['tff_ssl', 'tff_ssl.*']),
  package_data={'tff_ssl': ['py.typed', 'export/templates/*', 'reporting/templates/*']},
  # TFF's own requirements (jaxlib 0.4.14) cannot be met; docs/installing.md says how to
  # install despite them.
  install_requires=[
    'tensorflow-federated==0.87.0',
    'tensorflow>=2.14,<2.15',
    'absl-py',
    'cryptography>=42',
    'dm-tree',
    'dp-accounting>=0.4.3,<0.5',
    'grpcio',
    'h5py',
    'jinja2',
    'matplotlib',
    'ml-dtypes',
    'numpy>=1.25,<2',
    'pandas>=2.2,<3',
    'psutil',
    'safetensors>=0.8,<1',
    'scikit-learn>=1.3',
    'scipy>=1.9',
    'tabulate',
    'tensorboard>=2.14,<2.15',
    'tensorflow-privacy>=0.9,<0.10',
    'threadpoolctl>=3',
    'tqdm',
  ],
  # tensorflow-privacy asks for an older packaging than Ray, as docs/installing.md says.
  extras_require={'ray': ['ray>=2.60,<2.61']},
  classifiers=[
    'Development Status :: 4 - Beta',
    'Intended Audience :: Science/Research',
    'License :: OSI Approved :: Apache Software License',
    'Operating System :: POSIX :: Linux',
    'Programming Language :: Python :: 3.11',
    'Topic :: Scientific/Engineering :: Artificial Intelligence',
    'Typing :: Typed',
  ],
)
