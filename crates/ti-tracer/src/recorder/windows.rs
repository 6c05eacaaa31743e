//! Recording of one-sided communication: calls on windows become actions; what a replay does not know of them stays unmodelled.

use super::Recorder;
use super::unmodelled::Argument;

/// A window on which calls are actions.
#[derive(Debug)]
pub(super) struct OpenWindow {
    /// Number of its communicator in the trace.
    number: u32,
    /// World ranks of its members in order; `None` for the world.
    members: Option<Box<[u32]>>,
}

type Arguments<'a> = [(&'a str, Argument<'a>)];

/// Returns the value of the first argument that a function takes.
fn find<'a, T>(arguments: &Arguments<'a>, f: impl Fn(&str, Argument<'a>) -> Option<T>) -> Option<T> {
    arguments.iter().find_map(|(key, argument)| f(key, *argument))
}

fn number(arguments: &Arguments<'_>, wanted: &str) -> Option<i64> {
    find(arguments, |key, argument| match argument {
        Argument::Number(number) if key == wanted => Some(number),
        _ => None,
    })
}

fn is_text(arguments: &Arguments<'_>, wanted: &str, text: &[u8]) -> bool {
    arguments
        .iter()
        .any(|(key, argument)| *key == wanted && matches!(argument, Argument::Text(found) if *found == text))
}

impl Recorder {
    /// Records a call on a window as an action, with the number of its request if it posts one; returns false if there is none for it.
    pub(super) fn window_call(
        &mut self,
        function: &str,
        arguments: &Arguments<'_>,
        request: Option<u32>,
    ) -> bool {
        let Some(call) = function.strip_prefix("MPI_") else { return false };
        let handle = find(arguments, |_, argument| match argument {
            Argument::Window(handle) => Some(handle),
            _ => None,
        });
        let Some(handle) = handle else { return false };
        if ["Win_create", "Win_allocate", "Win_allocate_shared", "Win_create_dynamic"].contains(&call) {
            return self.create_window(handle, arguments);
        }
        let Some(open) = self.windows.remove(&handle) else { return false };
        let is_recorded = self.call_on_window(&open, call, arguments, request);
        if call != "Win_free" {
            self.windows.insert(handle, open);
        }
        is_recorded
    }

    /// Records the making of a window, whose communicator has a number on which all members agree.
    fn create_window(&mut self, handle: i64, arguments: &Arguments<'_>) -> bool {
        let parent = find(arguments, |_, argument| match argument {
            Argument::Communicator(handle) => Some(handle),
            _ => None,
        });
        let Some((parent, number)) = parent.zip(number(arguments, "number")) else { return false };
        let Some(on) = self.communicator(parent) else { return false };
        self.begin_call("win_create");
        self.phrase.named("comm", on.into());
        self.phrase.named("new", number);
        self.write_call();
        let members = self.communicators.members(parent);
        self.windows.insert(handle, OpenWindow { number: number as u32, members });
        true
    }

    fn call_on_window(
        &mut self,
        open: &OpenWindow,
        call: &str,
        arguments: &Arguments<'_>,
        request: Option<u32>,
    ) -> bool {
        let target = number(arguments, "target");
        // MPI_PROC_NULL.
        if target.is_some_and(|target| target < 0) {
            return false;
        }
        let skips_wait = find(arguments, |key, argument| match argument {
            Argument::Flags(flags) if key == "assert" => Some(flags.contains(&"noprecede")),
            _ => None,
        });
        let verb = match call {
            // There is nothing to wait for before its second barrier.
            "Win_fence" if skips_wait == Some(true) => "barrier".to_owned(),
            "Win_lock" if is_text(arguments, "lock", b"exclusive") => "win_lock_exclusive".to_owned(),
            // The end of an exposure that a test has found.
            "Win_test" if number(arguments, "done") == Some(1) => "win_wait".to_owned(),
            "Win_test" => return true,
            "Win_attach" | "Win_detach" | "Win_sync" => return false,
            call => call.to_ascii_lowercase(),
        };
        let group = find(arguments, |_, argument| match argument {
            Argument::List(world) => Some(world),
            _ => None,
        });
        let ranks = match group.map(|world| open.ranks(world)) {
            // A member of a group that is none of the window.
            Some(None) => return false,
            ranks => ranks.flatten(),
        };
        self.begin_call(&verb);
        target.into_iter().for_each(|target| self.phrase.number(target));
        if let Some(bytes) = number(arguments, "bytes") {
            self.phrase.number(number(arguments, "fetched").map_or(bytes, |fetched| fetched.max(bytes)));
        }
        ranks.into_iter().for_each(|ranks| self.phrase.list("to", &ranks));
        self.phrase.named("comm", open.number.into());
        request.into_iter().for_each(|request| self.phrase.named("req", request.into()));
        let fetches = ["Get_accumulate", "Rget_accumulate", "Fetch_and_op"].contains(&call);
        if fetches && is_text(arguments, "op", b"no_op") {
            self.phrase.word("done", "no");
        }
        self.write_call();
        true
    }
}

impl OpenWindow {
    /// Returns the ranks of the window of world ranks; `None` if one is no member.
    fn ranks(&self, world: &[i32]) -> Option<Vec<u32>> {
        let rank = |&world: &i32| {
            let world = u32::try_from(world).ok()?;
            match &self.members {
                None => Some(world),
                Some(members) => Some(members.iter().position(|member| *member == world)? as u32),
            }
        };
        world.iter().map(rank).collect()
    }
}
