"""The coordinator of a run at sites: a training program with `--runtime=sites`.

It has no data, and so no numbers of labels; `site_part` is the other side.
"""

import collections
import dataclasses
import sys
from typing import Any

import numpy as np

from binaries.building import aggregation
from binaries.building import algorithms
from binaries.building import sites
from binaries.config import run_config
from binaries.experiment import evaluating
from binaries.experiment import experiments
from binaries.experiment import private
from binaries.experiment import results
from binaries.experiment import site_judging
from tasks import at_sites
from tff_ssl.federated import parts
from tff_ssl.partition import describe
from tff_ssl.simulation import client_data
from tff_ssl.sites import coordinator
from tff_ssl.sites import keys as keys_lib
from tff_ssl.sites import mailbox as mailbox_lib
from tff_ssl.sites import participation
from tff_ssl.sites import site_rounds

# What an offer says.
CONFIG, SOURCE = 'config', 'source'


def prepare(config: run_config.RunConfig) -> experiments.Experiment:
  """Builds the coordinator's side of a run.

  Args:
    config: The run, with its settled values.

  Raises:
    ValueError: If the run cannot be at sites, or keys are missing.
  """
  sent = sites.offered(config)
  config = dataclasses.replace(config, encoder=sent.encoder)
  task = at_sites.load(config.data.image_size)
  blank = client_data.ArrayClientData(
    task.train.fields, task.train.example_id, {'none': np.array([0])}
  )
  built = sites.build(sent, task, blank.element_type_structure)
  in_parts = parts.build_parts(built.graph, sites.parties_of(sent))
  participation.check(in_parts)
  own: Any = config.runtime
  names = sites.names_of(own)
  ends = coordinator.Ends(
    mailbox_lib.Mailbox(own.mailbox),
    keys_lib.Keys(own.keys),
    str(config.run_dir),
    names,
    coordinator.Settings(own.fewest or len(names), own.deadline, own.masked),
    say,
  )
  offer = {CONFIG: run_config.to_json(sent), SOURCE: sites.source()}
  rounds = site_rounds.SiteRounds(in_parts, ends, offer)
  # Who the clients are is not known here.
  none = np.zeros([0], np.int64)
  nobody = describe.PartitionReport((), none, none[:, np.newaxis], none, 0)
  evaluator = evaluating.Evaluator(config, task, built.encoder)
  evaluator.skipped = 'The coordinator has no pictures: sites judge by sums.'

  def evaluate(state: Any, round: int) -> results.Numbers:
    if not sites.is_judged(config):
      # Nothing is asked, or sums to judge by would have no noise.
      return collections.OrderedDict()
    judged = site_judging.judge(
      lambda question, values, shapes: rounds.judge(question, round, values, shapes),
      built.encoder,
      made.of_encoder(made.weights(state)),
      made.of_encoder(made.weights(rounds.initial)),
      sites.classes_of(config),
    )
    if round == config.rounds:
      print('\n'.join(judged.lines))
    return judged.numbers

  together, population = sites.of_all_sites(sent)
  share_bound, statistics = experiments.sent_of_encodings(
    algorithms.of(config), built.objective
  )
  clips = aggregation.clip_norms(
    together, [1] * population, share_bound, private.clipped(built.graph)
  )
  run = private.with_ledger(together, rounds, built.graph, population, statistics)
  made = experiments.Experiment(
    config,
    task,
    nobody,
    built.encoder,
    built.objective,
    run,
    lambda round: round,
    evaluator,
    evaluate=evaluate,
    finish=rounds.finish,
    clip_norms=clips,
  )
  return made


def say(text: str) -> None:
  """Shows a sentence beside the progress of rounds."""
  print(text, file=sys.stderr, flush=True)
