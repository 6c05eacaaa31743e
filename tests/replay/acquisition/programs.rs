//! MPI programs in C and Fortran, compiled and recorded.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use assert_cmd::assert::Assert;
use ti_shard::TextReader;

use crate::command_line::{DONE, Folder, command, skip};
use crate::processes::OVERSUBSCRIBED;
use crate::reference::repository;

/// Commands that compile and start programs: the variables `MPICC`, `MPIFORT` and `MPIRUN`, or the usual names.
fn tool(variable: &str, name: &str) -> String {
    std::env::var(variable).unwrap_or_else(|_| name.to_owned())
}

/// Returns whether programs run with Open MPI, where `mpi_f08` calls functions that can be interposed.
pub(super) fn is_open_mpi() -> bool {
    let version = Command::new(tool("MPIRUN", "mpirun")).arg("--version").output();
    let is_it = version.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains("Open MPI"));
    if !is_it {
        skip("this MPI library is not Open MPI");
    }
    is_it
}

/// Returns the library to preload: that of the variable `TI_TRACER`, for example for another MPI library, or the one beside the command.
fn tracer() -> PathBuf {
    let beside = || Path::new(command().get_program()).with_file_name("libti_tracer.so");
    std::env::var_os("TI_TRACER").map_or_else(beside, PathBuf::from)
}

/// A program that was compiled.
pub(super) struct Program {
    folder: Folder,
    file: PathBuf,
}

impl Program {
    /// Compiles a program; `None` if there is no compiler, no launcher or no tracer.
    pub(super) fn compile(source: &str) -> Option<Self> {
        let tracer = tracer();
        if !tracer.exists() {
            skip("there is no tracer: cargo rustc -p ti-tracer --features mpi --crate-type cdylib");
            return None;
        }
        let is_c = source.ends_with(".c");
        let compiler = if is_c { tool("MPICC", "mpicc") } else { tool("MPIFORT", "mpifort") };
        for tool in [&compiler, &tool("MPIRUN", "mpirun")] {
            if !Command::new(tool).arg("--version").output().is_ok_and(|output| output.status.success()) {
                skip(&format!("there is no {tool}, or it does not work"));
                return None;
            }
        }
        let folder = Folder::new();
        let file = folder.path("program");
        let source = repository().join("tests/replay/acquisition").join(source);
        let include = repository().join("crates/ti-tracer/include");
        let mut compile = Command::new(&compiler);
        compile.arg("-O1").arg("-w").arg("-I").arg(&include);
        if !is_c {
            compile.arg("-J").arg(folder.path("")).arg(include.join("pdes_region.f90"));
        }
        let compiled = compile.arg(&source).arg("-o").arg(&file).output();
        let compiled = compiled.unwrap();
        assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
        Some(Self { folder, file })
    }

    /// Records a run with arguments of the program, and returns the result of the command.
    pub(super) fn acquire(&self, name: &str, processes: u32, arguments: &[&str]) -> (Assert, Run<'_>) {
        self.acquire_with(&[], name, processes, arguments)
    }

    /// Records a run with further flags.
    pub(super) fn acquire_with(
        &self,
        flags: &[&str],
        name: &str,
        processes: u32,
        arguments: &[&str],
    ) -> (Assert, Run<'_>) {
        let run = self.run(name, processes);
        let acquire = self.acquisition(&run, flags, &[], arguments);
        (assert_cmd::Command::from_std(acquire).timeout(Duration::from_secs(120)).assert(), run)
    }

    /// Records a run that is killed after some seconds.
    pub(super) fn acquire_for(
        &self,
        seconds: u32,
        name: &str,
        processes: u32,
        arguments: &[&str],
    ) -> (Assert, Run<'_>) {
        let run = self.run(name, processes);
        let limit = ["timeout", "-k", "1", &seconds.to_string()].map(str::to_owned);
        (assert_cmd::Command::from_std(self.acquisition(&run, &[], &limit, arguments)).assert(), run)
    }

