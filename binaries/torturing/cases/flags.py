"""Flags that are wrong by themselves."""

from binaries.torturing.cases import making


def cases() -> list[making.Case]:
  """Flags that are wrong by themselves."""
  return _numbers() + _others()


def _numbers() -> list[making.Case]:
  return [
    making.Case('dcco', '', ('--run_dir is not given',)),
    making.Case('dcco', '--cheese=1', ('cheese',)),
    making.Case('dcco', 'cheese', ("Unexpected argument 'cheese'",)),
    making.Case('dcco', f'{making.RUN} --rounds=0', ('rounds', '0')),
    making.Case('dcco', f'{making.RUN} --rounds=many', ('rounds', 'many')),
    making.Case('dcco', f'{making.RUN} --seed=-1', ('seed', '-1')),
    making.Case('dcco', f'{making.RUN} --seed={2**63}', ('seed', str(2**63))),
    making.Case('dcco', f'{making.RUN} --task=cifar11', ('task', 'cifar11')),
    making.Case('dcco', f'{making.RUN} --encoder=resnet9', ('encoder', 'resnet9')),
    making.Case(
      'dcco', f'{making.RUN} --encoder_width=nan', ('--encoder_width is nan',)
    ),
    making.Case('dcco', f'{making.RUN} --encoder_width=0', ('--encoder_width',)),
    making.Case('dcco', f'{making.RUN} --encoder_width=-3', ('--encoder_width',)),
    making.Case(
      'dcco', f'{making.RUN} --server_learning_rate=inf', ('--server_learning_rate is',)
    ),
    making.Case(
      'dcco', f'{making.RUN} --server_learning_rate=-1', ('--server_learning_rate=-1',)
    ),
    making.Case(
      'dcco', f'{making.RUN} --server_momentum=0.5', ('--server_momentum=0.5',)
    ),
    making.Case(
      'dcco', f'{making.RUN} --temperature=1', ('--temperature', 'fedavg_nt_xent')
    ),
    making.Case('dcco', f'{making.RUN} --data_dir=/data', ('--data_dir', 'digits')),
    making.Case('dcco', f'{making.RUN} --participation=2', ('participation is 2',)),
    making.Case(
      'dcco', f'{making.RUN} --participation=nan', ('--participation is nan',)
    ),
    making.Case(
      'dcco', f'{making.RUN} --clients_per_round=99999', ('clients_per_round is 99999',)
    ),
    making.Case('dcco', f'{making.RUN} --projector=8,wide', ("projector is '8,wide'",)),
    making.Case('dcco', f'{making.RUN} --projector=8,0', ('--projector=8,0',)),
    making.Case(
      'dcco', f'{making.RUN} --projector=1000000,1000000', ('projector', 'parameters')
    ),
    making.Case(
      'dcco', f'{making.RUN} --image_size=100000', ('image_size is 100000', 'GiB')
    ),
    making.Case('dcco', f'{making.RUN} --image_size=0', ('image_size is 0',)),
  ]


def _others() -> list[making.Case]:
  return [
    making.Case(
      'dcco', f'{making.RUN} --evaluation_methods=svm', ('evaluation_methods', 'svm')
    ),
    making.Case('dcco', f'{making.RUN} --label_fractions=0', ('label_fractions',)),
    making.Case('dcco', f'{making.RUN} --label_fractions=nan', ('label_fractions',)),
    making.Case('dcco', f'{making.RUN} --runtime=cloud', ('runtime', 'cloud')),
    making.Case(
      'dcco', f'{making.RUN} --runtime=hosts', ('worker_addresses is empty',)
    ),
    making.Case('dcco', f'{making.RUN} --worker_address=nowhere', ('host:port',)),
    making.Case(
      'dcco',
      f'{making.RUN} --worker_address=example.org:1',
      ('--i_trust_this_network',),
    ),
    making.Case('dcco', '--run_dir=~nobody_here/run', ('~nobody_here',)),
    making.Case('dcco', '--run_dir=/proc/run', ('/proc/run',)),
    making.Case('dcco', '--run_dir={d}/f/run', ('{d}/f',), making.text('f', 'a file')),
    making.Case(
      'dcco',
      making.RUN,
      ('thesis.tex', 'config.json'),
      making.text('run/thesis.tex', ''),
    ),
    making.Case('fedema', f'{making.RUN} --method=fedsimclr', ('fedsimclr',)),
    making.Case('fedema', f'{making.RUN} --tau=nan', ('tau',)),
    making.Case('fedsup', f'{making.RUN} --server_labels=2', ('server_labels',)),
    making.Case(
      'fedsup', f'{making.RUN} --server_hospital=nowhere', ('server_hospital',)
    ),
    making.Case(
      'dec_ssl', f'{making.RUN} --method=graph --graph={{d}}/g.csv', ('g.csv',)
    ),
    making.Case(
      'dec_ssl',
      f'{making.RUN} --method=graph --graph={{d}}/g.csv --partition=iid:clients=2',
      ('g.csv',),
      making.text('g.csv', '0,2\n1,x\n'),
    ),
    making.Case('evaluate', '', ('--run is not given',)),
    making.Case('compare', '', ('runs',)),
    making.Case('partition', '--csv={d}/nowhere/a.csv', ('--csv', 'nowhere')),
    making.Case('worker', '', ('--port is not given',)),
    making.Case('worker', '--port=7001', ('--i_trust_this_network',)),
  ]
