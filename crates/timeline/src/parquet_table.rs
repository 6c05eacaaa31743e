//! Tables in Parquet files.

use std::io;
use std::path::Path;
use std::sync::Arc;

use outputs::AtomicFile;
use parquet::basic::{Compression, ConvertedType, Encoding, LogicalType, Repetition, Type as PhysicalType};
use parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{ColumnPath, Type};

use crate::table::{Cell, Column, ColumnType, Table};

/// Rows per row group, which is also the largest number in memory.
const ROWS_PER_GROUP: usize = 1 << 17;

/// Writer of a table to a Parquet file, in row groups of 131,072 rows.
pub(crate) struct ParquetTable {
    writer: SerializedFileWriter<AtomicFile>,
    columns: Vec<(ColumnType, Values)>,
    rows: usize,
}

/// Values of a column that are not written yet.
enum Values {
    Numbers(Vec<i64>),
    /// Names of the rows that have one, and for each row its definition level: 1 if it has a name, else 0.
    Names(Vec<ByteArray>, Vec<i16>),
}

impl std::fmt::Debug for ParquetTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "a table of {} columns", self.columns.len())
    }
}

fn to_io_error(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(source) => io::Error::other(source),
        other => io::Error::other(other),
    }
}

/// Returns the Parquet type of a column.
fn field_type(column: &Column) -> Result<Type, ParquetError> {
    let of_numbers = || Type::primitive_type_builder(column.name, PhysicalType::INT64);
    let of_names = || {
        Type::primitive_type_builder(column.name, PhysicalType::BYTE_ARRAY)
            .with_logical_type(Some(LogicalType::String))
            .with_converted_type(ConvertedType::UTF8)
    };
    match column.column_type {
        ColumnType::Number | ColumnType::Time => of_numbers().with_repetition(Repetition::REQUIRED),
        ColumnType::Name => of_names().with_repetition(Repetition::REQUIRED),
        ColumnType::NameOrNone => of_names().with_repetition(Repetition::OPTIONAL),
    }
    .build()
}

fn schema(columns: &[Column]) -> Result<Type, ParquetError> {
    let fields = columns.iter().map(|column| field_type(column).map(Arc::new)).collect::<Result<_, _>>()?;
    Type::group_type_builder("timeline").with_fields(fields).build()
}

/// Returns the writer's settings. Times are almost sorted, so that they are delta-encoded.
fn properties(columns: &[Column]) -> WriterProperties {
    let times = columns.iter().filter(|column| column.column_type == ColumnType::Time);
    let builder = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_created_by(concat!("pdes-replay ", env!("CARGO_PKG_VERSION")).to_owned());
    times
        .fold(builder, |builder, column| {
            let path = ColumnPath::from(column.name);
            builder
                .set_column_dictionary_enabled(path.clone(), false)
                .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED)
        })
        .build()
}

impl Table for ParquetTable {
    fn create(path: &Path, columns: &'static [Column]) -> io::Result<Self> {
        let draft = AtomicFile::create(path)?;
        let schema = Arc::new(schema(columns).map_err(to_io_error)?);
        let properties = Arc::new(properties(columns));
        let writer = SerializedFileWriter::new(draft, schema, properties).map_err(to_io_error)?;
        let values = |column: &Column| match column.column_type {
            ColumnType::Number | ColumnType::Time => Values::Numbers(Vec::new()),
            ColumnType::Name | ColumnType::NameOrNone => Values::Names(Vec::new(), Vec::new()),
        };
        let columns = columns.iter().map(|column| (column.column_type, values(column))).collect();
        Ok(Self { writer, columns, rows: 0 })
    }

