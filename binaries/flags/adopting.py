"""The flags that programs adopt from a run that they read, which may be a stranger's.

config.json is data. Only values of the flags listed here are taken from it: numbers,
choices and a few texts that describe the run. A flag that is a path, an address or a
command is never among them, and neither is one that opens a port, downloads or sends
anything. A test goes over all flags.
"""

from collections.abc import Collection, Mapping

from absl import flags

from binaries.flags import common

# Values that describe a run.
ADOPTED = frozenset(
  """
  accumulate accuracy_every adaptation_rate aggregation algorithm alignment_weight
  augmentation autoscaler averaged averaging batch_size checkpoint_every
  classify client_beta_2 client_learning_rate client_momentum client_nesterov
  client_optimizer client_schedule client_schedule_factor client_schedule_steps
  client_warmup_rounds client_weight_decay clients_per_round clusters columns
  consensus_weight consistency constant_mu dictionary_size divergence_norm
  divergence_of drop_last_batch edge_probability ema_on encoder encoder_norm
  encoder_patch encoder_stem encoder_width encoding_norm evaluate_every
  evaluation_methods examples_per_client_at_most feature_weight fit
  finetune_learning_rate finetune_steps folders frozen_statistics helper_interval
  helpers image_size inner_rate knn_every knn_k label_fractions local_crops
  local_epochs local_steps loss mask_ratio mask_steps method objective
  off_diagonal_weight packs participation partition personal_clients personal_methods
  pixel_range precision predictor predictor_width privacy_clip_quantile
  privacy_cohorts privacy_delta privacy_epsilon privacy_metrics_clip
  privacy_noise_multiplier privacy_statistics_clip privacy_update_clip projector
  prototypes proximal_weight proximity_weight queue_size raw_teacher replaced
  reset_target restart_absent rounds scaler second_order secure_bound secure_examples
  secure_rows_of_one_client seed server_batch_size server_epochs server_hospital
  server_labels server_learning_rate server_momentum server_optimizer server_schedule
  server_schedule_factor server_schedule_steps server_training_rate
  server_warmup_rounds server_weight server_weight_decay spectral_mu stages
  stale_statistics stop_gradient supervised_augmentation supervised_labels
  supervised_steps swav_queue target_momentum task tau temperature threshold
  threshold_quantile validation weighting
  """.split()  # noqa: SIM905
)

# Paths that an encoder's evaluation depends on, and the leave to follow links: they
# must be given again.
GIVEN_AGAIN = ('data_dir', 'follow_links', 'partition_encoder', 'mask_dir', 'scaling')

# Flags of runs that evaluation does not need: where a run was, what it started from,
# who computed it or was told of it, and what it was compared with.
NOT_ADOPTED = frozenset(
  """
  alignment_run baselines download export_clients graph host_timeout
  i_trust_this_network init_from parts run run_dir runtime strict trackers
  transfer_data_dir unused_flags worker_address worker_addresses
  """.split()  # noqa: SIM905
)


def adopt(stored: Mapping[str, object], may_be_given: Collection[str]) -> None:
  """Sets the flags to those of a run, except those on the command line.

  Args:
    stored: Value by name; names that this binary does not have are ignored.
    may_be_given: Flags to which the command line may give another value.

  Raises:
    ValueError: If another flag's given value is not the run's, if a flag that is not
      adopted has another value in the run and is not given, or if a value of the run is
      invalid.
  """
  # Only our own flags: those of absl are not settings of a run.
  for name in sorted(stored.keys() & common.flag_values().keys() - NOT_ADOPTED):
    flag = flags.FLAGS[name]
    if name not in ADOPTED:
      # A flag that is not listed may be new: it is not silently left out.
      if not flag.present and stored[name] not in (None, flag.value):
        raise ValueError(
          f'The run has --{name}={stored[name]}, which is not taken from the folder of '
          f'a run: give --{name} on the command line.'
        )
    elif not flag.present:
      try:
        value = stored[name]
        flag.value = None if value is None else flag.parser.parse(value)
      except (AttributeError, TypeError, ValueError) as error:
        raise ValueError(f'The run has --{name}={stored[name]}: {error}') from error
    elif name not in may_be_given and flag.value != stored[name]:
      raise ValueError(
        f'--{name}={flag.value} is given, but the run has --{name}={stored[name]}; '
        f'only {", ".join(may_be_given)} may differ.'
      )
