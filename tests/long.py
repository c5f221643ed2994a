"""Tests that `make test` leaves to `make test-long`: those that take the most time.

Each takes seconds, and says of one more method, objective or form what the tests that
stay say of their kind.
"""

import pytest

# Of tests that are made of a table, rows by name: those whose client has the form of a
# row that stays (`dcco`, `fedavg_nt_xent`, `l_dawa`, `scaffold`, `fedema`, `fedca` and
# `fedsup`).
_ALGORITHMS = (
  'dcco_stale',
  'dcco_local_steps',
  'fedsc',
  'fedavg_cco',
  'fedavg_batch_norm',
  'fedbn_simsiam',
  'fed_byol',
  'fedu',
  'per_ssfl',
  'bilevel_ssfl',
  'maml_ssfl',
  'fedmatch',
  'fedrgd',
  'server_finetuned_fixmatch',
)
_ROWS = {
  'tests/algorithms/conformance_test.py': _ALGORITHMS,
  # `dcco` and `l_dawa` stay: two exchanges, and values of each client by name.
  'tests/algorithms/forms_test.py': (
    *_ALGORITHMS,
    'scaffold',
    'fedca',
    'fedavg_nt_xent',
  ),
  # `byol`, `cco`, `nt_xent`, `mae` and `supervised` stay.
  'tests/federated/client_steps_test.py': (
    'dino',
    'moco',
    'simsiam',
    'swav',
    'uniformity',
    'vicreg',
  ),
  # `fedavg_nt_xent` stays: a mean of updates.
  'tests/algorithms/secure_table_test.py': (
    *_ALGORITHMS,
    'dcco',
    'decentralized',
    'featarc',
    'fedca',
    'fedema',
    'fedsup',
    'l_dawa',
    'scaffold',
  ),
  'tests/algorithms/secure_test.py': ('stale', 'l_dawa', 'fed_ssl'),
  'tests/algorithms/server_batch_norm_test.py': (
    'fixmatch',
    'simclr',
    'fedrgd',
    'fedmatch',
  ),
  # `sgd` stays: the server's Adam is held by `batch_norm_test` and `optimizers_test`.
  'tests/algorithms/dcco_test.py': ('adam',),
  'tests/algorithms/fed_ssl_test.py': ('_moco',),
  # In packs, in the clear and stateful; the secure and private sums of packs stay too.
  'tests/algorithms/huge_test.py': ('apart', 'stateful', 'private'),
  # `per` stays: two models, each with a population; and BiLevel's rounds by hand.
  'tests/algorithms/own_statistics_test.py': ('bilevel',),
  'tests/algorithms/per_ssfl_test.py': ('bilevel',),
  # `fedema` stays: clients with a state.
  'tests/binaries/benchmark_test.py': ('per_ssfl', 'featarc'),
  'tests/binaries/dcco_test.py': ('fedavg_cco', 'centralized_cco'),
  'tests/binaries/evaluate_test.py': ('fedavg_cco', 'centralized_cco'),
  'tests/binaries/fedavg_ssl_test.py': ('byol', 'fedprox', 'mae'),
  'tests/binaries/fedsup_test.py': ('fedmatch', 'fedrgd', 'labelled_only'),
  'tests/binaries/fields_test.py': ('digits_halves',),
  'tests/encoders/keras_export_test.py': ('resnet50',),
  'tests/encoders/batch_norm_test.py': ('resnet50',),
  # A vision transformer of one block stays.
  'tests/runtime/encoder_file_test.py': ('vit_micro',),
  'tests/runtime/exports_test.py': ('vit_tiny',),
  'tests/runtime/on_device_test.py': ('simsiam', 'supervised'),
}
# Whole tests, whose algorithms have others with other data or networks.
_TESTS = {
  # The notebooks stay, of which one has a loop of its own.
  'tests/documenting/executed_test.py': ('test_the_guide_of_loops',),
  # `cco` stays, whose two exchanges are clipped, and what FedAvg's clients send.
  'tests/algorithms/clipped_packs_test.py': (
    'test_clipped_sums_are_those_of_clients_apart[fedavg]',
    'test_clipped_sums_are_those_of_clients_apart[distributed]',
  ),
  'tests/algorithms/dcco_test.py': ('test_the_vicreg_variant_too',),
  'tests/algorithms/fedema_test.py': (
    'test_without_mu_it_is_fed_byol_of_real_networks_to_the_bit',
  ),
  'tests/algorithms/fedbn_test.py': ('test_rounds_equal_rounds_by_hand[True]',),
  'tests/algorithms/maml_ssfl_test.py': ('test_inner_rate_0_is_fedavg[True]',),
  'tests/algorithms/scaffold_test.py': ('test_clients_that_differ_do_not_drift_apart',),
  'tests/algorithms/server_finetuned_test.py': (
    'test_a_replica_is_in_each_group',
    'test_fixmatch_without_images_at_the_server_is_the_clients_average',
  ),
  'tests/algorithms/l_dawa_test.py': ('test_weighing_all_layers_by_1_is_fedavg',),
  'tests/algorithms/fed_ssl_test.py': (
    'test_key_networks_can_start_each_round_as_the_global_ones',
  ),
  'tests/evaluation/suite_test.py': (
    'test_validation_numbers_are_those_of_testing_on_the_validation_split[True]',
  ),
  'tests/encoders/resnet_test.py': (
    'test_a_batch_of_no_images_has_no_encodings_and_no_gradient[None]',
  ),
  'tests/binaries/privacy_test.py': (
    'test_a_secure_run_says_what_was_clipped',
    'test_in_passes_a_client_counts_as_often_as_it_takes_part[distributed-4-11111]',
  ),
  'tests/binaries/benchmark_test.py': (
    'test_several_values_are_measured_and_their_slope_is_printed',
    'test_json_has_all_numbers_and_nothing_else_is_printed',
  ),
  'tests/docs/race_test.py': ('test_tff_ssl_takes_the_mean_of_the_clients_steps',),
  'tests/binaries/validation_test.py': (
    'test_labels_at_the_server_are_validated_besides_teacher_and_student',
  ),
  'tests/binaries/runtime_test.py': ('test_its_numbers_are_those_of_a_worker',),
  # `conformance_test` has the packs of these two losses, with the same sizes.
  'tests/federated/client_steps_test.py': (
    'test_a_pack_is_the_mean_of_its_clients[cco]',
    'test_a_pack_is_the_mean_of_its_clients[nt_xent]',
  ),
  # `dcco` and `l_dawa` stay, by both kinds of sums.
  'tests/algorithms/forms_test.py': (
    'test_secure_sums_are_all_that_leaves_a_client[decentralized]',
  ),
  'tests/federated/parts_test.py': (
    'test_sums_of_two_parts_are_a_round[True-False]',
    'test_sums_of_two_parts_are_a_round[False-True]',
  ),
  # Of each way to draw cohorts the common budget stays, and the smallest.
  'tests/runtime/accounting_test.py': (
    'test_the_noise_of_a_budget_spends_it[budget1-fixed]',
    'test_the_noise_of_a_budget_spends_it[budget3-fixed]',
    'test_the_noise_of_a_budget_spends_it[budget1-poisson]',
  ),
  'tests/runtime/fed_ssl_rounds_test.py': ('test_fed_byol_resumed',),
}


def is_long(item: pytest.Item) -> bool:
  """Returns whether a test is one of these."""
  file, _, test = item.nodeid.partition('::')
  name, _, row = test.partition('[')
  rows = row.rstrip(']').split('-')
  own = _TESTS.get(file, ())
  return not {name, test}.isdisjoint(own) or not set(rows).isdisjoint(
    _ROWS.get(file, ())
  )


def entries() -> list[tuple[str, str]]:
  """Returns each file with what it must have: a test, or a row."""
  return [
    (file, name)
    for table in (_ROWS, _TESTS)
    for file, names in table.items()
    for name in names
  ]
