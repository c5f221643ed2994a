r"""Takes part in a run with data of your own, which stay here.

  python -m binaries.site --new_key --name=north --keys=keys
  python -m binaries.site --name=north --task=folder --data_dir=PICTURES \
      --mailbox=MAILBOX --keys=keys --folder=site
  python -m binaries.site --what_left --folder=site

The first command makes this site's key, `keys/own.key`, which stays here, and
`keys/north.pub`, which the coordinator gets; the coordinator's `coordinator.pub`, made
in the same way with --name=coordinator, comes into the same folder.

The second waits for the coordinator's offer in the mailbox, a folder that anything may
carry. It reads the pictures once, and shows what would leave this site in each round.
Only if you agree does it take part, until the run ends; the same command goes on after
a stop. `rules.toml` in --folder says what you never agree to. `outbox.log` there has a
line for each message that left, which the third command prints.
"""

import dataclasses
import pathlib

from binaries.config import changing
from binaries.config import command_line
from binaries.config import data as data_lib
from binaries.config import run_config
from binaries.launching import program
from tff_ssl.settings import methods
from tff_ssl.settings import objectives


@dataclasses.dataclass(frozen=True)
class Options:
  """A site, and the data that it holds.

  Attributes:
    name: The site's name, as the coordinator knows it.
    task: Data set: folder, cases, or any other of pictures.
    data_dir: Where the data are.
    data: How else they are read, as in folders=client.
    columns: The table's own names of columns, as in image=Photo,client_id=Patient.
    partition: How the pictures are dealt to clients, as in iid:examples=4; none: by the
      clients or cases that the data name.
    mailbox: Folder of the messages.
    keys: Folder of the site's own key, and of the public ones of others.
    folder: The site's own folder.
    rules: File of what the site agrees to; none: rules.toml in the folder.
    accept: The first 12 characters of the offer that you agree to; none: you are asked.
    new_key: Whether to make a key, and nothing else.
    what_left: Whether to print what has left the site, and nothing else.
  """

  name: str | None = None
  task: str = 'folder'
  data_dir: str | None = None
  data: command_line.Changes = command_line.UNCHANGED
  columns: tuple[str, ...] | None = None
  partition: str | None = None
  mailbox: str | None = None
  keys: str | None = None
  folder: str | None = None
  rules: str | None = None
  accept: str | None = None
  new_key: bool = False
  what_left: bool = False


def main(options: Options) -> None:
  """Makes a key, prints what left, or takes part."""
  if options.what_left:
    _print_left(_given(options, 'folder'))
    return
  name, keys = _given(options, 'name'), _given(options, 'keys')
  if options.new_key:
    # Only here, like what follows: --help needs neither cryptography nor TensorFlow.
    from tff_ssl.sites import keys as keys_lib

    public = keys_lib.make(keys, name)
    print(f'Made {public.with_name(keys_lib.OWN)}, which stays here, and {public}.')
    return
  mailbox, folder = _given(options, 'mailbox'), _given(options, 'folder')
  for flag, path in (('mailbox', mailbox), ('data_dir', options.data_dir)):
    if path is not None and not pathlib.Path(path).exists():
      raise ValueError(f'--{flag} is {path!r}, which is not there; it must be.')
  config = run_config.RunConfig(
    methods.FedAvg(),
    objectives.Simclr(),
    task=options.task,
    data=data_lib.Data(dir=options.data_dir, columns=options.columns),
    partition=options.partition,
  )
  config = changing.changed(config, {'data': options.data})
  from binaries.config import checks

  checks.check_data(config)
  program.import_tff()
  from binaries.experiment import site_part

  settings = site_part.Settings(
    name, mailbox, keys, folder, options.rules, options.accept
  )
  site_part.take_part(settings, config)


def _given(options: Options, name: str) -> str:
  """Returns an option that must be given.

  Raises:
    ValueError: If it is not.
  """
  value = getattr(options, name)
  if value is None:
    raise ValueError(f'--{name} is not given; {_WHAT[name]}.')
  return str(value)


_WHAT = {
  'name': 'it must be the name of this site',
  'keys': 'it must name the folder of its keys',
  'mailbox': 'it must name the folder of messages',
  'folder': 'it must name a folder of this site alone, new or of this run',
}


def _print_left(folder: str) -> None:
  from tff_ssl.sites import chains

  if not pathlib.Path(folder).is_dir():
    raise ValueError(f'--folder is {folder!r}, which is no folder; it must be one.')
  left = chains.read_log(pathlib.Path(folder) / chains.OUTBOX)
  for line in left:
    about = ' '.join(
      f'{name} {line[name]}' for name in ('round', 'exchange') if name in line
    )
    print(
      f'{line["time"]}  {line["kind"]:6} {about:24} {line["bytes"]:>10,} bytes  '
      f'norm {line["norm"]}  {line["digest"][:12]}'
    )
  print(f'{len(left)} messages, {sum(line["bytes"] for line in left):,} bytes')


if __name__ == '__main__':
  program.run('site')
