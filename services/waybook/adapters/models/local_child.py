"""The program of a local model: llama.cpp's own server on loopback, for as long as standard input stays open.

A process of its own, so that no answer holds up heartbeats (DESIGN 4, claims, rule 8) and a crash in native code ends
no walker. It prints one line of JSON, `{"url": ...}`, when it answers, and ends with whoever started it.
"""

import argparse
import json
import os
import signal
import sys

KEY = "WAYBOOK_LOCAL_SERVER_KEY"


def main() -> None:
    """Serves until standard input ends. A model that cannot be loaded is an exception of the library."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for who started this: standard input ends then
    given = _arguments()
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = given.file
    params.model_alias = {given.name}
    params.n_ctx = given.context
    params.n_parallel = 1
    params.n_gpu_layers = 0
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.api_keys = [os.environ[KEY]]
    params.verbosity = 0
    params.warmup = False
    params.ui = False
    for threads in (params.cpuparams, params.cpuparams_batch):
        threads.n_threads = given.threads
        threads.poll = 0  # waiting threads spin otherwise, and take the cores from the ones that they wait for
    server = xllamacpp.Server(params)
    print(json.dumps({"url": server.listening_address}), flush=True)  # noqa: T201  read by LocalServer
    while sys.stdin.buffer.read(4096):
        pass
    os._exit(0)  # a question under way is not waited for


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--file", required=True)
    parser.add_argument("--name", required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--context", type=int, required=True)
    return parser.parse_args()


if __name__ == "__main__":
    main()
