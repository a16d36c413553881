//! `loadline records get`: once, or again and again as `longArrayGetMain` does.

use std::path::PathBuf;
use std::process::ExitCode;

use ::records::client::{Channel, Client, Operation, What};
use ::records::protocol::{Item, Request};
use anyhow::{Context as _, bail};
use serde_json::json;

use super::report::Report;
use super::{Again, Setting, npy, request, show};

/// Arguments of `loadline records get`.
#[derive(Debug, clap::Args)]
pub(crate) struct GetArgs {
    /// The channels
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,

    /// Which fields, such as field(value,alarm.severity)
    #[arg(long, value_name = "REQUEST", default_value = "field()", value_parser = request)]
    request: Request,

    /// Print every field of a record
    #[arg(long)]
    all: bool,

    /// Write the array to a file that NumPy reads
    #[arg(long, value_name = "FILE")]
    npy: Option<PathBuf>,

    #[command(flatten)]
    again: Again,

    /// Begin the get anew after so many times; 0 is never
    #[arg(long, value_name = "TIMES", default_value_t = 0)]
    recreate_get_every: u64,
}

pub(crate) fn run(setting: &Setting, args: &GetArgs) -> anyhow::Result<ExitCode> {
    let is_repeated =
        args.again.repeat || args.again.recreate_channel_every > 0 || args.recreate_get_every > 0;
    if is_repeated {
        let [name] = &args.names[..] else { bail!("only one channel can be read again and again") };
        return repeat(setting, args, name);
    }
    for name in &args.names {
        let mut client = setting.connect(name)?;
        let (_, mut operation) = begin(&mut client, name, &args.request)?;
        client.get(&mut operation).with_context(|| name.clone())?;
        let item = operation.item().context("a value")?;
        print(setting, args, name, item)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn begin(
    client: &mut Client,
    name: &str,
    request: &Request,
) -> anyhow::Result<(Channel, Operation)> {
    let channel = client.channel(name).with_context(|| name.to_owned())?;
    let operation = client.begin(&channel, What::Get, request).with_context(|| name.to_owned())?;
    Ok((channel, operation))
}

fn print(setting: &Setting, args: &GetArgs, name: &str, item: &Item) -> anyhow::Result<()> {
    if let Some(path) = &args.npy {
        let array = show::array(item).with_context(|| format!("{name} holds no array"))?;
        npy::write(path, array)?;
    }
    let text = if args.all { show::item_text(item) } else { show::record_line(item) };
    let time = show::time(item).map(|time| format!("{time}  ")).unwrap_or_default();
    let object = json!({ "schema": 1, "name": name, "value": show::item_json(item) });
    setting.print(&object, &format!("{name}  {time}{text}"))
}

fn repeat(setting: &Setting, args: &GetArgs, name: &str) -> anyhow::Result<ExitCode> {
    let mut client = setting.connect(name)?;
    let (mut channel, mut operation) = begin(&mut client, name, &args.request)?;
    let mut report = Report::new("gets");
    let every = |count: u64, times: u64| times > 0 && count > 0 && count.is_multiple_of(times);
    for count in 0..args.again.count.unwrap_or(u64::MAX) {
        if every(count, args.again.recreate_channel_every) {
            client.close(&channel)?;
            (channel, operation) = begin(&mut client, name, &args.request)?;
        } else if every(count, args.recreate_get_every) {
            client.end(&operation)?;
            operation = client.begin(&channel, What::Get, &args.request)?;
        }
        client.get(&mut operation)?;
        report.add(operation.item().and_then(show::array));
        if let Some(done) = report.due() {
            setting.print(&done.json(), &done.text())?;
        }
        std::thread::sleep(args.again.delay);
    }
    if let Some(done) = report.take() {
        setting.print(&done.json(), &done.text())?;
    }
    Ok(ExitCode::SUCCESS)
}
