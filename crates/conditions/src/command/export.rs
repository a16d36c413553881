//! `loadline conditions export`.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::PathBuf;

use anyhow::Context as _;
use service::out;

use super::context::{Context, many};
use super::input::BadInput;
use super::show::{TimesArgs, VersionArgs};
use crate::protocol::{Format, time};

/// What a program says that was built without.
pub(super) const NO_PARQUET: &str =
    "this program is built without Parquet: build it with --features parquet";

/// What is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum ExportFormat {
    /// A JSON object a line
    Jsonl,
    /// A header, then a line for each record, of one folder
    Csv,
    /// Columns, as `insert --file` reads them
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
    #[arg(long, value_name = "TIME", value_parser = time, conflicts_with_all = ["since", "until"])]
    time: Option<u64>,
    #[command(flatten)]
    times: TimesArgs,
    /// Channels by number, such as 1-5,7
    #[arg(long, value_name = "RANGES")]
    channels: Option<String>,
    #[command(flatten)]
    version: VersionArgs,
    /// How it is written; as the file's name says, or as lines of JSON, without it
    #[arg(long, value_name = "FORMAT")]
    format: Option<ExportFormat>,
    /// Write it to this file, which isn't there yet
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

pub(super) fn export(context: &Context, args: &ExportArgs) -> anyhow::Result<()> {
    let extension = args.out.as_ref().and_then(|path| path.extension()?.to_str());
    let format = match (args.format, extension) {
        (Some(format), _) => format,
        (None, Some("csv")) => ExportFormat::Csv,
        (None, Some("bin")) => ExportFormat::Bin,
        #[cfg(feature = "sqlite")]
        (None, Some("sqlite" | "db")) => ExportFormat::Sqlite,
        (None, Some("parquet")) => ExportFormat::Parquet,
        _ => ExportFormat::Jsonl,
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
        context.client.get_to("/export", &parameters, &mut out::stream())?;
        return Ok(());
    };
    let shown = path.display();
    // Nothing that is there is written over, and nothing in halves stays.
    let file = File::options().write(true).create_new(true).open(path);
    let file = file.with_context(|| format!("{shown} can't be made"))?;
    let written = (|| match format {
        #[cfg(feature = "sqlite")]
        ExportFormat::Sqlite => {
            let mut bytes = Vec::new();
            context.client.get_to("/export", &parameters, &mut bytes)?;
            super::sqlite::write(path, &bytes)?;
            Ok(file.metadata()?.len())
        }
        #[cfg(feature = "parquet")]
        ExportFormat::Parquet => {
            let mut bytes = Vec::new();
            context.client.get_to("/export", &parameters, &mut bytes)?;
            super::parquet::write(&file, &bytes)?;
            Ok(file.metadata()?.len())
        }
        _ => {
            let mut file = BufWriter::new(&file);
            let bytes = context.client.get_to("/export", &parameters, &mut file)?;
            file.flush()?;
            Ok::<_, anyhow::Error>(bytes)
        }
    })();
    let bytes = match written {
        Ok(bytes) => bytes,
        Err(why) => {
            let _ = std::fs::remove_file(path);
            return Err(why).with_context(|| format!("{shown} is not written"));
        }
    };
    let json = serde_json::json!({ "schema": 1, "file": path, "bytes": bytes });
    context.print(&json, &format!("{shown}: {}", many(bytes, "byte")))
}
