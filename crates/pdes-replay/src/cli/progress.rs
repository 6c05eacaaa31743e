//! Progress bars, on terminals only.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use pdes_core::Progress;

/// Interval at which a bar is redrawn.
const REDRAW_INTERVAL: Duration = Duration::from_millis(100);

/// Runs `load` while a bar counts the actions read.
pub(crate) fn watch_load<T>(actions: &AtomicU64, load: impl FnOnce() -> T) -> T {
    let bar = bar(None, "reading {spinner} {human_pos} actions, {rate}, {elapsed}");
    watch(&bar, |bar| bar.set_position(actions.load(Ordering::Relaxed)), load)
}

/// Runs `work` while a line counts the replays that are done, of which nobody knows how many there will be.
pub(crate) fn watch_replays<T>(done: &AtomicU64, work: impl FnOnce() -> T) -> T {
    let bar = bar(None, "{spinner} {human_pos} replays, {elapsed}");
    watch(&bar, |bar| bar.set_position(done.load(Ordering::Relaxed)), work)
}

/// Runs `work` while a bar shows how many of `all` items are done.
pub(crate) fn watch_count<T>(done: &AtomicU64, all: u64, things: &str, work: impl FnOnce() -> T) -> T {
    let bar = bar(Some(all), "{wide_bar} {percent}% {human_pos}/{human_len} {msg}, ETA {eta}");
    bar.set_message(things.to_owned());
    watch(&bar, |bar| bar.set_position(done.load(Ordering::Relaxed)), work)
}

/// Runs `replay` while a bar shows the actions done, their rate, the simulated time reached and the remaining time.
pub(crate) fn watch_replay<T>(progress: &Progress, actions: u64, replay: impl FnOnce() -> T) -> T {
    let style = "{wide_bar} {percent}% {human_pos}/{human_len} actions, {rate}, simulated {msg}, ETA {eta}";
    let bar = bar(Some(actions), style);
    let update = |bar: &ProgressBar| {
        if bar.position() == 0 && progress.steps_before() > 0 {
            // Actions of an earlier run must not count in this run's rate.
            bar.set_position(progress.steps_before());
            bar.reset_eta();
        }
        bar.set_position(progress.steps());
        bar.set_message(format!("{:.6} s", progress.reached()));
    };
    watch(&bar, update, replay)
}

/// Creates a bar, which indicatif draws on a terminal only; none where notes are not logged either.
fn bar(length: Option<u64>, style: &str) -> ProgressBar {
    let is_shown = tracing::enabled!(tracing::Level::INFO);
    let target = if is_shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let rate = |state: &ProgressState, text: &mut dyn std::fmt::Write| {
        // A failed write only affects the display.
        let _ = write!(text, "{:.1} M/s", state.per_sec() / 1e6);
    };
    let style = ProgressStyle::with_template(style).expect("the templates of this file are valid");
    let style = style.with_key("rate", rate);
    ProgressBar::with_draw_target(length, target).with_style(style)
}

/// Runs `work` on this thread while another one updates the bar.
fn watch<T>(bar: &ProgressBar, update: impl Fn(&ProgressBar) + Sync, work: impl FnOnce() -> T) -> T {
    if bar.is_hidden() {
        return work();
    }
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let display = scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                update(bar);
                bar.tick();
                std::thread::park_timeout(REDRAW_INTERVAL);
            }
        });
        let stop = DisplayGuard { done: &done, display: display.thread() };
        let result = work();
        drop(stop);
        bar.finish_and_clear();
        result
    })
}

/// Stops the display, also if the work panics.
struct DisplayGuard<'a> {
    done: &'a AtomicBool,
    display: &'a std::thread::Thread,
}

impl Drop for DisplayGuard<'_> {
    fn drop(&mut self) {
        self.done.store(true, Ordering::Relaxed);
        self.display.unpark();
    }
}
