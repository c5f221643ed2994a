"""The patients of a folder of DICOM files: its clients, if nothing else names any.

Names of patients are digests (see `dicom.patient`); no tag of a file is kept.
"""

import pathlib
from typing import Any

from tasks import cache
from tasks import dicom
from tasks import intake
from tasks import opening
from tasks import sources

_SUFFIX = '.dcm'
_PATIENTS = 'patients'


def of_images(
  source: sources.Source, names: list[str]
) -> tuple[list[str], list[intake.Finding]]:
  """Returns the patient of each image, and what must be said of it.

  Args:
    source: Where the images are.
    names: The images' files.

  Returns:
    The patients' names; none at all unless every image that can be read has one. A
    file that cannot be read is left out later, and has any name until then.
  """
  scans = tuple(name for name in names if name.lower().endswith(_SUFFIX))
  if not scans:
    return [], []

  def build(folder: pathlib.Path) -> dict[str, Any]:
    del folder
    return {_PATIENTS: {name: _patient(source, name) for name in scans}}

  stamp = cache.fingerprint(_PATIENTS, scans, source.stamp(scans))
  entry = cache.fetch(
    cache.root_for(source.path), f'{source.path.name}-{_PATIENTS}-{stamp}', build
  )
  known: dict[str, str | None] = entry.info[_PATIENTS]
  without = [name for name in names if known.get(name) == '' or name not in known]
  named = sorted({patient for patient in known.values() if patient})
  if not named:
    return [], []
  if without:
    said = (
      f'warning: {len(without):,} of {len(names):,} images name no patient, so that '
      'patients are not the clients'
    )
    return [], [intake.finding('no patient', without, said, costs=True)]
  count = intake.many(len(named), 'patient')
  said = f'{count} of DICOM files, named by digests, are the clients'
  patients = [known[name] or named[0] for name in names]
  return patients, [intake.Finding('patients', (), said)]


def _patient(source: sources.Source, name: str) -> str | None:
  """Returns a patient's name, '' if the file has none, None if it is unreadable."""
  try:
    return dicom.patient(source.read(name))
  except (opening.PictureError, OSError):
    return None
