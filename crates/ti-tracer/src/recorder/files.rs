//! Recording of accesses to files: blocking calls become actions, all others stay unmodelled.
//!
//! All processes of a collective call have to record it alike, so that whether a call has an action depends on its function alone.

use std::env;

use super::Recorder;
use super::unmodelled::{Argument, escape};

/// An open file.
#[derive(Debug)]
pub(super) struct OpenFile {
    /// Its name, without white space.
    pub(super) name: String,
    communicator: u32,
    view: View,
    /// Individual pointer: amount of data of the view before it \[B\].
    pointer: i64,
    /// The pointer as the actions of the trace have moved it \[B\].
    recorded_pointer: i64,
}

/// The part of a file that a process sees: from a displacement on, the data of its file type again and again.
#[derive(Debug)]
struct View {
    displacement: i64,
    /// Size of the units of offsets \[B\].
    unit: i64,
    /// Amount of data and length of the file type \[B\].
    data: i64,
    extent: i64,
    /// First byte of the file type that has data.
    first: i64,
}

impl View {
    const WHOLE: Self = Self { displacement: 0, unit: 1, data: 1, extent: 1, first: 0 };

    /// Returns the position in the file behind an amount of data \[B\]; inside a file type holes are left out.
    fn position(&self, data: i64) -> i64 {
        let (types, rest) = match self.data {
            1.. => (data / self.data, data % self.data),
            _ => (0, data),
        };
        let begin = self.displacement.saturating_add(self.first);
        begin.saturating_add(types.saturating_mul(self.extent)).saturating_add(rest).max(0)
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

    fn open_file(&mut self, handle: i64, arguments: &Arguments<'_>) -> bool {
        let communicator = arguments.iter().find_map(|(_, argument)| match argument {
            Argument::Communicator(handle) => Some(*handle),
            _ => None,
        });
        let Some(communicator) = communicator.and_then(|handle| self.communicator(handle)) else {
            return false;
        };
        let Some(name) = text(arguments, "name").filter(|name| !name.is_empty()) else { return false };
        let open = OpenFile {
            name: escape(&absolute(name)),
            communicator,
            view: View::WHOLE,
            pointer: 0,
            recorded_pointer: 0,
        };
        self.write_file_call("io-open", &open, &[]);
        self.files.insert(handle, open);
        true
    }

    fn call_on(&mut self, open: &mut OpenFile, call: &str, arguments: &Arguments<'_>) -> bool {
        let value = |key| number(arguments, key).unwrap_or(0);
        let bytes = value("bytes");
        let action = format!("io-{call}");
        match call {
            "close" | "sync" => self.write_file_call(&action, open, &[]),
            "set_view" => {
                let [displacement, unit, data, extent, first] =
                    ["disp", "etype", "filetype", "extent", "first"].map(value);
                open.view = View { displacement, unit, data, extent, first };
                open.pointer = 0;
                return false;
            }
            "seek" => {
                open.pointer = value("position").saturating_mul(open.view.unit);
                self.follow_pointer(open);
            }
            "read" | "write" | "read_all" | "write_all" => {
                self.follow_pointer(open);
                self.write_file_call(&action, open, &[bytes]);
                open.pointer += bytes;
                open.recorded_pointer += bytes;
            }
            "read_at" | "write_at" | "read_at_all" | "write_at_all" => {
                let begin = open.view.position(value("offset").saturating_mul(open.view.unit));
                self.write_file_call(&action, open, &[begin, bytes]);
            }
            "read_shared" | "write_shared" | "read_ordered" | "write_ordered" => {
                self.write_file_call(&action, open, &[bytes]);
            }
            // Other accesses at the individual pointer move it.
            "iread" | "iwrite" | "iread_all" | "iwrite_all" | "read_all_begin" | "write_all_begin" => {
                open.pointer += bytes;
                return false;
            }
            _ => return false,
        }
        true
    }

    /// Moves the pointer in the trace to where that of the program is.
    fn follow_pointer(&mut self, open: &mut OpenFile) {
        let position = open.view.position(open.pointer);
        if position != open.recorded_pointer {
            self.write_file_call("io-seek", open, &[position]);
            open.recorded_pointer = position;
        }
    }

    fn write_file_call(&mut self, action: &str, open: &OpenFile, fields: &[i64]) {
        self.begin_call(action);
        self.phrase.word("", &open.name);
        fields.iter().for_each(|field| self.phrase.number(*field));
        self.named_communicator(open.communicator);
        self.write_call();
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
