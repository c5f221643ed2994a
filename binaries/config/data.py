"""What a run reads: where the data are, and what of them."""

import dataclasses
from typing import Literal

from tff_ssl.computing import kinds
from tff_ssl.settings import roles

# The partition by a column of HAM10000's metadata.
HOSPITAL = 'hospital'


@dataclasses.dataclass(frozen=True)
class Data(kinds.Kind):
  """How the data of a task are read.

  Attributes:
    dir: Where the data are: the TFDS folder (cifar10, cifar100, stl10), the folder or
      .tar file (ham10000, ham10000_records, emoji, cases, folder, tiny_imagenet), the
      .npz, .csv or .parquet file (features), or TFF's cache folder (gld23k).
    download: Whether TFDS may download a data set that is not prepared.
    columns: For the tasks cases and features: the table's own names of columns, as in
      image=Photo,client_id=Patient,label=Diagnosis; label= says that no column is the
      label, unused=Name,unused=Sex that these are not used, and feature=Id that one is
      a feature. None: a column has its own name, whatever its case and blanks.
    classify: What is classified: each image by itself, or the images of a case
      together; none: cases if the manifest has the column case_id.
    folders: For the task folder: what each folder of images is; none: nothing.
    groups: For the task folder, without clients: which images are in one split; none
      of them, those of a folder (within the folder of a class), or, without this field,
      those whose names are of one film, slide or patient (names).
    follow_links: For folders of images: whether links to files and folders elsewhere
      are followed.
    strict: For folders of images: whether it is an error if data or truth is lost on
      the way: images that cannot be read or are not listed, the same file in two
      splits, two spellings of one name.
    image_size: Height and width of the images; none: the task's own.
    fit: How pictures become squares: cropped to the centre (crop), with black bars
      (pad), or in other proportions (stretch); none: crop.
    pixel_range: Numbers that are black and white in pictures of more than 8 bits, as in
      -1000/400; none: what DICOM files state, or what is measured over all pictures.
    scaling: For tables: a CSV of column,center,scale by which features are scaled, or
      the word none: they stay as they are. By default they are standardised by the
      training examples, which a private run refuses.
    validation: Share of the training examples (cases, or clients if the data name them)
      to hold out as a validation split, which no client holds and which is evaluated in
      addition to the test split; none: only the data's own, if they have one.
    examples: How many training examples are taken, for a cheap look at a large data
      set: of clients or cases whole ones, of each label its share, the same in every
      run; none: all.
    test_examples: Likewise of the test split, and at most of a validation split that
      the data have; none: all.
    at_most: Clients with more training examples keep this many, at random; none: all.
    partition_encoder: The encoder.keras of a run, next to its encoder.json, whose
      features a partition of clusters is made from.
  """

  dir: str | None = roles.free(None, path=True)
  download: bool = roles.free(True, path=True)
  columns: tuple[str, ...] | None = None
  classify: Literal['image', 'case'] | None = None
  folders: Literal['none', 'class', 'client'] | None = None
  groups: Literal['names', 'folders', 'none'] | None = None
  follow_links: bool | None = roles.path()
  strict: bool | None = roles.free(None, path=True)
  image_size: kinds.Count | None = None
  fit: Literal['crop', 'pad', 'stretch'] | None = None
  pixel_range: tuple[float, ...] | None = None
  scaling: kinds.WithNone | None = roles.path()
  validation: kinds.Inner | None = None
  examples: kinds.Count | None = None
  test_examples: kinds.Count | None = None
  at_most: kinds.Count | None = None
  partition_encoder: str | None = roles.path()
