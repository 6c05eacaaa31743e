//! Recording of unmodelled calls: calls that no replay models, with their names and arguments.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt::Write as _;

use rustc_hash::FxHashMap;

use super::Recorder;
use crate::requests::{Patches, RequestEntry, RequestKind};

/// Kind of an MPI object with numbers of its own in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Object {
    /// A window of one-sided communication.
    Window,
    /// A file.
    File,
    /// A communicator that no recorded action has made, such as an intercommunicator.
    Communicator,
}

/// Value of an argument.
#[derive(Clone, Copy, Debug)]
pub enum Argument<'a> {
    /// A number.
    Number(i64),
    /// Numbers, such as world ranks.
    List(&'a [i32]),
    /// A text, such as the name of a file.
    Text(&'a [u8]),
    /// Names of flags, such as those of a mode, joined by plus signs; 0 if there are none.
    Flags(&'a [&'a str]),
    /// A window, by its handle.
    Window(i64),
    /// A file, by its handle.
    File(i64),
    /// A communicator, by its handle.
    Communicator(i64),
    /// A null handle.
    Nothing,
}

/// Numbers of the objects of a process: the lowest free ones, so that the iterations of a loop produce equal records.
#[derive(Debug, Default)]
pub(crate) struct Objects {
    by_handle: FxHashMap<(Object, i64), u32>,
    /// Freed numbers of each kind.
    free: [BinaryHeap<Reverse<u32>>; 3],
    numbered: [u32; 3],
}

impl Objects {
    /// Returns the number of an object, which is assigned on first use.
    pub(super) fn number(&mut self, object: Object, handle: i64) -> u32 {
        let (free, numbered) = (&mut self.free[object as usize], &mut self.numbered[object as usize]);
        *self.by_handle.entry((object, handle)).or_insert_with(|| match free.pop() {
            Some(Reverse(number)) => number,
            None => {
                *numbered += 1;
                *numbered - 1
            }
        })
    }

    fn remove(&mut self, object: Object, handle: i64) {
        if let Some(number) = self.by_handle.remove(&(object, handle)) {
            self.free[object as usize].push(Reverse(number));
        }
    }
}

impl Recorder {
    /// Records a call that no replay models, except for those on files and windows that have actions.
    pub fn unmodelled(&mut self, name: &str, arguments: &[(&str, Argument<'_>)]) {
        if self.file_call(name, arguments) || self.window_call(name, arguments, None) {
            return;
        }
        self.forget_file_arguments();
        self.begin_unmodelled(name, arguments);
        self.write_call();
    }

    /// Records a call that posts a request, to be [bound](Self::bind): an unmodelled one, or one on a file or a window that has
    /// an action.
    pub fn unmodelled_request(&mut self, name: &str, arguments: &[(&str, Argument<'_>)]) -> RequestEntry {
        if let Some(number) = self.nonblocking_file_call(name, arguments) {
            return RequestEntry::new(number, RequestKind::File, Patches::default(), 0);
        }
        let number = self.requests.take_number();
        if self.window_call(name, arguments, Some(number)) {
            return RequestEntry::new(number, RequestKind::Window, Patches::default(), 0);
        }
        self.requests.release_number(number);
        self.begin_unmodelled(name, arguments);
        let number = self.unmodelled_requests.take_number();
        self.phrase.word("req", &format!("other-{number}"));
        self.write_call();
        RequestEntry::new(number, RequestKind::Unmodelled, Patches::default(), 0)
    }

    /// Frees the number of an object that was freed.
    pub fn free_object(&mut self, object: Object, handle: i64) {
        match object {
            Object::File => drop(self.files.remove(&handle)),
            Object::Window => drop(self.windows.remove(&handle)),
            Object::Communicator => {}
        }
        self.objects.remove(object, handle);
    }

    /// Records a call on requests of unmodelled calls.
    pub(super) fn unmodelled_completion(&mut self, verb: &str, requests: &[u32], done: Option<&[u32]>) {
        self.begin_unmodelled(&function(verb), &[]);
        self.phrase.word("req", &other_names(requests));
        if let Some(done) = done {
            self.phrase.word("done", &other_names(done));
        }
        self.write_call();
    }

    fn begin_unmodelled(&mut self, name: &str, arguments: &[(&str, Argument<'_>)]) {
        self.begin_call("unmodelled");
        self.phrase.word("", name);
        for (key, value) in arguments {
            self.argument(key, *value);
        }
    }

    fn argument(&mut self, key: &str, value: Argument<'_>) {
        match value {
            Argument::Number(number) => self.phrase.named(key, number),
            Argument::List(numbers) => self.phrase.list(key, numbers),
            Argument::Text(text) => self.phrase.word(key, &escape(text)),
            Argument::Flags([]) => self.phrase.named(key, 0),
            Argument::Flags(names) => self.phrase.word(key, &names.join("+")),
            Argument::Window(handle) => self.object(key, Object::Window, handle),
            Argument::File(handle) => match self.files.get(&handle) {
                Some(open) => self.phrase.word(key, &open.name),
                None => self.object(key, Object::File, handle),
            },
            Argument::Communicator(handle) if self.comm_self == Some(handle) => self.phrase.word(key, "self"),
            Argument::Communicator(handle) => match self.communicators.number(handle) {
                Some(number) => self.phrase.named(key, number.into()),
                None => {
                    let number = self.objects.number(Object::Communicator, handle);
                    self.phrase.word(key, &other_names(&[number]));
                }
            },
            Argument::Nothing => self.phrase.word(key, "-"),
        }
    }

    fn object(&mut self, key: &str, object: Object, handle: i64) {
        let number = self.objects.number(object, handle);
        self.phrase.named(key, number.into());
    }
}

/// Returns the MPI function of an action.
pub(super) fn function(verb: &str) -> String {
    let name = match verb {
        "reducescatter" => "reduce_scatter",
        "ireducescatter" => "ireduce_scatter",
        "sendRecv" => "sendrecv",
        "sendRecv_replace" => "sendrecv_replace",
        name => name,
    };
    let (first, rest) = name.split_at(name.len().min(1));
    format!("MPI_{}{rest}", first.to_ascii_uppercase())
}

/// Returns a text without white space: bytes that are not printable ASCII are percent-encoded.
pub(super) fn escape(text: &[u8]) -> String {
    let mut escaped = String::with_capacity(text.len());
    for &byte in text {
        match byte {
            b'%' => escaped.push_str("%25"),
            byte if byte.is_ascii_graphic() => escaped.push(byte.into()),
            // Writing to a string does not fail.
            byte => _ = write!(escaped, "%{byte:02x}"),
        }
    }
    escaped
}

/// Returns the names of separately numbered requests or communicators.
fn other_names(numbers: &[u32]) -> String {
    let names: Vec<String> = numbers.iter().map(|number| format!("other-{number}")).collect();
    if names.is_empty() { "-".to_owned() } else { names.join(",") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn actions_have_the_names_of_their_functions() {
        let names = [
            ("send", "MPI_Send"),
            ("irecv", "MPI_Irecv"),
            ("sendRecv_replace", "MPI_Sendrecv_replace"),
            ("reducescatter", "MPI_Reduce_scatter"),
            ("ireducescatter", "MPI_Ireduce_scatter"),
            ("neighbor_alltoallv", "MPI_Neighbor_alltoallv"),
        ];
        for (verb, expected) in names {
            assert_eq!(function(verb), expected);
        }
    }
}
