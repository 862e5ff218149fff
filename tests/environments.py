"""Environments of the test run that are not the development one.

    .venv/bin/python -m tests.environments kernels chromium

`kernels`: one environment and one kernel spec per tested ipykernel. `chromium`: Debian's browser, if there is none.

A kernel environment holds one pinned ipykernel and borrows everything else from the environment that runs this
script, through a ``.pth`` file that Python reads after the environment's own packages. So a kernel under test differs
from the others in its ipykernel alone, and making one takes seconds. Finished environments carry a stamp and are
left alone the next time.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ENVIRONMENTS = ROOT / ".venvs"
KERNEL_VERSIONS = ("6.31.0", "7.0.1", "7.3.0", "7.4.0")
"""The ipykernel versions that the notebook layer is held to."""
CHROMIUM_VARIABLE = "PI_NOTEBOOK_TEST_CHROMIUM"
CHROMIUM = os.environ.get(CHROMIUM_VARIABLE, "/usr/bin/chromium")


def kernel_name(version: str) -> str:
    """The name of the kernel spec that starts ipykernel `version`."""
    return f"pi-{version}"


def pip_install(environment: Path, *requirements: str, timeout: float | None = None) -> None:
    """Install into `environment` with this interpreter's pip.

    Raises `subprocess.CalledProcessError` when pip fails, `subprocess.TimeoutExpired` after `timeout` seconds.
    """
    python = environment / "bin" / "python"
    command = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", *requirements]
    subprocess.run(command, check=True, timeout=timeout)


def make_kernel(version: str) -> None:
    """Make the environment of ipykernel `version`, unless it is there, and (re)write its kernel spec."""
    environment = ENVIRONMENTS / f"kernel-{version}"
    stamp = environment / ".complete"
    borrowed = sysconfig.get_path("purelib")
    if not stamp.exists() or stamp.read_text() != borrowed:
        shutil.rmtree(environment, ignore_errors=True)
        venv.create(environment, symlinks=True, with_pip=False)
        own = Path(sysconfig.get_path("purelib", vars={"base": str(environment), "platbase": str(environment)}))
        # addsitedir, not a bare path: the editable install of the package is itself a .pth file in there
        (own / "borrowed.pth").write_text(f"import site; site.addsitedir({borrowed!r})\n")
        pip_install(environment, "--ignore-installed", "--no-deps", f"ipykernel=={version}")
        pip_install(environment, f"ipykernel=={version}")
        stamp.write_text(borrowed)
    spec = Path(sys.prefix) / "share" / "jupyter" / "kernels" / kernel_name(version)
    spec.mkdir(parents=True, exist_ok=True)
    content = {
        "argv": [
            str(environment / "bin" / "python"),
            "-Xfrozen_modules=off",
            "-m",
            "ipykernel_launcher",
            "-f",
            "{connection_file}",
        ],
        "display_name": f"ipykernel {version}",
        "language": "python",
    }
    (spec / "kernel.json").write_text(json.dumps(content, indent=1) + "\n")


def install_chromium() -> None:
    """Install Debian's Chromium and a font with emoji, unless there is a browser.

    Exits with a line that says what to do where that is not possible.
    """
    if Path(CHROMIUM).exists():
        return
    install = "apt-get install --yes --no-install-recommends chromium fonts-noto-color-emoji fonts-dejavu-core"
    by_hand = f"install Chromium as {CHROMIUM}, or name a browser of its kind in {CHROMIUM_VARIABLE}"
    sudo = [] if os.geteuid() == 0 else ["sudo"]
    if not all(shutil.which(command) for command in ("apt-get", *sudo)):
        sys.exit(f"The browser tests need Chromium, and it cannot be installed from here: {by_hand}.")
    print("Installing Debian's chromium", flush=True)
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in ("apt-get update", install):
        done = subprocess.run([*sudo, *command.split()], env=quiet, stdout=subprocess.DEVNULL)
        if done.returncode:
            sys.exit(f"`{command}` exited with {done.returncode}. The browser tests need Chromium: {by_hand}.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["kernels", "chromium"], nargs="+")
    wanted = parser.parse_args().what
    if "kernels" in wanted:
        for version in KERNEL_VERSIONS:
            make_kernel(version)
    if "chromium" in wanted:
        install_chromium()


if __name__ == "__main__":
    main()