    fn row(&mut self, cells: &[Cell<'_>]) -> io::Result<()> {
        for ((_, values), cell) in self.columns.iter_mut().zip(cells) {
            match (values, cell) {
                // Sizes and instants stay below 2^63.
                (Values::Numbers(numbers), Cell::Number(number)) => numbers.push(*number as i64),
                (Values::Names(names, levels), Cell::Name(name)) => {
                    names.extend(name.map(ByteArray::from));
                    levels.push(i16::from(name.is_some()));
                }
                _ => unreachable!("cells are what their columns hold"),
            }
        }
        self.rows += 1;
        if self.rows == ROWS_PER_GROUP { self.write_group() } else { Ok(()) }
    }

    fn finish(mut self) -> io::Result<u64> {
        self.write_group()?;
        self.writer.into_inner().map_err(to_io_error)?.commit()
    }
}

impl ParquetTable {
    fn write_group(&mut self) -> io::Result<()> {
        if self.rows == 0 {
            return Ok(());
        }
        self.rows = 0;
        let mut group = self.writer.next_row_group().map_err(to_io_error)?;
        for (content, values) in &mut self.columns {
            let column = group.next_column().map_err(to_io_error)?;
            let mut column = column.expect("there is a column for each of the schema");
            values.write(*content, &mut column).map_err(to_io_error)?;
            column.close().map_err(to_io_error)?;
        }
        group.close().map(|_| ()).map_err(to_io_error)
    }
}

impl Values {
    fn write(
        &mut self,
        content: ColumnType,
        column: &mut SerializedColumnWriter<'_>,
    ) -> Result<(), ParquetError> {
        match self {
            Self::Numbers(numbers) => {
                column.typed::<Int64Type>().write_batch(numbers, None, None)?;
                numbers.clear();
            }
            Self::Names(names, levels) => {
                let levels_if_any = (content == ColumnType::NameOrNone).then_some(levels.as_slice());
                column.typed::<ByteArrayType>().write_batch(names, levels_if_any, None)?;
                names.clear();
                levels.clear();
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;

    use super::*;
    use crate::Format;
    use crate::sample;

    /// Reads the rows of a file as text.
    fn rows(path: &Path) -> Vec<Vec<String>> {
        let reader = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
        let text = |field: &Field| match field {
            Field::Null => String::new(),
            Field::Str(text) => text.clone(),
            other => other.to_string(),
        };
        let row = |row: parquet::record::Row| row.get_column_iter().map(|(_, field)| text(field)).collect();
        reader.get_row_iter(None).unwrap().map(|found| row(found.unwrap())).collect()
    }

    /// Both formats have the same tables.
    #[test]
    fn rows_round_trip() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let summary = sample::write(Format::Parquet, &path("run.parquet"));
        sample::write(Format::Csv, &path("run.csv"));
        let mut bytes = 0;
        for table in ["run", "run.waits", "run.messages"] {
            let file = path(&format!("{table}.parquet"));
            let mut csv = csv::Reader::from_path(path(&format!("{table}.csv"))).unwrap();
            let expected: Vec<Vec<String>> = csv.deserialize().map(Result::unwrap).collect();
            assert_eq!(rows(&file), expected, "{table}");
            let reader = SerializedFileReader::new(File::open(&file).unwrap()).unwrap();
            let schema = reader.metadata().file_metadata().schema_descr_ptr();
            let names: Vec<&str> = schema.columns().iter().map(|column| column.name()).collect();
            assert_eq!(names, csv.headers().unwrap().iter().collect::<Vec<_>>());
            bytes += std::fs::metadata(&file).unwrap().len();
        }
        assert_eq!(summary.bytes, bytes);
    }

    #[test]
    fn rows_are_written_in_groups() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("many.parquet");
        let mut table = ParquetTable::create(&path, crate::table::WAITS).unwrap();
        let count = ROWS_PER_GROUP as u64 + 3;
        let name = |row: u64| ["recv", "wait", "wait"][(row % 3) as usize];
        for row in 0..count {
            let name = Cell::Name(Some(name(row)));
            let site = Cell::Name(["a.c:1"].get((row % 2) as usize).copied());
            let cells = [Cell::Number(row % 5), name, name, Cell::Number(row), Cell::Number(2 * row), site];
            table.row(&cells).unwrap();
        }
        table.finish().unwrap();
        let reader = SerializedFileReader::new(File::open(&path).unwrap()).unwrap();
        let groups = reader.metadata().row_groups().iter().map(|group| group.num_rows());
        assert_eq!(groups.collect::<Vec<_>>(), [ROWS_PER_GROUP as i64, 3]);
        let last = rows(&path).pop().unwrap();
        let (rank, name) = (((count - 1) % 5).to_string(), name(count - 1));
        assert_eq!(
            last,
            [&rank, name, name, &(count - 1).to_string(), &(2 * (count - 1)).to_string(), "a.c:1"]
        );
    }
}
