"""Command lines of runs that are refused before data are read, by their program.

What is outside of a field's range is in tests/contract, likewise the rules between the
fields of one setting. These are rules between settings, each once.
"""

import importlib

import pytest

from binaries.building import data
from tests.binaries import in_process

_PRIVATE = '--aggregation=private:update_clip=1'
_PICTURES = '--task=folder --data_dir=. --data=pixel_range='
_REFUSED = {
  'dcco': {
    '--encoder=norm=batch': 'norm of --encoder is batch; it must be group for',
    '--encoder=torch_resnet18': 'batch_norm of --encoder is trained; it must be folded',
    '--evaluation=supervised_steps=3': 'supervised_steps of --evaluation is 3, but',
    '--evaluation=finetune_rate=0.1': 'finetune_rate of --evaluation is 0.1, but',
    '--rounds=5 --server=warmup_rounds=5': 'warmup_steps is 5; it must be below',
    '--evaluation=methods=knn/svm': "methods of --evaluation has 'svm'; it must be one",
    '--evaluation=methods=': 'methods of --evaluation is empty; it must be some of knn',
    '--evaluation=label_fractions=': 'label_fractions of --evaluation is empty; it',
    '--trackers=x': "trackers has 'x'; it must be one of tensorboard, mlflow, wandb.",
    '--augmentation=x': '--augmentation=x is given with --task=digits, whose examples',
    '--task=x': "task is 'x'; it must be one of digits, digits_halves, cifar10,",
    '--augmentation=noise': '--augmentation=noise is given with --task=digits, whose',
    '--encoder=mlp': 'examples are images; it must be one of resnet8, ',
    '--task=wine --augmentation=flip': 'must be one of noise_mask, noise, mask.',
    '--task=wine --encoder=resnet8': 'are rows of numbers; it must be one of mlp.',
    '--runtime=worker --aggregation=secure': 'be in_process, because only there are',
    '--runtime=packs=2 --aggregation=secure': 'must be 0, because each client masks',
    '--runtime=parts=2 --aggregation=secure': 'leave it out, because each part of a',
    '--clients_per_round=1 --aggregation=secure': 'must be at least 2, because a sum',
    _PRIVATE: 'is given without epsilon or noise_multiplier',
    '--aggregation=distributed:epsilon=8 --runtime=ray': 'be in_process, because only',
    f'{_PRIVATE},epsilon=8,signal_rounds=1 --evaluation=signals_every=none': (
      'signal_rounds of --aggregation is 1 with --evaluation=signals_every=none; it'
    ),
    '--aggregation=distributed:update_clip=1,noise_multiplier=1,cohorts=poisson': (
      'cohorts of --aggregation is poisson with --aggregation=distributed; it must be'
    ),
    '--objective=encoding_norm=1 --method=stale_statistics=true': (
      'previous round have a different'
    ),
    '--task=digits_halves --augmentation=mild': 'two modalities are the two views',
    '--evaluation=methods=knn/retrieval': 'which needs two modalities; ',
    '--task=digits_halves --evaluation=methods=retrieval,baselines=true': (
      'which is compared with chance'
    ),
    '--data=classify=image': '--data=classify is given with --task=digits; it is for',
    '--data=folders=class': '--data=folders is given with --task=digits; it is for',
    '--data=fit=pad': '--data=fit is given with --task=digits; it is for ham10000, ',
    '--data=pixel_range=0/1': '--data=pixel_range is given with --task=digits; it',
    '--columns=label=x': '--columns is given with --task=digits; it is for cases, f',
    '--data=follow_links=true': '--data=follow_links is given with --task=digits; it',
    '--data=strict=true': '--data=strict is given with --task=digits; it is for ham1',
    '--evaluation=methods=segmentation': "has 'segmentation'; it must be one of knn",
  },
  'fedavg_ssl': {
    '--objective=mae --encoder=resnet8': '--encoder=resnet8 is given with',
    '--task=wine --method=orchestra': "objective is 'orchestra' with --task=wine,",
    '--method=fedu2 --objective=simclr --clients=weighting=uniform': (
      'weighting of --clients is uniform; with --method=fedu2 it must be examples,'
    ),
    '--objective=supervised:labels=0.5': 'it is for centralized and centralized_steps',
    '--method=fedprox': 'proximal_weight of --clients is 0',
    '--method=fedbn --encoder=norm=group': 'norm of --encoder is group; --method=fedbn',
    '--method=fedbn --encoder=torch_resnet18:batch_norm=folded': (
      'batch_norm of --encoder is folded; --method=fedbn needs trained'
    ),
    '--method=fedbn --encoder=vit_micro': '--encoder is vit_micro, which has no batch',
    '--rounds=9 --clients=schedule=steps,steps=4/9': 'of 9 rounds',
    '--method=fed_ssl:reset_target=true --objective=simclr': (
      'reset_target of --method is true with --objective=simclr, which keeps no'
    ),
    '--method=fed_ssl --objective=byol:stop_gradient=false': (
      'target_trained of --objective is true without stop_gradient; with'
    ),
    '--task=digits_halves --objective=byol': 'two modalities; it must be one of sim',
    '--encoder=vit_micro:lora=4': 'lora of --encoder is 4 without --init_from; it must',
    '--encoder=conv2:lora=4': 'lora of --encoder is 4; it must be none of conv2, whose',
    '--encoder=resnet8:lora=4 --task=digits_halves': 'none with --task=digits_halves,',
    '--encoder=resnet8:frozen=0.5': 'frozen of --encoder is 0.5 without --init_from;',
    '--encoder=vit_micro:frozen=0.5,lora=4': 'lora of --encoder is 4; it must be none',
  },
  'fedema': {
    '--method=fedu --objective=byol:predictor=false': (
      'predictor of --objective is false; with --method=fedu it must be true, because'
    ),
    '--method=ema_on=predictor --objective=byol:predictor=false': (
      'ema_on of --method is predictor with replaced=online and predictor=false of'
    ),
    '--method=ema_on=encoder,replaced=target': 'ema_on of --method is encoder with',
    '--method=replaced=none,tau=0.5': 'tau of --method is 0.5 with replaced=none, so',
    '--method=replaced=none,scaler=0.8': 'scaler of --method is 0.8 with replaced=none',
    '--method=replaced=none,constant_mu=0.5': 'constant_mu of --method is 0.5 with',
    '--method=fedu --task=wine': 'divergence_norm of --method is conv_mean with',
    '--task=wine --method=scaler=0.8': 'divergence_norm of --method is conv_mean with',
    '--evaluation=personal=knn': "personal of --evaluation has 'knn'; it must be one",
    '--method=fedca --objective=alignment_weight=0.5': (
      'alignment_weight of --objective is 0.5 without alignment_run of --method; it '
    ),
    f'--method=fedu:threshold_quantile=0.5,divergence_norm=l2 {_PRIVATE},epsilon=8': (
      'threshold_quantile of --method is 0.5 without metrics_clip of --aggregation;'
    ),
  },
  'dec_ssl': {
    '--method=ring --participation=0.5': 'participation is 0.5; without a server',
    '--method=graph': 'path of --method=graph is not given; it must name a CSV file',
    '--method=graph:path=/nowhere.csv': 'path of --method=graph is /nowhere.csv, which',
  },
  'fedsup': {
    '--labels=hospital=rosendahl': 'hospital',
    '--encoder=vit_micro:lora=4': 'lora of --encoder is 4 with --method=fedsup, which',
    '--objective=stages=9': 'stages of --objective is 9; it must be at most 3, the',
    '--task=wine --objective=stages=2': 'is 2; it must be at most 0, the stages of',
    '--objective=stages=0,feature_weight=0.5': 'feature_weight of --objective is 0.5',
    '--task=wine --objective=feature_weight=0.5': 'is 0.5 and mlp has no stages, where',
    '--objective=consistency=false,stages=0': 'is false with stages=0, which leaves no',
    '--encoder=vit_micro --objective=consistency=false': (
      'is false and vit_micro has no stages, which leaves no loss; it must be true.'
    ),
    f'{_PRIVATE},epsilon=8': 'with labels at the server it must be plain',
    '--task=wine --objective=fixmatch': 'rows of numbers; it is for images only.',
    '--task=digits_halves': 'two modalities; it must be one of simclr',
  },
  'partition': {
    '--task=digits --partition=hospital': 'it is for ham10000, ham10000_records only',
    f'{_PICTURES}1': 'pixel_range of --data is 1; it must be two numbers, as in',
    f'{_PICTURES}1/2/3': 'pixel_range of --data is 1/2/3; it must be two numbers',
    f'{_PICTURES}400/-1000': 'pixel_range is 400,-1000; it must be two finite numbers',
    '--plot=clients.jpg': "--plot is 'clients.jpg'; it must end in .png",
    '--csv=no/such/clients.csv': "there must be a folder 'no/such'",
    '--max_clients=3': '--max_clients is given without --plot',
    '--partition=clusters:clients=3': 'partition_encoder',
    '--data=partition_encoder=x.keras': 'without a --partition of clusters',
    '--partition=iid:clients=3 --data=partition_encoder=x.keras': (
      'without a --partition of clusters'
    ),
  },
}


@pytest.mark.parametrize('program', _REFUSED)
def test_settings_that_do_not_fit_are_one_sentence(tmp_path, monkeypatch, program):
  monkeypatch.setattr(data, 'load_task', lambda _: pytest.fail('Data are read.'))
  folder, expected = tmp_path / 'run', _REFUSED[program]
  needed = '' if program == 'partition' else f'--run_dir={folder} '
  said = in_process.said(
    importlib.import_module(f'binaries.{program}'), [needed + line for line in expected]
  )
  for line, part in expected.items():
    sentence = said[needed + line]
    assert part in sentence, line
    assert sentence.endswith('.') and '\n' not in sentence, line
  assert not folder.exists()
