//! Timelines as tables: states, wait states and messages; CSV files.

use std::io;
use std::path::{Path, PathBuf};

use mpi_model::Event;
use outputs::AtomicFile;

/// A column of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) name: &'static str,
    pub(crate) column_type: ColumnType,
}

/// Type of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ColumnType {
    /// Integers.
    Number,
    /// Simulated times \[ps\].
    Time,
    /// One of a few names.
    Name,
    /// One of a few names, or none.
    NameOrNone,
}

/// Value in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cell<'a> {
    Number(u64),
    Name(Option<&'a str>),
}

const fn column(name: &'static str, content: ColumnType) -> Column {
    Column { name, column_type: content }
}

pub(crate) const STATES: &[Column] = &[
    column("rank", ColumnType::Number),
    column("state", ColumnType::Name),
    column("begin_ps", ColumnType::Time),
    column("end_ps", ColumnType::Time),
    column("site", ColumnType::NameOrNone),
];

pub(crate) const WAITS: &[Column] = &[
    column("rank", ColumnType::Number),
    column("state", ColumnType::Name),
    column("wait", ColumnType::Name),
    column("begin_ps", ColumnType::Time),
    column("end_ps", ColumnType::Time),
    column("site", ColumnType::NameOrNone),
];

pub(crate) const MESSAGES: &[Column] = &[
    column("from", ColumnType::Number),
    column("to", ColumnType::Number),
    column("sent_ps", ColumnType::Time),
    column("arrived_ps", ColumnType::Time),
    column("bytes", ColumnType::Number),
    column("tag", ColumnType::Number),
    column("communicator", ColumnType::Number),
    column("operation", ColumnType::NameOrNone),
];

/// Writer of a table to a file.
pub(crate) trait Table: Sized {
    fn create(path: &Path, columns: &'static [Column]) -> io::Result<Self>;

    /// Writes a row, one cell per column.
    fn row(&mut self, cells: &[Cell<'_>]) -> io::Result<()>;

    /// Completes the file and returns its size \[B\].
    fn finish(self) -> io::Result<u64>;
}

/// Tables of a timeline.
#[derive(Debug)]
pub(crate) struct Tables<T> {
    states: T,
    waits: T,
    messages: T,
}

/// Returns the path of a table beside the table of states.
fn sibling_path(path: &Path, name: &str) -> PathBuf {
    let extension = path.extension().unwrap_or_default().to_string_lossy();
    path.with_extension(format!("{name}.{extension}"))
}

impl<T: Table> Tables<T> {
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        Ok(Self {
            states: T::create(path, STATES)?,
            waits: T::create(&sibling_path(path, "waits"), WAITS)?,
            messages: T::create(&sibling_path(path, "messages"), MESSAGES)?,
        })
    }

    /// Writes an event, with the name of its call site.
    pub(crate) fn write(&mut self, event: &Event, site: Option<&str>) -> io::Result<()> {
        use Cell::{Name, Number};
        let number = |number: u32| Number(number.into());
        match *event {
            Event::State { rank, kind, begin, end, .. } => {
                let (begin, end) = (Number(begin.as_picos()), Number(end.as_picos()));
                self.states.row(&[number(rank.get()), Name(Some(kind.name())), begin, end, Name(site)])
            }
            Event::Wait { rank, kind, state, begin, end, .. } => {
                let (begin, end) = (Number(begin.as_picos()), Number(end.as_picos()));
                let names = [Name(Some(kind.name())), Name(Some(state.name()))];
                self.waits.row(&[number(rank.get()), names[0], names[1], begin, end, Name(site)])
            }
            Event::Message { from, to, sent, arrived, bytes, tag, communicator, operation } => {
                self.messages.row(&[
                    number(from.get()),
                    number(to.get()),
                    Number(sent.as_picos()),
                    Number(arrived.as_picos()),
                    Number(bytes.get()),
                    number(tag),
                    number(communicator.get()),
                    Name(operation.map(mpi_model::ActionKind::name)),
                ])
            }
        }
    }

    pub(crate) fn finish(self) -> io::Result<u64> {
        Ok(self.states.finish()? + self.waits.finish()? + self.messages.finish()?)
    }
}

/// Writer of a table as comma-separated values.
#[derive(Debug)]
pub(crate) struct CsvTable(csv::Writer<AtomicFile>);

impl Table for CsvTable {
    fn create(path: &Path, columns: &'static [Column]) -> io::Result<Self> {
        let mut writer = csv::Writer::from_writer(AtomicFile::create(path)?);
        writer.write_record(columns.iter().map(|column| column.name))?;
        Ok(Self(writer))
    }

    fn row(&mut self, cells: &[Cell<'_>]) -> io::Result<()> {
        for cell in cells {
            match cell {
                Cell::Number(number) => self.0.write_field(number.to_string())?,
                Cell::Name(name) => self.0.write_field(name.unwrap_or_default())?,
            }
        }
        Ok(self.0.write_record(None::<&[u8]>)?)
    }

    fn finish(self) -> io::Result<u64> {
        self.0.into_inner().map_err(csv::IntoInnerError::into_error)?.commit()
    }
}

#[cfg(test)]
mod tests {
    use crate::Format;
    use crate::sample;

    #[test]
    fn tables_are_text() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("run.csv");
        let summary = sample::write(Format::Csv, &path);
        let text = |name: &str| std::fs::read_to_string(directory.path().join(name)).unwrap();
        let (states, waits, messages) = (text("run.csv"), text("run.waits.csv"), text("run.messages.csv"));
        assert_eq!(
            states,
            "rank,state,begin_ps,end_ps,site\n0,compute,0,5000000,\n1,compute,0,1000000,\n\
             1,recv,1000000,7000000,in.c:7\n0,send,5000000,5000000,\n0,finalize,5000000,5000000,\n\
             1,bcast,7000000,8000000,out\n"
        );
        assert_eq!(
            waits,
            "rank,state,wait,begin_ps,end_ps,site\n1,recv,late_sender,1000000,5000000,in.c:7\n"
        );
        assert_eq!(
            messages,
            "from,to,sent_ps,arrived_ps,bytes,tag,communicator,operation\n0,1,5000000,7000000,984,7,0,\n\
             1,9,7000000,8000000,984,7,0,bcast\n"
        );
        assert_eq!(summary.bytes, (states.len() + waits.len() + messages.len()) as u64);
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 3);
    }
}
