"""Columns of a user's table."""

import pytest

from tasks import column_kinds
from tasks import column_names


@pytest.mark.parametrize(
  ('header', 'own', 'named', 'unused'),
  [
    # Case, blanks, dashes and characters of no width do not count.
    ('Image,Client ID,LABEL', {}, 'Image,Client ID,LABEL', ''),
    ('IMAGE,client-id,Label', {}, 'IMAGE,client-id,Label', ''),
    ('image,ClientID,\u200blabel', {}, 'image,ClientID,\u200blabel', ''),
    # The exact name is taken, and its like is not used.
    ('image,label,Label,client_id,age,', {}, 'image,client_id,label', 'Label,age'),
    # The user's names come first.
    (
      'Photo,Patient,label,Diagnosis,class',
      {'image': 'Photo', 'client_id': 'Patient', 'label': 'Diagnosis'},
      'Photo,Patient,Diagnosis',
      'label,class',
    ),
    ('image,client_id,class', {'label': ''}, 'image,client_id', 'class'),
    # Other words are other columns.
    ('image,client_id,age,stage,face_id', {}, 'image,client_id', 'age,stage,face_id'),
  ],
)
def test_columns_are_matched_by_their_names(header, own, named, unused):
  own = column_names.parse([f'{role} = {name}' for role, name in own.items()])
  found = column_names.match('m.csv', header.split(','), own)
  roles = ('image', 'client_id', 'label')
  assert found.named == dict(zip(roles, named.split(','), strict=False))
  assert ','.join(found.unused) == unused


@pytest.mark.parametrize(
  ('header', 'flag'),
  [
    ('Photo,client_id', '--columns=image=Photo'),
    ('image,case_id,Patient ID', "'--columns=client_id=Patient ID'"),
    ('image,client_id,Diagnosis', '--columns=label=Diagnosis'),
    ('Photo,Patient,dx', '--columns=image=Photo,client_id=Patient,label=dx'),
    ('image,client_id,lable', '--columns=label=lable'),
    ('image,client_id,labels', '--columns=label=labels'),
    ('image,clientid_,spilt', '--columns=split=spilt'),
    ('image,client_id,partition', '--columns=split=partition'),
  ],
)
def test_misspelled_columns_are_not_ignored(header, flag):
  names = header.split(',')
  with pytest.raises(ValueError, match=f'; {flag} says what is what'):
    column_kinds.check_list('m.csv', names, [], column_names.match('m.csv', names), {})


def test_a_column_that_is_there_in_two_spellings_is_refused():
  with pytest.raises(ValueError, match="columns 'Label', 'LABEL', of which each may"):
    column_names.match('m.csv', ['image', 'client_id', 'Label', 'LABEL'])


@pytest.mark.parametrize('pair', ['Photo', 'picture=x', 'label'])
def test_wrong_pairs_are_refused(pair):
  with pytest.raises(ValueError, match=f"columns has '{pair}'; it must be a list such"):
    column_names.parse([pair])
  with pytest.raises(ValueError, match=r"columns has 'image=b'; .* at most once"):
    column_names.parse(['image=a', 'image=b'])
  with pytest.raises(ValueError, match=r'image=Foto, and m\.csv has no such column; i'):
    column_names.match('m.csv', ['Photo', 'client_id'], {'image': 'Foto'})
