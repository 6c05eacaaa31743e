from spack_repo.builtin.build_systems.cargo import CargoPackage

from spack.package import *


class PdesReplay(CargoPackage):
    """Replays traces of MPI programs on models of machines, and predicts how long the programs would run there and where
    they would wait."""

    # There is no published archive yet, so the recipe builds a checkout: spack dev-build -d DIRECTORY pdes-replay@main
    version("main")

    license("MIT OR Apache-2.0")

    variant("mpi", default=True, description="Replays on several processes; the library that records MPI programs")
    variant("otf2", default=False, description="Timelines and traces in OTF2")

    depends_on("c", type="build")
    depends_on("rust@1.89:", type="build")
    # The bindings to the MPI library are generated with libclang.
    depends_on("llvm+clang", type="build", when="+mpi")
    depends_on("mpi", when="+mpi")
    depends_on("otf2@3", when="+otf2")

    @property
    def build_directory(self):
        return join_path(self.stage.source_path, "crates", "pdes-replay")

    @property
    def build_args(self):
        features = [name for name in ("mpi", "otf2") if self.spec.satisfies(f"+{name}")]
        return ["--locked"] + (["--features", ",".join(features)] if features else [])

    def setup_build_environment(self, env):
        if self.spec.satisfies("+mpi"):
            env.set("LIBCLANG_PATH", self.spec["llvm"].prefix.lib)
            env.set("MPICC", self.spec["mpi"].mpicc)

    @run_after("install", when="+mpi")
    def install_tracer(self):
        Executable(self.prefix.bin.join("pdes-replay"))(
            "tracer", "install", "--mpicc", self.spec["mpi"].mpicc, "--source", self.stage.source_path
        )
