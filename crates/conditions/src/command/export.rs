//! `loadline conditions export`.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use service::out;

use super::beside::write_beside;
use super::context::{BadInput, Context};
use super::parts::SAY_EVERY;
use super::show::{TimesArgs, VersionArgs};
use crate::protocol::{Format, INSERT_MAGIC, time};
use base::many;

/// What a program says that was built without.
pub(super) const NO_PARQUET: &str =
    "this program is built without Parquet: build it with --features parquet";

/// What is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum ExportFormat {
    /// A JSON object a line
    Jsonl,
    /// A header, then a line for each record, of one folder: an empty field has no value
    Csv,
    /// Columns, as `insert --file` reads them
    #[value(alias = "binary")]
    Bin,
    /// A database with a table for each folder, to ask with SQL
    #[cfg(feature = "sqlite")]
    Sqlite,
    /// A Parquet file of one folder, with a row for each record; takes the feature `parquet`
    Parquet,
}

#[derive(Debug, clap::Args)]
pub(super) struct ExportArgs {
    /// The folders at and below this path
    #[arg(default_value = "/")]
    under: String,
    /// What is shown at this time
    #[arg(
        long,
        value_name = "TIME",
        value_parser = time,
        allow_negative_numbers = true,
        conflicts_with_all = ["since", "until"]
    )]
    time: Option<u64>,
    #[command(flatten)]
    times: TimesArgs,
    /// Channels by number, such as 1-5,7
    #[arg(long, value_name = "RANGES")]
    channels: Option<String>,
    #[command(flatten)]
    version: VersionArgs,
    /// How it is written; as the file's name says, to standard output as lines of JSON, without it
    #[arg(long, value_name = "FORMAT")]
    format: Option<ExportFormat>,
    /// Write it to this file, which isn't there yet
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

pub(super) fn export(context: &Context, args: &ExportArgs) -> anyhow::Result<()> {
    let extension = args.out.as_ref().map(|path| path.extension().and_then(|name| name.to_str()));
    let format = match (args.format, extension) {
        (Some(format), _) => format,
        (None, None | Some(Some("jsonl"))) => ExportFormat::Jsonl,
        (None, Some(Some("csv"))) => ExportFormat::Csv,
        (None, Some(Some("bin"))) => ExportFormat::Bin,
        #[cfg(feature = "sqlite")]
        (None, Some(Some("sqlite" | "db"))) => ExportFormat::Sqlite,
        (None, Some(Some("parquet"))) => ExportFormat::Parquet,
        (None, Some(_)) => {
            let why = "its name says no format: end it in .jsonl, .csv, .bin, .sqlite or .parquet, \
                       or add --format";
            let path = args.out.as_deref().unwrap_or(Path::new("")).display();
            return Err(BadInput(format!("{path}: {why}")).into());
        }
    };
    if format == ExportFormat::Parquet && !cfg!(feature = "parquet") {
        return Err(BadInput(NO_PARQUET.to_owned()).into());
    }
    let asked = match format {
        ExportFormat::Jsonl => Format::Jsonl,
        ExportFormat::Csv => Format::Csv,
        _ => Format::Binary,
    };
    let (since, until) =
        args.time.map_or((args.times.since, args.times.until), |time| (time, time));
    let mut parameters = vec![
        ("under", args.under.clone()),
        ("since", since.to_string()),
        ("until", until.to_string()),
        ("format", asked.name().to_owned()),
    ];
    parameters.extend(args.channels.clone().map(|ranges| ("channels", ranges)));
    args.version.add_to(&mut parameters);
    let Some(path) = &args.out else {
        if !matches!(format, ExportFormat::Jsonl | ExportFormat::Csv) {
            return Err(BadInput("this is no text: name a file with --out".to_owned()).into());
        }
        context.client.export(&parameters, &mut out::stream())?;
        return Ok(());
    };
    let bytes = write_beside(path, |file| match format {
        #[cfg(feature = "sqlite")]
        ExportFormat::Sqlite => {
            let mut bytes = Noted::new(Vec::new());
            context.client.export(&parameters, &mut bytes)?;
            let folders = super::show::folders(context, &args.under)?;
            super::sqlite::write(file.path(), &bytes.to, &folders)?;
            Ok(file.as_file().metadata()?.len())
        }
        #[cfg(feature = "parquet")]
        ExportFormat::Parquet => {
            let mut bytes = Vec::new();
            context.client.export(&parameters, &mut bytes)?;
            super::parquet::write(file.as_file_mut(), &bytes)?;
            Ok(file.as_file().metadata()?.len())
        }
        _ => {
            let begin = begin(format);
            let mut file = Begins { to: Noted::new(BufWriter::new(file)), left: begin };
            let bytes = context.client.export(&parameters, &mut file)?;
            file.flush()?;
            // Of nothing there is nothing, but for CSV's header.
            let may_be_empty = format != ExportFormat::Csv && bytes == 0;
            anyhow::ensure!(file.left.is_empty() || may_be_empty, NO_EXPORT);
            Ok(bytes)
        }
    })?;
    let json = serde_json::json!({ "schema": 1, "file": path, "bytes": bytes });
    context.print(&json, &format!("{}: {}", path.display(), many(bytes, "byte")))
}

/// The first bytes of every export of something.
fn begin(format: ExportFormat) -> &'static [u8] {
    match format {
        ExportFormat::Csv => CSV_BEGIN,
        ExportFormat::Jsonl => b"{",
        _ => &INSERT_MAGIC,
    }
}

/// The first bytes of every CSV.
const CSV_BEGIN: &[u8] = b"channel,since,until,record";

/// What is wrong with another answer.
const NO_EXPORT: &str = "what the server answers is no export: is it a server of conditions?";

/// Refuses what begins otherwise.
struct Begins<W> {
    to: W,
    /// What has to come next.
    left: &'static [u8],
}

impl<W: Write> Write for Begins<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let (looked_at, left) = self.left.split_at(bytes.len().min(self.left.len()));
        if !bytes.starts_with(looked_at) {
            return Err(io::Error::other(NO_EXPORT));
        }
        self.left = left;
        self.to.write_all(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// Says once a second how many bytes were written.
struct Noted<W> {
    to: W,
    bytes: u64,
    noted: Instant,
}

impl<W> Noted<W> {
    fn new(to: W) -> Self {
        Self { to, bytes: 0, noted: Instant::now() }
    }
}

impl<W: Write> Write for Noted<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.to.write(bytes)?;
        self.bytes += written as u64;
        if self.noted.elapsed() >= SAY_EVERY {
            self.noted = Instant::now();
            out::note(format!("{:.1} MB", self.bytes as f64 / 1e6));
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_csv_is_refused_however_it_comes() {
        let written = |pieces: &[&str]| {
            let mut to = Begins { to: Vec::new(), left: CSV_BEGIN };
            let all = pieces.iter().try_for_each(|piece| to.write_all(piece.as_bytes()));
            all.is_ok() && to.left.is_empty()
        };
        assert!(written(&["channel,since,until,record,v\n"]));
        assert!(written(&["chan", "", "nel,since,until,record", "\n"]));
        for pieces in [&["{}"][..], &[], &["channel,since"], &["chan", "x"]] {
            assert!(!written(pieces), "{pieces:?}");
        }
    }
}
