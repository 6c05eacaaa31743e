//! Recording of accesses to files: calls with a replay become actions, all others stay unmodelled.
//!
//! All processes of a collective call have to record it alike, so that whether a call has an action depends on its function alone.

use std::{env, mem};

use super::Recorder;
use super::file_type::FileType;
use super::unmodelled::{Argument, escape};

/// An open file.
#[derive(Debug)]
pub(super) struct OpenFile {
    /// Its name, without white space.
    pub(super) name: String,
    communicator: u32,
    /// Size of the units of offsets \[B\].
    unit: i64,
    /// Individual pointer: amount of data of the view before it \[B\].
    pointer: i64,
    /// The pointer as the actions of the trace have moved it \[B\].
    recorded_pointer: i64,
    /// Request in the trace of the split collective access that has begun.
    split: Option<u32>,
}

impl OpenFile {
    fn new(name: String, communicator: u32) -> Self {
        Self { name, communicator, unit: 1, pointer: 0, recorded_pointer: 0, split: None }
    }
}

type Arguments<'a> = [(&'a str, Argument<'a>)];

fn number(arguments: &Arguments<'_>, key: &str) -> Option<i64> {
    let (_, argument) = arguments.iter().find(|(name, _)| *name == key)?;
    if let Argument::Number(number) = argument { Some(*number) } else { None }
}

fn text<'a>(arguments: &Arguments<'a>, key: &str) -> Option<&'a [u8]> {
    let (_, argument) = arguments.iter().find(|(name, _)| *name == key)?;
    if let Argument::Text(text) = argument { Some(text) } else { None }
}

fn file(arguments: &Arguments<'_>) -> Option<i64> {
    arguments.iter().find_map(|(_, argument)| match argument {
        Argument::File(handle) => Some(*handle),
        _ => None,
    })
}

/// Returns the absolute name of a file, without the kind of file system that ROMIO takes before a colon.
fn absolute(name: &[u8]) -> Vec<u8> {
    let prefix = name.iter().position(|byte| !byte.is_ascii_alphanumeric());
    let name = match prefix.filter(|&end| end > 0 && name[end] == b':') {
        Some(end) => &name[end + 1..],
        None => name,
    };
    match env::current_dir() {
        Ok(directory) if name.first() != Some(&b'/') => {
            [directory.as_os_str().as_encoded_bytes(), b"/", name].concat()
        }
        _ => name.to_vec(),
    }
}

impl Recorder {
    /// Records a call on a file as an action; returns false if there is none for it.
    pub(super) fn file_call(&mut self, function: &str, arguments: &Arguments<'_>) -> bool {
        let Some(call) = function.strip_prefix("MPI_File_") else { return false };
        let Some(handle) = file(arguments) else { return false };
        if call == "open" {
            return self.open_file(handle, arguments);
        }
        let Some(mut open) = self.files.remove(&handle) else { return false };
        let recorded = self.call_on(&mut open, call, arguments);
        if call != "close" {
            self.files.insert(handle, open);
        }
        recorded
    }

    /// Adds a hint to those of the file that is opened next, if a replay knows it and its value.
    pub fn add_hint(&mut self, name: &str, value: &str) {
        let is_number = value.parse().is_ok_and(|number: i32| number > 0);
        let is_switch = ["enable", "disable", "automatic"].contains(&value);
        if if name.starts_with("romio_") { is_switch } else { is_number } {
            self.hints.push((name.to_owned(), value.to_owned()));
        }
    }

    /// Adds a block to the file type of the view that is set next \[B\].
    pub fn add_block(&mut self, offset: i64, bytes: i64) {
        self.file_type.add(offset, bytes);
    }

    fn open_file(&mut self, handle: i64, arguments: &Arguments<'_>) -> bool {
        let communicator = arguments.iter().find_map(|(_, argument)| match argument {
            Argument::Communicator(handle) => Some(*handle),
            _ => None,
        });
        let Some(communicator) = communicator.and_then(|handle| self.communicator(handle)) else {
            return false;
        };
        let Some(name) = text(arguments, "name").filter(|name| !name.is_empty()) else { return false };
        let open = OpenFile::new(escape(&absolute(name)), communicator);
        let hints = mem::take(&mut self.hints);
        self.begin_file_call("io-open", &open);
        hints.iter().for_each(|(name, value)| self.phrase.word(name, value));
        self.end_file_call(&open);
        self.files.insert(handle, open);
        true
    }

    /// Records a call that posts a request as an action; returns the number of the request, if there is one.
    pub(super) fn nonblocking_file_call(&mut self, function: &str, arguments: &Arguments<'_>) -> Option<u32> {
        let call = function.strip_prefix("MPI_File_i")?;
        let handle = file(arguments)?;
        let mut open = self.files.remove(&handle)?;
        let request = self.requests.take_number();
        let is_recorded = self.access(&mut open, call, Some(request), arguments);
        self.files.insert(handle, open);
        is_recorded.then_some(request)
    }

