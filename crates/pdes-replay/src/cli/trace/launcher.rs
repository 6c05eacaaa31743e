//! The command that starts a program, and signals that end it.

use std::io::{self, IsTerminal as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group, test_kill_process_group};

use crate::cli::INTERRUPTED_STATUS;

/// Time after which processes that were asked to end are killed.
const GRACE: Duration = Duration::from_secs(10);

/// Interval at which the end of the processes is polled.
const POLL: Duration = Duration::from_millis(20);

/// Time that processes of a terminal have to end by its own signal.
const TERMINAL_GRACE: Duration = Duration::from_secs(2);

/// End of a command.
pub(super) struct Ended {
    pub(super) status: ExitStatus,
    /// True if this program was told to end.
    pub(super) is_interrupted: bool,
}

/// A command that runs.
#[derive(Debug)]
struct Launcher {
    /// True if the command and its processes are a process group, to which signals go.
    has_group: bool,
    /// Directory of what they record.
    shards: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The process of the command, until it and its group have ended.
    process: Option<Pid>,
    has_ended: bool,
    /// Number of signals to this program.
    signals: u32,
}

/// Runs a command to its end. The first signal to this program (Ctrl-C, SIGTERM) asks the command and the processes that it has
/// started on this machine to end, and kills them after ten seconds; the second one kills them at once. Later ones end this program,
/// which then names the directory of the shards.
///
/// # Errors
/// Fails if signals cannot be handled; the result within, if the command cannot be started.
pub(super) fn run(mut command: Command, shards: &Path) -> Result<io::Result<Ended>, ctrlc::Error> {
    // Only the group of a terminal may read from it: there Ctrl-C is a signal to all processes anyway.
    let has_group = !io::stdin().is_terminal();
    if has_group {
        command.process_group(0);
    }
    let launcher = Arc::new(Launcher { has_group, shards: shards.to_path_buf(), state: Mutex::default() });
    let signalled = Arc::clone(&launcher);
    ctrlc::set_handler(move || signalled.interrupt())?;
    Ok(launcher.run(command))
}

impl Launcher {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self, mut command: Command) -> io::Result<Ended> {
        let mut child = command.spawn()?;
        let pid = Pid::from_child(&child);
        let is_late = {
            let mut state = self.state();
            state.process = Some(pid);
            state.signals > 0
        };
        if is_late {
            self.signal(Signal::TERM);
        }
        let status = child.wait()?;
        // A shell that started the launcher ends at once, the launcher once its processes have ended.
        let begin = Instant::now();
        while self.has_group && self.state().signals > 0 && test_kill_process_group(pid).is_ok() {
            if begin.elapsed() > GRACE {
                self.signal(Signal::KILL);
            }
            std::thread::sleep(POLL);
        }
        let mut state = self.state();
        (state.process, state.has_ended) = (None, true);
        Ok(Ended { status, is_interrupted: state.signals > 0 })
    }

    /// Sends a signal to the processes, if the command has not ended. They may have ended meanwhile.
    fn signal(&self, signal: Signal) {
        if let Some(process) = self.state().process {
            let _ = if self.has_group {
                kill_process_group(process, signal)
            } else {
                kill_process(process, signal)
            };
        }
    }

    /// Handles a signal to this program.
    fn interrupt(self: &Arc<Self>) {
        let (signals, has_ended) = {
            let mut state = self.state();
            state.signals += 1;
            (state.signals, state.has_ended)
        };
        if has_ended {
            tracing::warn!("interrupted; what the processes have recorded is in {}", self.shards.display());
            std::process::exit(INTERRUPTED_STATUS.into());
        }
        if signals > 1 {
            return self.signal(Signal::KILL);
        }
        tracing::warn!(
            "interrupted: ending the program, to gather what it has recorded; interrupt again to kill it"
        );
        let launcher = Arc::clone(self);
        std::thread::spawn(move || {
            if !launcher.has_group {
                std::thread::sleep(TERMINAL_GRACE);
            }
            launcher.signal(Signal::TERM);
            std::thread::sleep(GRACE);
            launcher.signal(Signal::KILL);
        });
    }
}