    /// Records a run, and sends a signal to the command after some seconds, at which its processes run.
    pub(super) fn interrupt(
        &self,
        signal: &str,
        name: &str,
        processes: u32,
        arguments: &[&str],
    ) -> (Output, Run<'_>) {
        let run = self.run(name, processes);
        let mut acquire = self.acquisition(&run, &[], &[], arguments);
        let mut child =
            acquire.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let shards = || std::fs::read_dir(run.shards()).map_or(0, Iterator::count);
        while shards() < processes as usize {
            assert!(child.try_wait().unwrap().is_none(), "the command has ended");
            std::thread::sleep(Duration::from_millis(50));
        }
        std::thread::sleep(Duration::from_secs(2));
        assert!(self.is_running());
        let sent = Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
        assert!(sent.success());
        (child.wait_with_output().unwrap(), run)
    }

    /// Returns whether a process runs this program.
    pub(super) fn is_running(&self) -> bool {
        let processes = std::fs::read_dir("/proc").unwrap().flatten();
        let mut files = processes.filter_map(|process| std::fs::read_link(process.path().join("exe")).ok());
        files.any(|file| file == self.file)
    }

    fn run(&self, name: &str, processes: u32) -> Run<'_> {
        Run { folder: &self.folder, name: name.to_owned(), processes }
    }

    fn acquisition(&self, run: &Run<'_>, flags: &[&str], before: &[String], arguments: &[&str]) -> Command {
        let mut acquire = Command::new(command().get_program());
        acquire.args(["trace", "acquire", "--output"]).arg(run.archive()).arg("--shards").arg(run.shards());
        acquire.arg("--tracer").arg(tracer()).args(flags).arg("--").args(before);
        acquire.arg(tool("MPIRUN", "mpirun")).args(["-np", &run.processes.to_string()]);
        acquire.arg(&self.file).args(arguments).envs(OVERSUBSCRIBED);
        acquire
    }

    /// Records a run that must succeed, and checks and replays its trace.
    pub(super) fn record(&self, name: &str, processes: u32, arguments: &[&str]) -> Run<'_> {
        let (assert, run) = self.acquire(name, processes, arguments);
        assert.code(DONE);
        run.check();
        let mut replay = command();
        replay.arg("--platform").arg(repository().join("configs/platforms/torus-5g.toml"));
        replay.arg("--trace").arg(run.archive()).assert().code(DONE);
        run
    }
}

/// Returns the lines of a shard.
pub(super) fn text(shard: &Path) -> String {
    std::io::read_to_string(TextReader::new(File::open(shard).unwrap()).unwrap()).unwrap()
}

/// A recorded run.
pub(super) struct Run<'a> {
    folder: &'a Folder,
    name: String,
    processes: u32,
}

impl Run<'_> {
    pub(super) fn archive(&self) -> PathBuf {
        self.folder.path(&format!("{}.pdt", self.name))
    }

    pub(super) fn shards(&self) -> PathBuf {
        self.folder.path(&self.name)
    }

    /// Checks the archive.
    pub(super) fn check(&self) {
        let assert = command().args(["trace", "check"]).arg(self.archive()).assert().code(DONE);
        let output = assert.get_output();
        assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    /// Returns the lines of a rank, without its number: all calls, but not the computations between them, nor failed tests, of which
    /// there may be any number.
    pub(super) fn calls(&self, rank: u32) -> Vec<String> {
        let text = text(&self.shards().join(format!("{rank}.shard")));
        let prefix = format!("{rank} ");
        let calls = text.lines().filter(|line| !line.starts_with('#')).map(|line| {
            let line = line.strip_prefix(&prefix).unwrap_or_else(|| panic!("{line} is of rank {rank}"));
            line.split_whitespace().filter(|field| !field.starts_with("time=")).collect::<Vec<_>>().join(" ")
        });
        let is_eager = |line: &String| {
            line.starts_with("test") && line.ends_with("done=-")
                || line.starts_with("request_get_status") && line.ends_with("done=no")
        };
        calls.filter(|line| !line.starts_with("compute ") && !is_eager(line)).collect()
    }

    /// Returns the calls of all ranks.
    pub(super) fn all_calls(&self) -> Vec<Vec<String>> {
        (0..self.processes).map(|rank| self.calls(rank)).collect()
    }

    /// Checks the calls of a rank, separated by semicolons, between `init` and `finalize`.
    pub(super) fn expect(&self, rank: u32, calls: &str) {
        let expected: Vec<&str> = calls.split(';').map(str::trim).collect();
        let expected = [vec!["init"], expected, vec!["finalize"]].concat();
        assert_eq!(self.calls(rank), expected, "rank {rank}");
    }
}
