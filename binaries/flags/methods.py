"""Flags that name a method, and flags that only some methods take.

`methods.table` says which methods take a flag, and what their defaults are.
"""

from absl import flags

from binaries.flags import paths
from tff_ssl.algorithms.divergence_aware import fedema
from tff_ssl.algorithms.divergence_aware import online_networks
from tff_ssl.computing import checks

ALGORITHM = flags.DEFINE_string(
  'algorithm',
  None,
  'What is run; in fedavg_ssl, what minimises the objective.',
)
OBJECTIVE = flags.DEFINE_string(
  'objective', None, 'What is minimised, in fedavg_ssl, dec_ssl and benchmark.'
)
METHOD = flags.DEFINE_string(
  'method', None, 'What is run, in fedema, ssfl, dec_ssl and fedsup.'
)
CHOOSERS = ('algorithm', 'objective', 'method')

UNUSED_FLAGS = flags.DEFINE_enum(
  'unused_flags',
  'error',
  ('error', 'warn'),
  'What happens to flags that the chosen method does not use: an error, or a warning '
  'and a run without them, so that one command line suits several methods.',
)

INIT_FROM = paths.define(
  'init_from',
  None,
  'Folder of a run from whose newest weights this run starts: the weights of the '
  'encoder, and of other networks that are the same in both runs; or an encoder.keras '
  'of ours, for the encoder only.',
)

# Objectives.
LOSS = flags.DEFINE_enum(
  'loss',
  None,
  ('cco', 'vicreg', 'spectral'),
  'Loss of the statistics, for dcco.',
)
SPECTRAL_MU = flags.DEFINE_float(
  'spectral_mu', 4.0, 'Greatest squared length of an encoding, for the spectral loss.'
)
OFF_DIAGONAL = flags.DEFINE_float('off_diagonal_weight', 20.0, "CCO's lambda.")
ENCODING_NORM = flags.DEFINE_float(
  'encoding_norm',
  None,
  'For cco and vicreg: encodings farther than this from the mean encoding of a few '
  'noise inputs are moved towards it, to this distance. This bounds the statistics '
  'that a client sends. Without --privacy_statistics_clip a private run clips them to '
  'that bound, which in effect clips nothing. By default encodings are not moved.',
)
TEMPERATURE = flags.DEFINE_float(
  'temperature', None, 'Temperature of a contrastive loss, of SwAV or of DINO.'
)
PREDICTOR_WIDTH = flags.DEFINE_integer(
  'predictor_width',
  None,
  "Hidden units of the predictor; by default the method's, or the objective's paper's.",
  lower_bound=1,
)
TARGET_MOMENTUM = flags.DEFINE_float(
  'target_momentum',
  None,
  'Momentum of the target or key network; in DINO in the first round.',
)
RESET_TARGET = flags.DEFINE_bool(
  'reset_target',
  False,
  'Whether the target or key network that a client keeps (fed_ssl) starts each round '
  'as the global one; a queue is kept.',
)
QUEUE_SIZE = flags.DEFINE_integer(
  'queue_size', 1024, 'Keys in the queue.', lower_bound=1
)
SWAV_QUEUE = flags.DEFINE_integer(
  'swav_queue',
  0,
  'Number of earlier images of a client whose encodings are assigned to prototypes '
  'together with those of a small batch; 0: none.',
  lower_bound=0,
)
PROTOTYPES = flags.DEFINE_integer(
  'prototypes', 256, 'Prototypes of SwAV and DINO.', lower_bound=1
)
LOCAL_CROPS = flags.DEFINE_integer(
  'local_crops',
  4,
  'Crops in DINO that only the student sees, with half the side of the images.',
  lower_bound=0,
)
MASK_RATIO = flags.DEFINE_float(
  'mask_ratio', 0.75, "Share of an image's patches that MAE masks."
)
PREDICTOR = flags.DEFINE_bool('predictor', True, 'Whether there is a predictor.')
STOP_GRADIENT = flags.DEFINE_bool(
  'stop_gradient', True, 'Whether no gradient trains the target.'
)
ALIGNMENT_WEIGHT = flags.DEFINE_float(
  'alignment_weight',
  0.0,
  "For fedca: beta, weight of the distance from the base model's features. For "
  "featarc: lambda, weight of the distance from the cluster's features.",
)

