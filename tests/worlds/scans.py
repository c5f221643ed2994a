"""Makes DICOM files."""

import io

import numpy as np
import pydicom
from pydicom import uid
from pydicom.dataset import Dataset

# Whatever could identify somebody; none of it may be written or printed.
SECRET = {
  'PatientID': 'PID-4711',
  'PatientName': 'Doe^Jane',
  'PatientBirthDate': '19700101',
  'InstitutionName': 'Hospital of Nowhere',
  'AccessionNumber': 'ACC-99',
  'StudyInstanceUID': '1.2.3.4711.1',
  'SOPInstanceUID': '1.2.3.4711.3',
}
SERIES = '1.2.3.4711.2'


def of(values, syntax=uid.ExplicitVRLittleEndian, pixels=None, **tags):
  """A file of [height, width], [height, width, 3] or [frames, height, width]."""
  values = np.asarray(values)
  colours = values.ndim == 3 and values.shape[2] == 3
  data = Dataset()
  data.SeriesInstanceUID = SERIES
  data.SOPClassUID = uid.SecondaryCaptureImageStorage
  for name, value in SECRET.items():
    setattr(data, name, value)
  data.Rows, data.Columns = values.shape[:2] if colours else values.shape[-2:]
  if values.ndim == 3 and not colours:
    data.NumberOfFrames = len(values)
  data.SamplesPerPixel = 3 if colours else 1
  data.PhotometricInterpretation = 'RGB' if colours else 'MONOCHROME2'
  data.BitsAllocated = 8 * values.dtype.itemsize
  data.BitsStored = data.BitsAllocated
  data.PixelRepresentation = int(values.dtype.kind == 'i')
  if colours:
    data.PlanarConfiguration = 0
  for name, value in tags.items():
    setattr(data, name, value)
  data.HighBit = data.BitsStored - 1
  data.PixelData = values.tobytes() if pixels is None else pixels
  data['PixelData'].VR = 'OB' if data.BitsAllocated == 8 or pixels else 'OW'
  data.file_meta = pydicom.dataset.FileMetaDataset()
  data.file_meta.TransferSyntaxUID = syntax
  data.file_meta.MediaStorageSOPClassUID = data.SOPClassUID
  data.file_meta.MediaStorageSOPInstanceUID = data.SOPInstanceUID
  buffer = io.BytesIO()
  data.save_as(buffer, enforce_file_format=True)
  return buffer.getvalue()
