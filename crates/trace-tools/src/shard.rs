//! Shards: the records of our tracer, which are pushed without going through lines of text.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use pdes_core::Rank;
use ti_shard::{Action as ShardAction, Kind, Message, Record, ShardReader};
use trace_mmap::{
    Action, CallOp, CommId, Location, Op, RankBuilder, RankBuilders, RequestName, SendMode, TraceError,
};

use crate::error::InputError;
use crate::text::{self, FileWarnings, Line, RankText, TextError};

/// An open shard. The place of an action is the number of its line in the shard's text, in which the header is the first line.
pub(crate) struct Shard {
    file: PathBuf,
    records: ShardReader<File>,
}

impl Shard {
    /// Opens a file if it is a shard.
    pub(crate) fn open(path: &Path) -> Result<Option<Self>, InputError> {
        let mut head = Vec::with_capacity(ti_shard::MAGIC.len());
        let mut file = File::open(path).map_err(InputError::io(path))?;
        let len = ti_shard::MAGIC.len() as u64;
        Read::by_ref(&mut file).take(len).read_to_end(&mut head).map_err(InputError::io(path))?;
        if head != ti_shard::MAGIC.as_bytes() {
            return Ok(None);
        }
        let whole = io::Seek::rewind(&mut file).and_then(|()| ShardReader::new(file));
        let records = whole.map_err(|source| error(path, source))?;
        Ok(Some(Self { file: path.to_path_buf(), records }))
    }

    fn rank(&self) -> u32 {
        self.records.rank()
    }

    /// Returns one more than the rank.
    pub(crate) fn count_ranks(mut self) -> Result<u64, TraceError> {
        match next(&mut self.records, &self.file)? {
            Some(_) => Ok(u64::from(self.rank()) + 1),
            None => Err(InputError::Empty { file: self.file }.into()),
        }
    }

    /// Returns the function in which the process was when its recording ended.
    pub(crate) fn call(&self) -> Option<String> {
        self.records.state().call()
    }

    /// Pushes all actions. `owner` is the rank to which the file belongs, if it is a file of one rank. With a flag, also pushes the
    /// action that the process had begun and not completed, and sets the flag if there is one.
    pub(crate) fn read(
        mut self,
        owner: Option<Rank>,
        ranks: &mut RankBuilders<'_>,
        begun: Option<&AtomicBool>,
    ) -> Result<(), TraceError> {
        let (found, run) = (u64::from(self.rank()), ranks.ranks());
        let (mut state, mut warnings) = (RankText::default(), FileWarnings::default());
        let mut number = 1;
        while let Some(record) = next(&mut self.records, &self.file)? {
            number += 1;
            let action = match ranks.get(found) {
                Some(builder) => resolve(&record, number, &mut state, builder, &mut warnings)
                    .map(|action| (builder, action)),
                None => Err(text::not_wanted(found, owner, run)),
            };
            match action {
                Ok((builder, action)) => builder.push(action, record.nanos)?,
                Err(kind) => return Err(text::error(&self.file, number, kind)),
            }
        }
        if let Some(flag) = begun
            && let Some(action) = self.records.begun().map_err(|source| error(&self.file, source))?
            && let Some(builder) = ranks.get(found)
        {
            let record = Record { action, nanos: None };
            // What MPI has not accepted yet may be wrong.
            if let Ok(action) = resolve(&record, number + 1, &mut state, builder, &mut warnings) {
                builder.push(action, None)?;
                flag.store(true, Ordering::Relaxed);
            }
        }
        warnings.report(&self.file, ranks);
        Ok(())
    }

    /// Finds the line of an action of the shard's text.
    pub(crate) fn locate(mut self, rank: Rank, index: u64) -> Result<Location, TraceError> {
        let mut left = index;
        while next(&mut self.records, &self.file)?.is_some() && rank.get() == self.rank() {
            if left == 0 {
                return Ok(Location { file: self.file, line: index + 2 });
            }
            left -= 1;
        }
        Err(TraceError::NoSuchAction { rank, action: index })
    }
}

fn next<'a>(records: &'a mut ShardReader<File>, file: &Path) -> Result<Option<Record<'a>>, InputError> {
    records.read_record().map_err(|source| error(file, source))
}

fn error(file: &Path, source: io::Error) -> InputError {
    let file = file.to_path_buf();
    // An error with a number is of the operating system, not of the contents.
    match source.raw_os_error() {
        Some(_) => InputError::Io { file, source },
        None => InputError::Compressed { file, format: "shard", source },
    }
}

/// Resolves the action of a record. Calls that the tracer writes as phrases are read as the fields of a line.
fn resolve(
    record: &Record<'_>,
    number: u64,
    state: &mut RankText,
    builder: &mut RankBuilder<'_>,
    warnings: &mut FileWarnings,
) -> Result<Action, TextError> {
    text::check_nanos(record.nanos)?;
    let mut read = |line: &[u8]| text::read_action(Line::new(number, line), state, builder, warnings);
    match record.action {
        ShardAction::Init => read(b"init"),
        ShardAction::Call { text, cancelled: None } => read(text),
        ShardAction::Call { text, cancelled: Some(cancelled) } => {
            read(&[text, if cancelled { b" done=yes" } else { b" done=no" }].concat())
        }
        ShardAction::Finalize => Ok(Action::Finalize),
        ShardAction::Compute { flops } => Ok(builder.resolve(&Op::Compute { flops })?),
        ShardAction::Wait { request } => {
            Ok(builder.call(&CallOp::Wait { request: RequestName::new(request) })?)
        }
        ShardAction::Message(message) => Ok(builder.call(&call(message, builder.ranks())?)?),
    }
}

/// Returns the call that sends or receives a message.
fn call(message: Message, ranks: u32) -> Result<CallOp, TextError> {
    let Message { kind, peer, tag, communicator, bytes, request, source } = message;
    let communicator = text::number(communicator, "communicator").map(CommId::new)?;
    let request = request.map(RequestName::new);
    let (mode, bytes) = (SendMode::Standard, text::message_size(bytes)?);
    Ok(match kind {
        Kind::Send => CallOp::Send { to: text::send_to(ranks, peer, tag, communicator)?, mode, bytes },
        Kind::Isend => {
            CallOp::Isend { to: text::send_to(ranks, peer, tag, communicator)?, request, mode, bytes }
        }
        Kind::Recv => CallOp::Recv { from: text::recv_from(ranks, peer, tag, communicator, source)?, bytes },
        _ => CallOp::Irecv { from: text::recv_from(ranks, peer, tag, communicator, source)?, request, bytes },
    })
}