# DCCO and centralized training.
LOCAL_STEPS = flags.DEFINE_integer(
  'local_steps',
  1,
  'Steps of a client in a round; for fedavg_cco and fedavg_nt_xent another name of '
  '--local_epochs.',
  lower_bound=1,
)
STALE = flags.DEFINE_bool(
  'stale_statistics', False, 'dcco with the statistics of the previous round.'
)
FROZEN = flags.DEFINE_bool(
  'frozen_statistics',
  False,
  'Whether all --local_steps of dcco use the statistics from the start of the round, '
  'instead of statistics that move with the client; at most rates they then diverge.',
)
SUPERVISED_AUGMENTATION = flags.DEFINE_enum(
  'supervised_augmentation',
  'flips',
  ('flips', 'views'),
  'What supervised trains on: images, mirrored if those of --augmentation are; or '
  'views by the complete --augmentation, with crops and colours.',
)
SUPERVISED_LABELS = flags.DEFINE_float(
  'supervised_labels', 0.1, 'Share of the training labels that supervised gets.'
)

# FedEMA, FedU, FeatARC and FedCA.
TAU = flags.DEFINE_float(
  'tau', 0.7, "For the autoscaler: mu in a client's second round."
)
SCALER = flags.DEFINE_float(
  'scaler', None, 'A constant lambda; by default the autoscaler sets one per client.'
)
AUTOSCALER = flags.DEFINE_enum(
  'autoscaler',
  fedema.ON_RETURN,
  fedema.AUTOSCALERS,
  "When a client's lambda is set: when it takes part again, or in the round of its "
  'first training by a second exchange, as in the paper. Both are the same if all '
  'clients are in each round.',
)
CONSTANT_MU = flags.DEFINE_float(
  'constant_mu', None, 'A constant mu; by default it follows from the divergence.'
)
EMA_ON = flags.DEFINE_enum(
  'ema_on', fedema.BOTH, fedema.APPLIED_TO, 'The networks to which mu applies.'
)
DIVERGENCE_OF = flags.DEFINE_enum(
  'divergence_of',
  online_networks.GLOBAL,
  online_networks.DIVERGENCES,
  "Divergence: how far the global networks are from a client's own (global, as in the "
  "papers), or how far the client's last training moved its own (training, as in the "
  "authors' code).",
)
DIVERGENCE_NORM = flags.DEFINE_enum(
  'divergence_norm',
  None,
  tuple(online_networks.NORMS),
  "Norm of the divergence; by default the method's, and for fedema conv_mean with "
  '--scaler or --divergence_of=training, otherwise l2.',
)
THRESHOLD = flags.DEFINE_float(
  'threshold',
  None,
  'For fedu: least divergence at which a client keeps its predictor. For fixmatch, '
  'fedrgd and fedmatch: least probability of a pseudo-label.',
)
THRESHOLD_QUANTILE = flags.DEFINE_float(
  'threshold_quantile',
  None,
  "In place of fedu's --threshold: share of the clients that take the global "
  'predictor, namely those with the smallest divergences.',
)
AVERAGED = flags.DEFINE_enum(
  'averaged',
  online_networks.ONLINE,
  online_networks.AVERAGED,
  "Which of a client's encoders is sent and averaged.",
)
REPLACED = flags.DEFINE_enum(
  'replaced',
  online_networks.ONLINE,
  online_networks.REPLACED,
  "Which of a client's encoders the global one replaces.",
)
RESTART_ABSENT = flags.DEFINE_bool(
  'restart_absent',
  False,
  'Whether clients absent from the previous round start again from the global model.',
)
CLUSTERS = flags.DEFINE_integer(
  'clusters', 2, 'C, number of cluster models of featarc.', lower_bound=1
)
DICTIONARY_SIZE = flags.DEFINE_integer(
  'dictionary_size',
  16,
  'm, number of representations of its examples that a client shares with all others.',
  lower_bound=0,
)
ALIGNMENT_RUN = paths.define(
  'alignment_run',
  None,
  'Folder of a finished run on public data, whose encoder is the base model.',
)

