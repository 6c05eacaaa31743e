//! A format is one file and one row: a toy, whose lines count rounds of a ring.

use std::fs;
use std::path::{Path, PathBuf};

use pdes_core::{Bytes, Rank};
use trace_mmap::{
    ConvertOptions, Folding, LoadOptions, Location, Op, OpError, RankBuilders, Tag, Trace, TraceError,
    TraceSource,
};
use trace_tools::{FORMATS, Format, Input};

/// Contents of a file with this format: `ring`, the number of ranks, and in each line the bytes of a round.
const MAGIC: &str = "ring ";

/// The row of the toy.
const RING: Format = Format {
    name: "ring",
    knows: |candidate| candidate.head().starts_with(MAGIC.as_bytes()),
    open: |candidate| {
        let path = candidate.path();
        let text = fs::read_to_string(path).map_err(|error| TraceError::Source(Box::new(error)))?;
        Ok(Input::Source(Box::new(RingSource { path: path.to_path_buf(), text })))
    },
};

#[derive(Debug)]
struct RingSource {
    path: PathBuf,
    text: String,
}

impl RingSource {
    fn number(&self) -> u32 {
        self.text.lines().next().and_then(|line| line[MAGIC.len()..].parse().ok()).expect("a number of ranks")
    }

    fn place(&self, line: u64) -> Location {
        Location { file: self.path.clone(), line }
    }
}

impl TraceSource for RingSource {
    fn path(&self) -> &Path {
        &self.path
    }

    fn ranks(&self) -> Result<u64, TraceError> {
        Ok(self.number().into())
    }

    fn read(&self, ranks: &mut RankBuilders<'_>) -> Result<(), TraceError> {
        let (me, all) = (ranks.wanted().start, self.number());
        let builder = ranks.get(me.into()).expect("the rank is wanted");
        let (next, before) = (Rank::new((me + 1) % all), Rank::new((me + all - 1) % all));
        for (line, bytes) in (2..).zip(self.text.lines().skip(1)) {
            let bytes = Bytes::new(bytes.parse().expect("a size"));
            let ops = [
                Op::Send { peer: Some(next), tag: Tag::new(0), bytes },
                Op::Recv { peer: Some(before), tag: Some(Tag::new(0)), bytes },
            ];
            for op in ops {
                let kind = |error| TraceError::Action { location: self.place(line), kind: Box::new(error) };
                let action = builder.resolve(&op).map_err(kind)?;
                builder.push(action, None)?;
            }
        }
        Ok(())
    }

    fn locate(&self, _: Rank, index: u64) -> Result<Location, TraceError> {
        Ok(self.place(index / 2 + 2))
    }

    fn fingerprint(&self) -> Result<u64, TraceError> {
        Ok(self.text.len() as u64)
    }
}

fn load(text: &str) -> Result<Trace, TraceError> {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("trace");
    fs::write(&path, text).expect("the file is written");
    let formats = [&[RING], FORMATS].concat();
    trace_tools::load_as(&formats, &path, &LoadOptions { threads: 2, ..LoadOptions::default() })
}

#[test]
fn a_new_format_is_read_like_the_others() {
    let trace = load("ring 3\n8\n16\n").expect("a trace");
    assert_eq!((trace.ranks(), trace.actions()), (3, 12));
    let ring = trace_tools::from_text(
        "0 send 1 0 8 6\n0 recv 2 0 8 6\n0 send 1 0 16 6\n0 recv 2 0 16 6
         1 send 2 0 8 6\n1 recv 0 0 8 6\n1 send 2 0 16 6\n1 recv 0 0 16 6
         2 send 0 0 8 6\n2 recv 1 0 8 6\n2 send 0 0 16 6\n2 recv 1 0 16 6",
    );
    let ring = ring.expect("a trace");
    for rank in (0..3).map(Rank::new) {
        assert!(trace.ops(rank).eq(ring.ops(rank)));
    }
    assert_eq!(trace.locate(Rank::new(1), 3).expect("it has four actions").line, 3);
    assert_eq!(load("0 init\n0 finalize").expect("text is still known").actions(), 2);
}

#[test]
fn errors_of_a_new_format_have_their_place() {
    let error = load("ring 2\n8\n999999999999999\n").expect_err("a message is too large");
    let (found, limit) = (999_999_999_999_999, 1 << 48);
    assert_eq!(error.kind(), Some(&OpError::Size { found, limit }));
    assert!(error.to_string().contains("trace:3: a message has"), "{error}");
}

#[test]
fn a_new_format_becomes_an_archive() {
    let source = RingSource { path: "ring".into(), text: "ring 2\n".to_owned() + &"8\n".repeat(100) };
    let dir = tempfile::tempdir().expect("a directory");
    let archive = dir.path().join("ring.pdt");
    let options = ConvertOptions { folding: Folding::Always, ..ConvertOptions::default() };
    let converted = trace_mmap::convert(Box::new(source), &archive, &options).expect("it converts");
    assert_eq!((converted.summary.ranks, converted.summary.actions), (2, 400));
    assert_eq!(Trace::load(&archive).expect("an archive").actions(), 400);
}
