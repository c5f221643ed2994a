"""Columns of a user's table."""

import pytest

from tasks import column_kinds
from tasks import column_names


@pytest.mark.parametrize(
  ('header', 'named'),
  [
    ('image,client_id,label', {'image': 'image', 'client_id': 'client_id'}),
    (' Image,Client ID,LABEL', {'image': 'Image', 'client_id': 'Client ID'}),
    ('IMAGE,client-id,Label', {'image': 'IMAGE', 'client_id': 'client-id'}),
    ('image,ClientID,\u200blabel', {'image': 'image', 'client_id': 'ClientID'}),
  ],
)
def test_case_blanks_and_dashes_do_not_count(header, named):
  names = [name.strip() for name in header.split(',')]
  found = column_names.match('m.csv', names)
  assert found.named == {**named, 'label': names[2]}
  assert found.unused == ()


def test_the_exact_name_is_taken_and_its_like_is_not_used():
  found = column_names.match(
    'm.csv', ['image', 'label', 'Label', 'client_id', 'age', '']
  )
  assert found.named == {'image': 'image', 'client_id': 'client_id', 'label': 'label'}
  assert found.unused == ('Label', 'age')


def test_the_users_names_come_first():
  header = ['Photo', 'Patient', 'label', 'Diagnosis', 'class']
  own = column_names.parse(['image=Photo', 'client_id = Patient', 'label=Diagnosis'])
  found = column_names.match('m.csv', header, own)
  assert found.named == {
    'image': 'Photo', 'client_id': 'Patient', 'label': 'Diagnosis'
  }  # fmt: skip
  assert found.unused == ('label', 'class')
  nothing = column_names.match('m.csv', ['image', 'client_id', 'class'], {'label': ''})
  assert nothing.unused == ('class',)


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


def test_other_words_are_other_columns():
  header = ['image', 'client_id', 'age', 'stage', 'face_id', 'task', 'date', 'clinic']
  assert column_names.match('m.csv', header).unused == tuple(header[2:])


@pytest.mark.parametrize('pair', ['Photo', 'picture=x', 'label'])
def test_wrong_pairs_are_refused(pair):
  with pytest.raises(ValueError, match=f"columns has '{pair}'; it must be a list such"):
    column_names.parse([pair])
  with pytest.raises(ValueError, match=r"columns has 'image=b'; .* at most once"):
    column_names.parse(['image=a', 'image=b'])
  with pytest.raises(ValueError, match=r'image=Foto, and m\.csv has no such column; i'):
    column_names.match('m.csv', ['Photo', 'client_id'], {'image': 'Foto'})
