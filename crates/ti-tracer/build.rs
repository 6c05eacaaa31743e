//! Compiles the MPI functions of `shim/` with the compiler of the MPI library, if the feature `mpi` is on.

fn main() {
    println!("cargo:rerun-if-changed=shim");
    println!("cargo:rerun-if-env-changed=MPICC");
    #[cfg(feature = "mpi")]
    mpi::build();
}

#[cfg(feature = "mpi")]
mod mpi {
    use std::process::Command;

    const FILES: [&str; 11] = [
        "shim/process.c",
        "shim/messages.c",
        "shim/requests.c",
        "shim/collectives.c",
        "shim/communicators.c",
        "shim/regions.c",
        "shim/windows.c",
        "shim/files.c",
        "shim/views.c",
        "shim/posix.c",
        "shim/processes.c",
    ];

    pub(super) fn build() {
        let mpicc = std::env::var("MPICC").unwrap_or_else(|_| "mpicc".to_owned());
        let macros = macros(&mpicc);
        // Persistent collective operations: functions of MPI 4, or an extension of Open MPI.
        println!("cargo:rustc-check-cfg=cfg(persistent, values(\"MPI_\", \"MPIX_\"))");
        let number =
            |name: &str| macros.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
        let mut shim = cc::Build::new();
        if number("#define MPI_VERSION ") >= Some(4_u32) {
            println!("cargo:rustc-cfg=persistent=\"MPI_\"");
        } else if number("#define OMPI_HAVE_MPI_EXT_PCOLLREQ ") == Some(1) {
            println!("cargo:rustc-cfg=persistent=\"MPIX_\"");
            shim.define("TI_MPIX", None);
        }
        shim.compiler(&mpicc)
            .files(FILES)
            // C11, since pointers to Fortran functions have no prototypes.
            .std("gnu11")
            .compile("ti_shim");
        link(&mpicc);
        println!("cargo:rustc-check-cfg=cfg(fortran_apart)");
        // The Fortran functions call the profiling interface directly, as in Open MPI, rather than the C functions, as in MPICH.
        if macros.contains("#define OPEN_MPI ") {
            println!("cargo:rustc-cfg=fortran_apart");
        }
    }

    /// Returns the macros of the MPI library's headers: `mpi.h`, and that of Open MPI's extensions.
    fn macros(mpicc: &str) -> String {
        let read = |header: &str| {
            let arguments = ["-E", "-dM", "-include", "mpi.h", "-include", header, "-x", "c", "/dev/null"];
            let macros = Command::new(mpicc).args(arguments).output();
            let macros = macros.unwrap_or_else(|error| panic!("{mpicc} -E: {error}; set MPICC"));
            macros.status.success().then(|| String::from_utf8_lossy(&macros.stdout).into_owned())
        };
        read("mpi-ext.h").or_else(|| read("mpi.h")).unwrap_or_default()
    }

    /// Links the libraries that the compiler of the MPI library would link.
    fn link(mpicc: &str) {
        let output = Command::new(mpicc).arg("-show").output();
        let output = output.unwrap_or_else(|error| panic!("{mpicc} -show: {error}; set MPICC"));
        let line = String::from_utf8_lossy(&output.stdout).into_owned();
        for flag in line.split_whitespace() {
            if let Some(dir) = flag.strip_prefix("-L") {
                println!("cargo:rustc-link-search=native={dir}");
            } else if let Some(library) = flag.strip_prefix("-l") {
                println!("cargo:rustc-link-lib={library}");
            } else if flag.starts_with("-Wl,") && flag.contains("rpath") {
                println!("cargo:rustc-link-arg={flag}");
            }
        }
    }
}
