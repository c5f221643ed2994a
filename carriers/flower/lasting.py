"""Runs the carrier's client at a site for as long as its SuperNode runs.

  python carriers/flower/lasting.py --runtime=127.0.0.1:9094 --secret=FILE

By itself a SuperNode starts a process for each message, and runs in it whatever code
the SuperLink sends. With `--isolation=process` it starts none: this process takes its
tasks, and does them with `mail/client_app.py` as it is on this disk. Code that was sent
is not even unpacked.

Flower has no public interface for that: these are the steps of its `flwr-clientapp`, of
the release in requirements.txt.
"""

import argparse
from collections.abc import Iterator
import contextlib
import logging
import pathlib
import time

from flwr.app import Error
from flwr.app import Message
from flwr.common.constant import ErrorCode
from flwr.common.constant import SubStatus
from flwr.common.logger import log
from flwr.proto import runtime_pb2
from flwr.supercore import heartbeat
from flwr.supercore import interceptors
from flwr.supercore import retry
from flwr.supercore import runtime
from flwr.supercore.constant import TaskType
from flwr.supernode.runtime import run_clientapp
import httpx
from mail import client_app

# Seconds between two questions whether there is a task: more and more.
_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 0.5
_ACQUIRE = '/flwr.proto.Runtime/AcquireTask'


def _client(
  address: str, interceptor: interceptors.RuntimeTokenHttpInterceptor
) -> runtime.RuntimeHttpClient:
  """Returns what speaks with the SuperNode, which is on this machine."""
  version = interceptors.RuntimeVersionHttpInterceptor(component_name='flwr-clientapp')
  return runtime.RuntimeHttpClient.from_server_address(
    server_address=address,
    insecure=True,
    root_certificates=None,
    interceptors=[version, interceptor],
    retry_invoker=retry.make_simple_http_retry_invoker(),
  )


def _do(client: runtime.RuntimeHttpClient) -> None:
  """Does a task: takes its message, and gives the reply."""
  message, context, _, _ = run_clientapp.pull_task_input(client)
  status, details = SubStatus.COMPLETED, ''
  try:
    reply = client_app.app(message=message, context=context)
  except Exception as error:
    log(logging.ERROR, 'A message was not carried.', exc_info=error)
    status, details = SubStatus.FAILED, str(error)
    about = Error(ErrorCode.CLIENT_APP_RAISED_EXCEPTION, details)
    reply = Message(about, reply_to=message)
  run_clientapp.push_message(client, reply, context)
  run_clientapp.push_task_output(client, context, status, details)


@contextlib.contextmanager
def _beating(client: runtime.RuntimeHttpClient) -> Iterator[None]:
  """Tells the SuperNode that a task is being done, until the block ends."""

  # Flower's own would end this process with a task that has been given up.
  def beat() -> bool:
    with contextlib.suppress(httpx.HTTPError):
      client.SendTaskHeartbeat(runtime_pb2.SendTaskHeartbeatRequest())
    return True

  sender = heartbeat.HeartbeatSender(beat)
  sender.start()
  try:
    yield
  finally:
    sender.stop()


def main() -> None:
  """Does the SuperNode's tasks, one after another, until it is stopped."""
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument('--runtime', required=True, help="the SuperNode's --host:--port")
  parser.add_argument('--secret', required=True, help='file of a secret they share')
  options = parser.parse_args()
  secret = interceptors.SuperExecAuthHttpInterceptor(
    master_secret=pathlib.Path(options.secret).read_bytes(),
    protected_methods=frozenset([_ACQUIRE]),
  )
  tasks = _client(options.runtime, secret)
  wanted = runtime_pb2.AcquireTaskRequest(supported_task_types=[TaskType.CLIENT_APP])
  pause = _FIRST_PAUSE
  while True:
    found = tasks.AcquireTask(wanted)
    if found.token:
      pause = _FIRST_PAUSE
      token = interceptors.RuntimeTokenHttpInterceptor(found.token)
      client = _client(options.runtime, token)
      try:
        with _beating(client):
          _do(client)
      except Exception as error:
        # The coordinator asks again once its question has grown too old.
        log(logging.ERROR, 'A task of the SuperNode was lost.', exc_info=error)
      finally:
        client.close()
    else:
      time.sleep(pause)
      pause = min(_LONGEST_PAUSE, 1.3 * pause)


if __name__ == '__main__':
  main()
