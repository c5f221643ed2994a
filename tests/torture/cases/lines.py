"""Whole command lines of programs."""

from collections.abc import Mapping

from tests.torture.cases import making

_LINES: Mapping[str, making.Words] = {
  'dcco': {
    '': ('--run_dir is not given',),
    '--cheese=1': ('cheese',),
    'cheese': ("Unexpected argument 'cheese'",),
  },
  'evaluate': {
    '': ('--run is not given',),
    '--run=': ('--run is not given',),
    '--run={d}/no': ('{d}/no',),
    '--run={d} --rounds=3': ('{d}',),
    '--cheese': ('--cheese',),
  },
  'compare': {
    '': ('runs',),
    '--runs=': ('runs',),
    '--runs={d}/nothing*': ('{d}/nothing*',),
    '--runs={d} --metric=loss': ('{d}',),
    '--runs={d} --curves=cheese': ('curves', 'cheese'),
    '--runs={d} --formats=docx': ('formats', 'docx'),
    '--runs={d} --over=cheese --out={d}/o': ('{d}',),
    '--run={d}': ('--runs is not given',),
    '--runz={d}': ('--runz', 'did you mean --run'),
  },
  'sweep': {
    '': ('--methods is not given',),
    '--methods=cheese': ('cheese',),
    '--methods=fedema,fedema': ('fedema', 'the same method'),
    '--methods=nobody/fedema': ('nobody/fedema',),
    '--methods=fedema/cheese': ('fedema/cheese',),
    '--methods=fedema --seeds=a': ('seeds', "'a'"),
    '--methods=fedema --seeds=1,1': ('seeds', '1,1'),
    '--methods=fedema --seeds=-1': ('seeds', '-1'),
    '--methods=fedema --jobs=0': ('--jobs=0',),
    '--methods=fedema --run_dir={d}/x --out={d}/o': ('--run_dir',),
    '--methods=dcco --tau=0.5 --out={d}/o': ('--tau',),
    '--methods=dcco --rounds=0 --out={d}/o': ('--rounds=0',),
    '--methods=dcco --curves=cheese --out={d}/o': ('cheese',),
  },
  'export': {
    '': ('--run is not given',),
    '--run={d}/no --out={d}/o': ('{d}/no',),
    '--run={d}/no': ('--out is not given',),
    '--run={d}/no --out={d}/o --to=docx': ('to has', 'docx'),
    '--run={d}/no --out={d}/o --to=tflite_training --classifier': ('--classifier',),
    '--run={d}/no --out={d}/o --give_away --classifier': ('--classifier',),
    '--run={d}/no --out={d}/o --unprotected': ('--unprotected',),
    '--run={d}/no --out={d}/o --task=digits': ('--task',),
  },
  'embed': {
    '': ('--run is not given',),
    '--run={d}/no': ('--images is not given',),
    '--run={d}/no --images={d}': ('--out is not given',),
    '--run={d}/no --images={d} --out={d}/o': ('{d}/no',),
    '--run={d}/no --images={d} --out={d}/o --to=docx': ('to has', 'docx'),
    '--run={d}/no --images={d} --out={d}/o --map_images=1': ('--map_images=1',),
    '--run={d}/no --images={d} --out={d}/o --seed=1': ('--seed',),
  },
  'study': {
    '': ('--runs is not given',),
    '--runs={d}/no --out={d}/o': ('{d}/no',),
    '--runs={d}/no --out={d}/o --study_rounds=0': ('study_rounds', '0'),
    '--runs={d}/no --out={d}/o --study_rounds=first': ('study_rounds', 'first'),
    '--runs={d}/no --out={d}/o --study_clients=0': ('--study_clients=0',),
    '--runs={d}/no --out={d}/o --study_images=2': ('--study_images=2',),
    '--runs={d}/no --out={d}/o --task=digits': ('--task',),
  },
  'claims': {
    '--claims=cheese --nostart': ('cheese',),
    '--out={d}/page.txt --nostart': ('.md',),
    '--data=cifar10 --out={d}/p.md --claims=dcco-centralized': ('data', 'cifar10'),
    '--seeds=none --out={d}/p.md': ('seeds', 'none'),
    '--seeds=0 --out={d}/p.md': ('seeds', '0'),
    '--jobs=none': ('--jobs=none',),
    '--runs=a,b --out={d}/p.md': ('runs', 'a,b'),
  },
  'audit': {
    '': ('--run is not given',),
    '--run={d}/no': ('{d}/no',),
    '--run={d}/no --canaries=1': ('--canaries=1',),
    '--run={d}/no --canary_rounds=0': ('--canary_rounds=0',),
    '--run={d}/no --rounds=3': ('--rounds',),
  },
  'worker': {
    '': ('--port is not given',),
    '--port=7001': ('--i_trust_this_network',),
    '--port=0 --i_trust_this_network': ('--port=0',),
    '--port=99999 --i_trust_this_network': ('--port=99999',),
    '--port=7001 --concurrency=0 --i_trust_this_network': ('--concurrency=0',),
    '--port=7001 --intra_op_threads=0 --i_trust_this_network': (
      '--intra_op_threads=0',
    ),
    '--port=7001 --i_trust_this_network --log_path={d}/no/log': ('{d}/no/log',),
  },
  'linear_theory': {
    '--dimensions=': ('dimensions',),
    '--dimensions=ten': ('dimensions', 'ten'),
    '--dimensions=1': ('dimension', '1'),
    '--dimensions=10 --sources=0': ('sources', '0'),
    '--dimensions=10 --beta=-1': ('beta', '-1'),
    '--dimensions=10 --noise=-1': ('noise', '-1'),
    '--dimensions=10 --out={d}/x.txt': ('.png',),
    '--dimensions=10 --out={d}/no/x.png': ('{d}/no',),
    '--dimensions=10 --task=digits': ('--task',),
  },
  'partition': {
    '--csv={d}/nowhere/a.csv': ('--csv', 'nowhere'),
    '--max_clients=0': ('--max_clients=0',),
    '--rounds=3': ('--rounds',),
    '--plot={d}/x.txt': ('--plot', '.png'),
    '--plot={d}/no/x.png': ('{d}/no',),
    '--csv={d}/x.png': ('--csv', '.csv'),
    '--task=cifar100 --nodownload --data_dir={d}': ('{d}', 'not prepared'),
  },
  'benchmark': {
    '--clients=0': ('--clients=0',),
    '--growth_points=1,2': ('growth',),
    '--growth=clients --growth_points=a': ('growth_points',),
    '--memory_rounds=-1': ('--memory_rounds=-1',),
  },
}


def cases() -> list[making.Case]:
  """Command lines, most of programs that do not train."""
  return [
    making.Case(program, line, words)
    for program, of_program in _LINES.items()
    for line, words in of_program.items()
  ]
