"""The two programs: their commands, and the values read from their output."""

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass


class ProgramFailed(Exception):
    """A run that ended with an error or without an answer; the message says how."""


@dataclass
class Run:
    """Results of one run: simulated and wall-clock time [s], largest resident memory [B]; for ours also actions and the replay alone [s]."""

    simulated_s: float
    wall_s: float
    peak_bytes: int
    actions: int = 0
    replay_s: float = 0.0


def install_packages(*packages):
    """Installs packages of Debian, as root or by sudo."""
    root = [] if os.geteuid() == 0 else ["sudo"]
    for command in (["apt-get", "update", "-q"], ["env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "install", "-y", "-q", "--no-install-recommends", *packages]):
        subprocess.run(root + command, check=True, stdout=sys.stderr)


def start(name, command, directory):
    """Runs a command to its end; returns its output (stdout and stderr), wall time [s] and the largest resident memory of it or a child [B]."""
    with tempfile.TemporaryFile("w+") as output:
        begin = time.perf_counter()
        process = subprocess.Popen([str(part) for part in command], cwd=directory, stdout=output, stderr=subprocess.STDOUT)
        _, status, usage = os.wait4(process.pid, 0)
        wall_s = time.perf_counter() - begin
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        text = output.read()
    if process.returncode != 0:
        lines = [line.strip() for line in text.splitlines() if line.strip() and "Configuration change" not in line]
        told = next((line for line in lines if re.search("error|critical|fault|exception", line, re.IGNORECASE)), lines[-1] if lines else "no output")
        raise ProgramFailed(f"{name} ended with status {process.returncode}: {told}")
    return text, wall_s, usage.ru_maxrss * 1024


class SimGrid:
    """smpirun -replay, as it comes: network model SMPI, event times merged below 1e-9 s, selector `default`."""

    # "Simulation time" has six decimals; the date of that line in the log has as many as asked for.
    LOGS = ["--log=root.thresh:critical", "--log=smpi_replay.thresh:info", "--log=smpi_replay.fmt:%.13r:%m%n"]

    def run(self, case):
        command = ["smpirun", "-no-privatize", "-np", case.ranks, "-platform", case.platform_file, "-hostfile", case.hosts_file, "-replay", "files.txt", *self.LOGS]
        text, wall_s, peak_bytes = start("SimGrid", command, case.directory)
        found = re.search(r"^(\S+):Simulation time", text, re.MULTILINE)
        if not found:
            raise ProgramFailed(f"SimGrid printed no simulation time: {text.strip().splitlines()[-1:]}")
        return Run(float(found[1]), wall_s, peak_bytes)

    @staticmethod
    def version():
        text = subprocess.run(["smpirun", "--version"], capture_output=True, text=True, check=True).stdout
        return text.strip().splitlines()[0].replace("SimGrid version", "SimGrid")


class PdesReplay:
    """Our release binary."""

    def __init__(self, binary, model, threads, report):
        self.binary, self.model, self.threads, self.report = binary, model, threads, report

    def run(self, case):
        return self.replay(case.directory / "files.txt", "--platform", case.platform_file, "--set", f"platform.hosts={case.hosts_file}")

    def replay(self, trace, *flags):
        # The peers have no such analyses either.
        analysis = [] if self.model == "loggops" else ["--set", "analysis.waits=false", "--set", "analysis.links=false"]
        command = [self.binary, "--trace", trace, "--model", self.model, "--threads", self.threads, "--quiet", "--report", self.report, "--set=analysis.ideal_machines=false", *analysis, *flags]
        _, wall_s, _ = start("pdes-replay", command, trace.parent)
        report = json.loads(self.report.read_text())
        return Run(report["simulated_time_s"], wall_s, report["peak_rss_bytes"], report["actions"], report["replay_s"])