# Learning without a server.
EDGE_PROBABILITY = flags.DEFINE_float(
  'edge_probability',
  0.7,
  'Edge probability of random_graph; --seed redraws disconnected graphs.',
)
GRAPH = paths.define(
  'graph',
  None,
  'CSV file of the adjacency matrix, 0 and 1, with the clients in their order.',
)

# SSFL.
CONSENSUS = flags.DEFINE_float(
  'consensus_weight',
  0.1,
  "lambda of per: weight of the agreement with the global model's views.",
)
PROXIMITY = flags.DEFINE_float('proximity_weight', 0.1, 'lambda of bilevel.')
INNER_RATE = flags.DEFINE_float(
  'inner_rate', 0.01, "Rate of maml's inner step, and of the step in its evaluation."
)
SECOND_ORDER = flags.DEFINE_bool(
  'second_order', True, "Whether maml's gradient goes through the inner step."
)
ADAPTATION_RATE = flags.DEFINE_float(
  'adaptation_rate', 0.01, "Rate of la's step before an evaluation."
)

# Labels at the server.
SERVER_LABELS = flags.DEFINE_float(
  'server_labels',
  0.1,
  'Share of the labelled training examples that the server has; 1 means all of them, '
  'if the task comes with unlabelled examples.',
)
SERVER_HOSPITAL = flags.DEFINE_string(
  'server_hospital', None, 'The hospital of ham10000 whose lesions the server has.'
)
SERVER_EPOCHS = flags.DEFINE_integer(
  'server_epochs', 1, 'Epochs at the server in a round.', lower_bound=1
)
SERVER_BATCH = flags.DEFINE_integer(
  'server_batch_size', 128, 'Examples per gradient at the server.', lower_bound=1
)
SERVER_RATE = flags.DEFINE_float(
  'server_training_rate', 1e-3, "Rate of the server's training."
)
ACCURACY_EVERY = flags.DEFINE_integer(
  'accuracy_every',
  1,
  "Rounds between tests of teacher's and student's classifiers; 0: only at the end.",
  lower_bound=0,
)
AVERAGING = flags.DEFINE_enum(
  'averaging', 'groupwise', ('groupwise', 'fedavg'), "How clients' models are averaged."
)
SERVER_WEIGHT = flags.DEFINE_float(
  'server_weight', 1.0, "Weight of the server's model in a group, in clients."
)
CONSISTENCY = flags.DEFINE_bool(
  'consistency', True, 'Whether FedSup has its consistency loss.'
)
RAW_TEACHER = flags.DEFINE_bool(
  'raw_teacher',
  False,
  "Whether FedSup's teacher projects unaugmented images, not the augmented views.",
)
STAGES = flags.DEFINE_integer(
  'stages',
  None,
  'Stages whose feature maps FedSup compares; by default all; 0: none.',
  lower_bound=0,
)
FEATURE_WEIGHT = flags.DEFINE_float(
  'feature_weight', 1e-4, 'lambda_s of the weight lambda_s^(t/T) of the feature maps.'
)
HELPERS = flags.DEFINE_integer(
  'helpers', 2, 'H, helper models that a fedmatch client receives.', lower_bound=1
)
HELPER_INTERVAL = flags.DEFINE_integer(
  'helper_interval', 10, 'Rounds between rounds with helpers.', lower_bound=1
)
OF_SERVER_DATA = (
  'server_labels',
  'server_hospital',
  'server_epochs',
  'server_batch_size',
  'server_training_rate',
  'accuracy_every',
)


def check() -> None:
  """Refuses values that an objective would refuse, before the data are read.

  Raises:
    ValueError: If one is out of range.
  """
  for flag in (SPECTRAL_MU, ENCODING_NORM, TEMPERATURE):
    if flag.value is not None:
      checks.positive(**{flag.name: flag.value})
  for flag in (OFF_DIAGONAL, ALIGNMENT_WEIGHT):
    checks.not_negative(**{flag.name: flag.value})
  checks.below_one(**{MASK_RATIO.name: MASK_RATIO.value})
  if TARGET_MOMENTUM.value is not None:
    checks.fraction(**{TARGET_MOMENTUM.name: TARGET_MOMENTUM.value})
