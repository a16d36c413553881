//! A table of a run as CSV or JSON lines.

use std::io::{self, Write};

use ledger::{Cell, Export, Ledger, LedgerError, RunId};

/// The format of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportFormat {
    /// A line of names, then a line per row, by RFC 4180 but for line ends of one byte. What is
    /// unseen is empty.
    Csv,
    /// A JSON object per line. An unseen value is null.
    JsonLines,
}

/// Why a table can't be exported.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The ledger can't be read.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The rows can't be written.
    #[error("the rows can't be written")]
    Write(#[from] io::Error),
}

/// Writes a table of a run; bytes stand in hex.
pub fn export(
    ledger: &Ledger,
    run: RunId,
    table: &Export,
    format: ExportFormat,
    out: &mut dyn Write,
) -> Result<(), ExportError> {
    let columns = ledger.export_columns(table)?;
    if format == ExportFormat::Csv {
        let names: Vec<String> = columns.iter().map(|name| csv_text(name)).collect();
        writeln!(out, "{}", names.join(","))?;
    }
    let json_names: Vec<String> =
        columns.iter().map(|name| serde_json::Value::from(&name[..]).to_string()).collect();
    ledger.export(run, table, |cells| -> Result<(), ExportError> {
        match format {
            ExportFormat::Csv => {
                let cells: Vec<String> = cells.iter().map(csv).collect();
                writeln!(out, "{}", cells.join(","))?;
            }
            ExportFormat::JsonLines => {
                let pairs = json_names.iter().zip(cells);
                let pairs: Vec<String> =
                    pairs.map(|(name, cell)| format!("{name}:{}", json(cell))).collect();
                writeln!(out, "{{{}}}", pairs.join(","))?;
            }
        }
        Ok(())
    })
}

fn csv(cell: &Cell<'_>) -> String {
    match cell {
        Cell::Null => String::new(),
        Cell::Integer(number) => number.to_string(),
        Cell::Real(number) => number.to_string(),
        Cell::Text(text) => csv_text(text),
        Cell::Blob(bytes) => crate::number::hex(bytes),
    }
}

fn csv_text(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

fn json(cell: &Cell<'_>) -> serde_json::Value {
    match *cell {
        Cell::Null => serde_json::Value::Null,
        Cell::Integer(number) => number.into(),
        Cell::Real(number) => number.into(),
        Cell::Text(text) => text.into(),
        Cell::Blob(bytes) => crate::number::hex(bytes).into(),
    }
}
