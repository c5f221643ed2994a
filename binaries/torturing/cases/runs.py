"""Run folders of strangers."""

from binaries.torturing.cases import making


def cases() -> list[making.Case]:
  """Run folders of strangers."""
  of_run = '--run={d}/run'
  config = 'run/config.json'

  return [
    making.Case('evaluate', of_run, ('{d}/run',)),
    making.Case('evaluate', of_run, ('config.json',), making.text('run/other', '')),
    making.Case('evaluate', of_run, ('config.json', 'JSON'), making.text(config, '{')),
    making.Case(
      'evaluate', of_run, ('config.json', 'JSON'), making.text(config, '[' * 10**5)
    ),
    making.Case('evaluate', of_run, ('config.json',), making.text(config, '[]')),
    making.Case(
      'evaluate', of_run, ('config.json',), making.text(config, '{"flags": 1}')
    ),
    making.Case(
      'evaluate', of_run, ('config.json', 'JSON'), making.text(config, '\xff\xfe')
    ),
    making.Case('evaluate', of_run, ('--task',), making.run(task=['digits'])),
    making.Case('evaluate', of_run, ('--seed',), making.run(seed={})),
    making.Case(
      'evaluate', of_run, ('--label_fractions',), making.run(label_fractions=0.5)
    ),
    making.Case(
      'evaluate', of_run, ('--encoder_width',), making.run(encoder_width='wide')
    ),
    making.Case(
      'evaluate', of_run, ('--data_dir',), making.run(task='cases', data_dir='/etc')
    ),
    making.Case(
      'evaluate',
      of_run,
      ('partition_encoder',),
      making.run(partition_encoder='/x.keras'),
    ),
    making.Case('evaluate', of_run, ('have changed since',), making.run()),
    making.Case('compare', '--runs={d}/run --out={d}/o', ('{d}/run',)),
    making.Case(
      'compare', '--runs={d}/run --out={d}/o', ('metrics.csv',), making.run()
    ),
    making.Case(
      'compare',
      '--runs={d}/run --out={d}/o',
      ('metrics.csv', 'round'),
      lambda d: (making.run()(d), making.text('run/metrics.csv', 'loss\n1\n')(d)),
    ),
    making.Case(
      'compare',
      '--runs={d}/run --out={d}/o',
      ('metrics.csv', 'round'),
      lambda d: (making.run()(d), making.text('run/metrics.csv', 'round\ninf\n')(d)),
    ),
    making.Case(
      'fedema', making.RUN, ('client_states.sqlite', 'config.json'), making.states
    ),
  ]
