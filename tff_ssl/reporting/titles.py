"""Names of methods and objectives as papers print them."""

# Kind of a method -> its name, and its own objective, which need not be said.
METHODS = {
  'align_only': ('FeatARC, one cluster', ''),
  'bilevel': ('BiLevel-SSFL', 'simsiam'),
  'centralized': ('centralized', ''),
  'centralized_steps': ('centralized, whole clients', ''),
  'cluster_only': ('FeatARC without alignment', ''),
  'complete': ('complete graph', ''),
  'dcco': ('DCCO', 'cco'),
  'featarc': ('FeatARC', ''),
  'fed_byol': ('Fed-BYOL', 'byol'),
  'fed_ssl': ('FedAvg, own targets', ''),
  'fedavg': ('FedAvg', ''),
  'fedbn': ('FedBN', ''),
  'fedca': ('FedCA', 'fedca'),
  'fedema': ('FedEMA', 'byol'),
  'fedmatch': ('FedMatch', 'fedmatch'),
  'fedprox': ('FedProx', ''),
  'fedrgd': ('FedRGD', 'fixmatch'),
  'fedsc': ('FedSC', 'spectral'),
  'fedsup': ('FedSup', 'fedsup'),
  'fedu': ('FedU', 'byol'),
  'fedu2': ('FedU2', ''),
  'graph': ('graph', ''),
  'l_dawa': ('L-DAWA', ''),
  'la': ('LA-SSFL', 'simsiam'),
  'labelled_only': ('labels of the server alone', 'supervised'),
  'maml': ('MAML-SSFL', 'simsiam'),
  'orchestra': ('Orchestra', 'orchestra'),
  'per': ('Per-SSFL', 'simsiam'),
  'random_graph': ('random graph', ''),
  'ring': ('ring', ''),
  'scaffold': ('SCAFFOLD', ''),
  'server_finetuned': ('fine-tuned at the server', ''),
  'ssd': ('SSD', 'ssd'),
  'star': ('star', ''),
  'tree': ('tree', ''),
}
OBJECTIVES = {
  'byol': 'BYOL',
  'cco': 'CCO',
  'dino': 'DINO',
  'fedca': 'FedCA',
  'fedmatch': 'FedMatch',
  'fedsup': 'FedSup',
  'fixmatch': 'FixMatch',
  'lejepa': 'LeJEPA',
  'mae': 'MAE',
  'moco_v1': 'MoCo v1',
  'moco_v2': 'MoCo v2',
  'orchestra': 'Orchestra',
  'simclr': 'SimCLR',
  'simsiam': 'SimSiam',
  'spectral': 'spectral',
  'ssd': 'SSD',
  'supervised': 'supervised',
  'swav': 'SwAV',
  'uniformity': 'alignment and uniformity',
  'vicreg': 'VICReg',
}


def of_method(method: str, objective: str = '') -> str:
  """Returns a method's name in print: 'DCCO', or 'FedAvg + SimCLR'.

  Args:
    method: The kind of the method; one of the reader's own keeps its kind.
    objective: The kind of the objective; a method's own one is not said.
  """
  name, own = METHODS.get(method, (method, ''))
  if objective in ('', own):
    return name
  return f'{name} + {OBJECTIVES.get(objective, objective)}'


def is_named(name: str, method: str, objective: str) -> bool:
  """Returns whether a name is that of a method with an objective.

  Args:
    name: The name, in print or of the command line: a method, an objective, or both
      with a colon between them, as in 'fedavg:simclr'.
    method: The kind of the method.
    objective: The kind of the objective.
  """
  both = of_method(method), of_method(method, objective), f'{method}:{objective}'
  return name in (method, objective, *both)
