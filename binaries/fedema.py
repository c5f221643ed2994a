r"""Pretrains an encoder with stateful clients: FedEMA, FedU, and their baselines.

  python -m binaries.fedema --method=fedema --task=cifar10 \
      --data_dir=~/tensorflow_datasets --partition=classes:per_client=2,clients=5 \
      --participation=1 --local_epochs=5 --batch_size=128 --client_learning_rate=0.032 \
      --client_momentum=0.9 --client_weight_decay=5e-4 --client_schedule=cosine \
      --rounds=100 --run_dir=runs/fedema

The methods: `fed_simclr` and `fed_simsiam`, which are FedAvg; `fed_moco_v1`,
`fed_moco_v2` and `fed_byol`, whose key and target networks stay on their client; `fedu`
and `fedema`, whose clients also keep their online networks. Flags for the paper's
ablations: --target_momentum=0 (no EMA of the target), --nopredictor,
--nostop_gradient, --averaged and --replaced (which networks are shared), --ema_on,
--constant_mu. --autoscaler says when a client's lambda is set, which matters if not all
clients are in each round. --divergence_of=training uses the divergence of the authors'
code. With the paper's divergence mu may reach 1 and stay there, so that a client never
takes the global model again; a run warns of this. --threshold_quantile is for `fedu` if
no divergence reaches the paper's threshold.

In `fedca` the server keeps a dictionary: --dictionary_size representations of each
client, for the other clients. With --alignment_weight above 0 clients are also aligned
to the encoder of --alignment_run: a finished run on public data, such as one of
`binaries.fedavg_ssl --algorithm=centralized` on another task.

Clients of `fedu` and `fedema` have their own encoders: the online encoders that they
keep. With --personal_methods, --personal_clients or --export_clients, these are
evaluated together with the global encoder: each time by kNN, and at the end by
--personal_methods. On a finished run, the same command with --personal_methods or
--export_clients does what is still missing.

`clients.csv` in the run folder has a row for each round and client, with mu, divergence
and lambda; `binaries.compare` draws them.
"""

from binaries.experiment import running
from binaries.flags import common
from binaries.methods import choice


def main() -> None:
  """Runs an experiment, or resumes it."""
  running.run('fedema')


if __name__ == '__main__':
  common.run(main, choice.flags_of('fedema'))
