"""The patients of a folder of DICOM files: its clients, if nothing else names any.

Names of patients are digests (see `dicom.pseudonym`); no tag of a file is kept.
"""

import collections
import pathlib
from typing import Any

from tasks import cache
from tasks import dicom
from tasks import image_opening
from tasks import images
from tasks import intake
from tasks import sources
from tasks import spellings
from tff_ssl.computing import inert

_PATIENTS, _ALIKE = 'patients', 'alike'


def of_images(
  source: sources.Source, names: list[str]
) -> tuple[list[str], list[intake.Finding]]:
  """Returns the patient of each image, and what must be said of it.

  Args:
    source: Where the images are.
    names: The images' files.

  Returns:
    The patients' names; none at all unless every image that can be read has one. A
    file that can never be read is left out later, and has any name until then.

  Raises:
    ValueError: A file cannot be read now, so that its patient is not known.
  """
  # Those without a suffix too.
  scans = tuple(n for n in names if not n.lower().endswith(image_opening.SUFFIXES))
  if not scans:
    return [], []

  def build(folder: pathlib.Path) -> dict[str, Any]:
    del folder
    ids = {name: _id(source, name) for name in scans}
    names_of = {name: own and dicom.pseudonym(own) for name, own in ids.items()}
    return {_PATIENTS: names_of, _ALIKE: _alike({own for own in ids.values() if own})}

  stamp = cache.fingerprint('of DICOM', _PATIENTS, scans, source.stamp(scans))
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
  findings = [intake.Finding('patients', (), said)]
  for difference, groups in entry.info[_ALIKE].items():
    said = f'warning: have ids that differ by {difference} alone, and are each a client'
    findings.append(intake.finding('spellings', groups, said, costs=True))
  return patients, findings


def _alike(ids: set[str]) -> dict[str, list[str]]:
  """Returns how ids differ that look alike, and the names of their patients."""
  groups = collections.defaultdict(list)
  for group, difference in spellings.alike(ids).items():
    groups[difference].append(' and '.join(sorted(map(dicom.pseudonym, group))))
  return {difference: sorted(groups[difference]) for difference in sorted(groups)}


def _id(source: sources.Source, name: str) -> str | None:
  """Returns a patient's id, '' if the file has none, None if it is no picture at all.

  Raises:
    ValueError: It cannot be read now; later it may.
  """
  try:
    content = source.read(name)
    if dicom.is_dicom(content):
      return dicom.patient_id(content)
    # A JPEG of this suffix is read as one, and names nobody.
    images.size_of(content)
  except MemoryError:
    raise
  # As where images are decoded, which leaves the file out.
  except Exception as error:
    if not image_opening.may_pass(error):
      return None
    why = inert.line(images.why_unreadable(error))
    raise ValueError(
      f'{source.path} has {inert.line(name)}, whose patient is not known: {why}; it '
      'must be readable, or removed.'
    ) from error
  return ''
