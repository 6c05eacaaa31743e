//! The tables of `../shared/oracle/packets`.

use std::path::PathBuf;

/// Reads a file of the folder.
pub(crate) fn text(name: &str) -> String {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/oracle/packets");
    std::fs::read_to_string(folder.join(name)).unwrap()
}

/// Returns the numbers of a column of a table, by the first column of their rows and, if there is one, by `quantity`; the rows are those
/// whose first column begins with `prefix`.
pub(crate) fn numbers(name: &str, prefix: &str, column: &str) -> Vec<(String, String, f64)> {
    let text = text(name);
    let mut lines = text.lines().map(fields);
    let header = lines.next().unwrap();
    let place = |name: &str| header.iter().position(|field| field == name);
    let (quantity, column) = (place("quantity"), place(column).unwrap());
    let row = |row: Vec<String>| {
        let quantity = quantity.map(|place| row[place].clone());
        (row[0].clone(), quantity.unwrap_or_default(), row[column].parse().unwrap())
    };
    let rows: Vec<_> = lines.filter(|row| row[0].starts_with(prefix)).map(row).collect();
    assert!(!rows.is_empty(), "{prefix}");
    rows
}

/// Returns the number of a row.
pub(crate) fn number(name: &str, case: &str, column: &str) -> f64 {
    let rows = numbers(name, case, column);
    rows.iter().find(|row| row.0 == case).unwrap().2
}

/// Divides a line; commas in quotes divide nothing.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut is_quoted = false;
    for character in line.chars() {
        match character {
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => fields.push(String::new()),
            _ => fields.last_mut().unwrap().push(character),
        }
    }
    fields
}
