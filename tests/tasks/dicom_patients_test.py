"""Patients of DICOM files: their names, what is no id, and ids that look alike."""

import errno
import pathlib
import re

import numpy as np
from PIL import Image
import pytest

from tasks import dicom
from tasks import dicom_patients
from tasks import image_opening
from tasks import registry
from tasks import sources
from tasks import spellings
from tests.worlds import pictures
from tests.worlds import scans

_CT = np.linspace(0, 4095, 64).astype(np.uint16).reshape(8, 8)
_HU = {'RescaleSlope': 1, 'RescaleIntercept': -1024}
_file = scans.of


def _patient(content):
  return dicom.pseudonym(dicom.patient_id(content))


def test_patients_have_stable_names_that_are_digests():
  content = _file(_CT)
  name = _patient(content)
  assert name == _patient(_file(_CT, PatientName='Other^Name', **_HU))
  assert name == _patient(_file(_CT, PatientID=' PID-4711 '))
  assert name != _patient(_file(_CT, PatientID='PID-4712'))
  # Of this version and all later ones: a run may be resumed years later.
  assert name == 'patient-a277e2e678157f9e'
  assert _patient(_file(_CT, PatientID='')) == ''
  with pytest.raises(image_opening.PictureError, match='not a DICOM file'):
    _patient(pictures.of(Image.new('L', (8, 8))))


@pytest.mark.parametrize(
  'written',
  [*sorted(spellings.MISSING), 'ANONYMOUS', 'Anonymized', 'unknown', '\u200b NA '],
)
def test_placeholders_are_not_patients(written):
  content = _file(_CT, PatientID=written, SpecificCharacterSet='ISO_IR 192')
  assert dicom.patient_id(content) == ''
  assert dicom.pseudonym('') == ''


def test_ids_that_look_alike_are_warned_of_by_their_digests(tmp_path):
  ids = ('Meier', 'meier', '00471', '471', 'other')
  for k, own in enumerate(ids):
    values = _CT + np.uint16(k)
    (tmp_path / f'{k}.dcm').write_bytes(_file(values, PatientID=own, **_HU))
  source = sources.open_source(tmp_path)
  for _ in range(2):  # The second time from the cache.
    clients, findings = dicom_patients.of_images(source, list(source.names))
    assert clients == [*map(dicom.pseudonym, ids)]
    assert [each.names for each in findings if each.costs] == [
      (' and '.join(sorted(clients[:2])),),
      (' and '.join(sorted(clients[2:4])),),
    ]
    assert 'case or blanks' in findings[1].sentence
    assert 'the form of a number' in findings[2].sentence
  written = [p.read_bytes() for p in tmp_path.rglob('*.json') if p.is_file()]
  assert written
  for text in (*map(str, findings), *map(str, written)):
    assert not re.search(r'meier|\b0*471\b', text, re.IGNORECASE)


def _of_two_patients(folder):
  for k in range(4):
    content = _file(_CT + np.uint16(k), PatientID=f'P{k // 2}', **_HU)
    (folder / f'{k}.dcm').write_bytes(content)


@pytest.mark.parametrize('readable', [True, False])
def test_a_picture_of_another_kind_is_nobodys(tmp_path, readable):
  _of_two_patients(tmp_path)
  content = pictures.of(Image.effect_noise((32, 32), 60), 'JPEG')
  (tmp_path / 'x.dcm').write_bytes(content if readable else content[:9])
  source = sources.open_source(tmp_path)
  clients, findings = dicom_patients.of_images(source, list(source.names))
  if readable:
    # As a file without an id: it may be of either patient.
    assert clients == []
    assert [each.names for each in findings] == [('x.dcm',)]
  else:
    # It is left out later.
    assert clients[:4] == [
      _patient(_file(_CT, PatientID=f'P{k // 2}')) for k in range(4)
    ]
    assert [each.kind for each in findings] == ['patients']


def test_a_file_that_cannot_be_read_now_gets_no_patient(tmp_path, monkeypatch):
  _of_two_patients(tmp_path)
  source = sources.open_source(tmp_path)

  def fail(name):
    raise PermissionError(errno.EACCES, 'Permission denied', name)

  with monkeypatch.context() as patched:
    patched.setattr(source, 'read', fail)
    with pytest.raises(ValueError, match=r'0\.dcm, whose patient is not known: Perm'):
      dicom_patients.of_images(source, list(source.names))
  # Nothing of it stays in the cache.
  clients, _ = dicom_patients.of_images(source, list(source.names))
  assert len(set(clients[:2])) == len(set(clients[2:])) == 1
  assert len(set(clients)) == 2


@pytest.mark.parametrize('folders_are', ['none', 'class'])
def test_patients_are_clients_where_folders_are_not(tmp_path, folders_are):
  for k in range(12):
    folder = tmp_path / 'ab'[k % 2]
    folder.mkdir(exist_ok=True)
    values = _CT + np.uint16(k)
    (folder / f'{k}.dcm').write_bytes(_file(values, PatientID=f'P{k % 3}', **_HU))
  (tmp_path / 'a' / 'x.dcm').write_bytes(b'no DICOM')
  task = registry.load('folder', tmp_path, 8, folders=folders_are)
  assert registry.outline('folder', tmp_path, folders=folders_are).has_clients
  holders = {
    f'{int(pathlib.Path(task.files.images[i]).stem) % 3}': task.client_names[client]
    for examples in task.splits().values()
    for i, client in zip(examples.example_id, examples.client, strict=True)
  }
  assert holders == {f'{k}': _patient(_file(_CT, PatientID=f'P{k}')) for k in range(3)}
  assert any('patients of DICOM files' in line for line in task.report)
  (tmp_path / 'a' / 'y.dcm').write_bytes(_file(_CT, PatientID=''))
  task = registry.load('folder', tmp_path, 8, folders=folders_are)
  assert task.train.client is None
  assert any('1 of 14 images name no patient' in line for line in task.report)
  assert not registry.outline('folder', tmp_path, folders=folders_are).has_clients
