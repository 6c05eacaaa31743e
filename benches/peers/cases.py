"""The cases: traces of NPB on platforms of ../shared, and generated all-to-alls on a flat cluster."""

import shutil
import tarfile
from dataclasses import dataclass, field
from pathlib import Path

NPB = ["lu.A.8", "lu.W.16", "is.S.32", "ft.S.32", "cg.W.16", "mg.A.8"]
PLATFORMS = ["crossbar-gbe", "fattree-hdr", "torus-5g"]
ALLTOALL_RANKS = [64, 128, 256]
ALLTOALL_BYTES = 100_000

FLAT_CLUSTER = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <zone id="world" routing="Full">
    <cluster id="c" prefix="n" suffix="" radical="0-{last}" speed="1Gf" bw="125MBps" lat="10us"/>
  </zone>
</platform>
"""


@dataclass
class Case:
    """A trace on a platform. The paths are set by `prepare`."""

    trace: str
    platform: str
    ranks: int
    directory: Path = field(default=None, init=False)  # holds files.txt, which names one file per rank
    platform_file: Path = field(default=None, init=False)
    hosts_file: Path = field(default=None, init=False)

    @property
    def name(self):
        return f"{self.trace}/{self.platform}"


class NpbCase(Case):
    """An acquired trace on a platform, both from ../shared."""

    def prepare(self, shared, work):
        """Unpacks the trace below `work` if it is missing; returns false if `shared` lacks it."""
        archive = shared / "traces" / f"{self.trace}.tar.gz"
        self.platform_file = shared / "oracle" / f"{self.platform}.xml"
        self.hosts_file = shared / "oracle" / "hosts.txt"
        if not all(path.exists() for path in (archive, self.platform_file, self.hosts_file)):
            return False
        self.directory = work / self.trace
        if not (self.directory / "files.txt").exists():
            partial = work / f"{self.trace}.partial"
            shutil.rmtree(partial, ignore_errors=True)
            with tarfile.open(archive) as tar:
                tar.extractall(partial, filter="data")
            (partial / self.trace).rename(self.directory)
            partial.rmdir()
        return True


class AlltoallCase(Case):
    """Every rank sends to every other, in the order of SimGrid's basic_linear: receives from the next rank on upwards, sends from the rank before downwards."""

    def prepare(self, _shared, work):
        """Writes trace, platform and hosts below `work`."""
        self.directory = work / self.trace
        self.directory.mkdir(parents=True, exist_ok=True)
        self.platform_file = self.directory / "flat.xml"
        self.hosts_file = self.directory / "hosts.txt"
        self.platform_file.write_text(FLAT_CLUSTER.format(last=self.ranks - 1))
        self.hosts_file.write_text("".join(f"n{rank}\n" for rank in range(self.ranks)))
        for rank in range(self.ranks):
            with open(self.directory / f"rank-{rank}.txt", "w") as file:
                file.write(f"{rank} init\n")
                for step in range(1, self.ranks):
                    file.write(f"{rank} irecv {(rank + step) % self.ranks} 0 {ALLTOALL_BYTES}\n")
                for step in range(1, self.ranks):
                    file.write(f"{rank} isend {(rank - step) % self.ranks} 0 {ALLTOALL_BYTES}\n")
                file.write(f"{rank} waitall\n{rank} finalize\n")
        (self.directory / "files.txt").write_text("".join(f"rank-{rank}.txt\n" for rank in range(self.ranks)))
        return True


def all_cases():
    """Returns every case, in the order of the table."""
    npb = [NpbCase(trace, platform, int(trace.rsplit(".", 1)[1])) for trace in NPB for platform in PLATFORMS]
    return npb + [AlltoallCase(f"alltoall.{ranks}", "flat", ranks) for ranks in ALLTOALL_RANKS]
