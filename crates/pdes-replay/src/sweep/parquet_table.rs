//! The results of a sweep as Parquet, for data frames.

use std::io::Write;
use std::sync::Arc;

use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::Result;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{Type, TypePtr};
use pdes_core::SimTime;

use super::SweepResults;
use super::column::{self, Cells};

/// Writes a row per run: the columns of the CSV and `simulated_time_ps`, with types. An axis is a numeric column if all of its values
/// are numbers; an axis with the name of another column gets the prefix `axis.`.
///
/// # Errors
/// Returns an error if the output cannot be written.
pub fn write_parquet(results: &SweepResults, output: impl Write + Send) -> Result<()> {
    let columns = columns(results);
    let fields = columns.iter().map(|(name, cells)| cells.field(name)).collect::<Result<Vec<_>>>()?;
    let schema = Type::group_type_builder("sweep").with_fields(fields).build()?;
    let properties = Arc::new(WriterProperties::builder().build());
    let mut writer = SerializedFileWriter::new(output, Arc::new(schema), properties)?;
    let mut group = writer.next_row_group()?;
    for (_, cells) in &columns {
        let column = group.next_column()?.expect("there is a column for each field");
        cells.write(column)?;
    }
    group.close()?;
    writer.close()?;
    Ok(())
}

fn columns(results: &SweepResults) -> Vec<(String, Cells)> {
    let known = column::columns(results);
    let is_taken = |name: &str| known.iter().any(|(known, _)| *known == name);
    let mut columns: Vec<(String, Cells)> = Vec::new();
    for (place, axis) in results.axes.iter().enumerate() {
        let name = if is_taken(axis) { format!("axis.{axis}") } else { axis.clone() };
        columns.push((name, axis_cells(results, place)));
    }
    columns.extend(known.into_iter().map(|(name, cells)| (name.to_owned(), cells)));
    columns
}

fn axis_cells(results: &SweepResults, axis: usize) -> Cells {
    let labels = || results.rows.iter().map(|row| &row.labels[axis]);
    let numbers: Option<Vec<f64>> = labels().map(|label| label.parse().ok()).collect();
    match numbers {
        Some(numbers) => Cells::Number(numbers.into_iter().map(Some).collect()),
        None => Cells::Text(labels().cloned().map(Some).collect()),
    }
}

impl Cells {
    fn field(&self, name: &str) -> Result<TypePtr> {
        let (physical, logical) = match self {
            Self::Text(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
            Self::Number(_) | Self::Time(_) => (Physical::DOUBLE, None),
            Self::Count(_) => (Physical::INT64, None),
        };
        let field = Type::primitive_type_builder(name, physical).with_repetition(Repetition::OPTIONAL);
        Ok(Arc::new(field.with_logical_type(logical).build()?))
    }

    fn write(&self, column: SerializedColumnWriter<'_>) -> Result<()> {
        match self {
            Self::Text(cells) => {
                write::<ByteArrayType, _>(column, cells, |text| ByteArray::from(text.as_bytes().to_vec()))
            }
            Self::Number(cells) => write::<DoubleType, _>(column, cells, |&number| number),
            Self::Time(cells) => {
                let second = |&picos: &u64| SimTime::from_picos(picos).as_secs_f64();
                write::<DoubleType, _>(column, cells, second)
            }
            // Times of more than a hundred days \[ps\] exceed the range, and become null.
            Self::Count(cells) => {
                let cells: Vec<Option<i64>> =
                    cells.iter().map(|count| count.and_then(|count| i64::try_from(count).ok())).collect();
                write::<Int64Type, _>(column, &cells, |&count| count)
            }
        }
    }
}

fn write<D: DataType, T>(
    mut column: SerializedColumnWriter<'_>,
    cells: &[Option<T>],
    value: impl Fn(&T) -> D::T,
) -> Result<()> {
    let values: Vec<D::T> = cells.iter().flatten().map(value).collect();
    let defined: Vec<i16> = cells.iter().map(|cell| cell.is_some().into()).collect();
    column.typed::<D>().write_batch(&values, Some(&defined), None)?;
    column.close()
}

#[cfg(test)]
mod tests {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::RowAccessor;

    use super::super::{RunResult, SweepRow};
    use super::*;

    #[test]
    fn runs_are_rows_with_types() {
        let found = RunResult {
            simulated_time_s: 1.5,
            simulated_time_ps: 1_500_000_000_000,
            compute_s: 1.0,
            communication_s: 0.5,
            ranks: 8,
            actions: 9,
            messages: 10,
            message_bytes: 11,
            wall_time_s: 0.1,
            actions_per_s: 90.0,
            digest: "ab".to_owned(),
            warnings: vec!["a".to_owned(), "b".to_owned()],
        };
        let row = |machine: &str, ranks: &str, found| SweepRow {
            cost: None,
            labels: vec![machine.to_owned(), ranks.to_owned()],
            result: found,
            is_left_out: false,
        };
        let rows = vec![row("torus", "8", Ok(found)), row("tree", "16", Err("deadlock".to_owned()))];
        let axes = vec!["machine".to_owned(), "ranks".to_owned()];
        let results = SweepResults { axes, rows, ..SweepResults::default() };
        let mut file = tempfile::tempfile().unwrap();
        write_parquet(&results, &mut file).unwrap();
        let reader = SerializedFileReader::new(file).unwrap();
        let names: Vec<String> = reader
            .metadata()
            .file_metadata()
            .schema_descr()
            .columns()
            .iter()
            .map(|column| column.name().to_owned())
            .collect();
        assert_eq!(names[..4], ["machine", "axis.ranks", "simulated_time_s", "simulated_time_ps"]);
        let rows: Vec<_> = reader.get_row_iter(None).unwrap().map(|row| row.unwrap()).collect();
        assert_eq!(rows.len(), 2);
        assert_eq!((rows[0].get_string(0).unwrap().as_str(), rows[0].get_double(1).unwrap()), ("torus", 8.0));
        assert_eq!((rows[0].get_double(2).unwrap(), rows[0].get_long(3).unwrap()), (1.5, 1_500_000_000_000));
        assert_eq!(rows[0].get_string(names.len() - 2).unwrap(), "a; b");
        assert_eq!(rows[1].get_string(names.len() - 1).unwrap(), "deadlock");
        assert!(rows[1].get_double(2).is_err(), "a run that failed has no time");
    }
}