    fn call_on(&mut self, open: &mut OpenFile, call: &str, arguments: &Arguments<'_>) -> bool {
        let value = |key| number(arguments, key).unwrap_or(0);
        match call {
            "close" | "sync" => self.write_file_call(&format!("io-{call}"), open, &[], None),
            "set_view" => {
                open.unit = value("etype");
                (open.pointer, open.recorded_pointer) = (0, 0);
                let view = mem::take(&mut self.file_type).view(value("disp"), value("extent"));
                self.begin_file_call("io-set_view", open);
                self.phrase.word("", &view);
                self.end_file_call(open);
            }
            "seek" => {
                open.pointer = value("position").saturating_mul(open.unit);
                self.follow_pointer(open);
            }
            _ => return self.blocking_or_split_access(open, call, arguments),
        }
        true
    }

    /// Records an access without a request in the program. The begin of a split collective access posts one in the trace, and its end
    /// waits for it.
    fn blocking_or_split_access(
        &mut self,
        open: &mut OpenFile,
        call: &str,
        arguments: &Arguments<'_>,
    ) -> bool {
        if let Some(access) = call.strip_suffix("_begin") {
            let request = self.requests.take_number();
            open.split = Some(request);
            return self.access(open, access, Some(request), arguments);
        }
        if call.ends_with("_end") {
            let Some(request) = open.split.take() else { return false };
            self.wait_for(request);
            self.requests.release_number(request);
            return true;
        }
        self.access(open, call, None, arguments)
    }

    /// Records an access, `read`, `write_at_all` and so on; returns false if the call is no access.
    fn access(
        &mut self,
        open: &mut OpenFile,
        call: &str,
        request: Option<u32>,
        arguments: &Arguments<'_>,
    ) -> bool {
        let value = |key| number(arguments, key).unwrap_or(0);
        let bytes = value("bytes");
        let action = format!("io-{}{call}", if request.is_some() { "i" } else { "" });
        match call {
            "read" | "write" | "read_all" | "write_all" => {
                self.follow_pointer(open);
                self.write_file_call(&action, open, &[bytes], request);
                open.pointer += bytes;
                open.recorded_pointer += bytes;
            }
            "read_at" | "write_at" | "read_at_all" | "write_at_all" => {
                let begin = value("offset").saturating_mul(open.unit);
                self.write_file_call(&action, open, &[begin, bytes], request);
            }
            "read_shared" | "write_shared" | "read_ordered" | "write_ordered" => {
                self.write_file_call(&action, open, &[bytes], request);
            }
            _ => return false,
        }
        true
    }

    /// Moves the pointer in the trace to where that of the program is.
    fn follow_pointer(&mut self, open: &mut OpenFile) {
        if open.pointer != open.recorded_pointer {
            self.write_file_call("io-seek", open, &[open.pointer], None);
            open.recorded_pointer = open.pointer;
        }
    }

    /// Records that a call of POSIX has opened a file with an absolute name; `own` is the handle of `MPI_COMM_SELF`.
    pub fn open_descriptor(&mut self, descriptor: i32, name: &[u8], own: i64) {
        let Some(communicator) = self.communicator(own) else { return };
        let open = OpenFile::new(escape(name), communicator);
        self.write_file_call("io-open", &open, &[], None);
        self.descriptors.insert(descriptor, open);
    }

    /// Records a call of POSIX on an open file: `close`, `sync`, or `read_at` or `write_at` of an amount at a position \[B\].
    pub fn call_on_descriptor(&mut self, call: &str, descriptor: i32, offset: i64, bytes: i64) {
        let Some(open) = self.descriptors.remove(&descriptor) else { return };
        let is_access = call.ends_with("_at");
        let fields: &[i64] = if is_access { &[offset, bytes] } else { &[] };
        self.write_file_call(&format!("io-{call}"), &open, fields, None);
        if call != "close" {
            self.descriptors.insert(descriptor, open);
        }
    }

    fn begin_file_call(&mut self, action: &str, open: &OpenFile) {
        self.begin_call(action);
        self.phrase.word("", &open.name);
    }

    fn end_file_call(&mut self, open: &OpenFile) {
        self.named_communicator(open.communicator);
        self.write_call();
    }

    fn write_file_call(&mut self, action: &str, open: &OpenFile, fields: &[i64], request: Option<u32>) {
        self.begin_file_call(action, open);
        fields.iter().for_each(|field| self.phrase.number(*field));
        request.into_iter().for_each(|number| self.phrase.named("req", number.into()));
        self.end_file_call(open);
    }

    /// Forgets the hints and the file type of a call that has no action.
    pub(super) fn forget_file_arguments(&mut self) {
        self.hints.clear();
        self.file_type = FileType::default();
    }

    /// Forgets the files of a communicator that is freed: calls on them stay unmodelled from then on.
    pub(super) fn forget_files_of(&mut self, communicator: u32) {
        self.files.retain(|_, open| open.communicator != communicator);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_absolute() {
        assert_eq!(absolute(b"/scratch/a:b"), b"/scratch/a:b");
        assert_eq!(absolute(b"nfs:/home/x"), b"/home/x");
        let here = env::current_dir().unwrap().join("out.dat");
        assert_eq!(absolute(b"out.dat"), here.as_os_str().as_encoded_bytes());
        assert_eq!(absolute(b"ufs:out.dat"), here.as_os_str().as_encoded_bytes());
    }
}
