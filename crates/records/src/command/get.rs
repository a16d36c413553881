//! `loadline records get`: once, or again and again as `longArrayGetMain` does.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use crate::client::{Channel, OperationKind};
use crate::protocol::{Item, Request};
use anyhow::{Context as _, bail};

use super::again::{Again, Repeated};
use super::context::{CommandContext, RecordJson, begin};
use super::report::Tally;
use super::typed::{ARRAY_CHANNEL, request};
use super::{npy, show};
use service::Failure;
use service::out::note;

/// Arguments of `loadline records get`.
#[derive(Debug, clap::Args)]
pub(crate) struct GetArgs {
    /// The channels [default: arrayPerformance, with --repeat]
    #[arg(
        value_name = "NAME",
        required_unless_present_any =
            ["repeat", "delay", "count", "recreate_channel_every", "recreate_get_every"]
    )]
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

    /// Begin the get anew after this many times; 0 is never [default: 0]
    #[arg(long, value_name = "TIMES")]
    recreate_get_every: Option<u64>,
}

pub(crate) fn run(context: &CommandContext, args: &GetArgs) -> Result<ExitCode, Failure> {
    if args.again.is_asked() || args.recreate_get_every.is_some() {
        let name = match &args.names[..] {
            [] => ARRAY_CHANNEL,
            [name] => name,
            _ => {
                let message = "only one channel can be read again and again";
                return Err(Failure::Usage(message.to_owned()));
            }
        };
        return Ok(repeat(context, args, name)?);
    }
    if let [name] = &args.names[..] {
        let mut client = context.connect(name)?;
        let (_, mut operation) = begin(&mut client, name, OperationKind::Get, &args.request)?;
        client.get(&mut operation).with_context(|| name.clone())?;
        let item = operation.item().context("a value")?;
        print(context, args, name, item)?;
        return Ok(ExitCode::SUCCESS);
    }
    Ok(many(context, args)?)
}

/// Reads several channels: what is asked of one server goes out together.
fn many(context: &CommandContext, args: &GetArgs) -> anyhow::Result<ExitCode> {
    let names: Vec<&str> = args.names.iter().map(String::as_str).collect();
    let mut by_server: BTreeMap<SocketAddr, Vec<usize>> = BTreeMap::new();
    let mut printed = Printed::new(context, args);
    for (place, server) in context.find_all(&names)?.into_iter().enumerate() {
        match server {
            Some(server) => by_server.entry(server).or_default().push(place),
            None => printed.take(place, Err("no server has a channel of that name".to_owned()))?,
        }
    }
    for (server, places) in by_server {
        let outcome = read(context, args, server, &places, &mut printed);
        if let Err(error) = outcome {
            let why = format!("{error:#}");
            places.iter().try_for_each(|place| printed.take(*place, Err(why.clone())))?;
        }
    }
    match printed.failed {
        0 => Ok(ExitCode::SUCCESS),
        failed => bail!("{failed} of {} channels can't be read", names.len()),
    }
}

/// Reads those channels that one server has.
fn read(
    context: &CommandContext,
    args: &GetArgs,
    server: SocketAddr,
    places: &[usize],
    printed: &mut Printed<'_>,
) -> anyhow::Result<()> {
    let mut client = context.connect_to(server)?;
    let names: Vec<&str> = places.iter().map(|place| args.names[*place].as_str()).collect();
    let mut open = Vec::new();
    for (place, channel) in places.iter().zip(client.channels(&names)?) {
        match channel {
            Ok(channel) => open.push((*place, channel)),
            Err(error) => printed.take(*place, Err(error.to_string()))?,
        }
    }
    let channels: Vec<&Channel> = open.iter().map(|(_, channel)| channel).collect();
    let (mut places, mut operations) = (Vec::new(), Vec::new());
    for ((place, _), begun) in
        open.iter().zip(client.begin_all(&channels, OperationKind::Get, &args.request)?)
    {
        match begun {
            Ok(operation) => {
                places.push(*place);
                operations.push(operation);
            }
            Err(error) => printed.take(*place, Err(error.to_string()))?,
        }
    }
    let mut outcome = Ok(());
    client.get_all(operations, |index, operation| {
        let item = operation.map_err(|error| error.to_string());
        let item = item.and_then(|it| it.item().cloned().ok_or("it has no value".to_owned()));
        let taken = printed.take(places[index], item);
        if outcome.is_ok() {
            outcome = taken;
        }
    })?;
    outcome
}

/// What is printed in the order of names, though it may come in any other.
struct Printed<'a> {
    context: &'a CommandContext,
    args: &'a GetArgs,
    /// What has come before those that stand in front of it.
    waiting: BTreeMap<usize, Result<Item, String>>,
    next: usize,
    failed: usize,
}

impl<'a> Printed<'a> {
    fn new(context: &'a CommandContext, args: &'a GetArgs) -> Self {
        Self { context, args, waiting: BTreeMap::new(), next: 0, failed: 0 }
    }

    /// Takes what came of the name at `place`; what comes later of it is left out.
    fn take(&mut self, place: usize, result: Result<Item, String>) -> anyhow::Result<()> {
        if place >= self.next {
            self.waiting.entry(place).or_insert(result);
        }
        while let Some(result) = self.waiting.remove(&self.next) {
            let name = &self.args.names[self.next];
            self.next += 1;
            match result {
                Ok(item) => print(self.context, self.args, name, &item)?,
                Err(why) => {
                    self.failed += 1;
                    note(format!("{name}: {why}"));
                }
            }
        }
        Ok(())
    }
}

fn print(context: &CommandContext, args: &GetArgs, name: &str, item: &Item) -> anyhow::Result<()> {
    if let Some(path) = &args.npy {
        npy::write(path, name, item)?;
    }
    let item = &show::asked(&args.request, item);
    let text = if args.all { show::item_text(item) } else { show::record_line(item) };
    let time = show::time(item).map(|time| format!("{time}  ")).unwrap_or_default();
    let object = RecordJson { schema: 1, name, value: show::item_json(item) };
    context.print(&object, &format!("{name}  {time}{text}"))
}

fn repeat(context: &CommandContext, args: &GetArgs, name: &str) -> anyhow::Result<ExitCode> {
    let repeated = Repeated {
        context,
        again: &args.again,
        name,
        what: OperationKind::Get,
        request: &args.request,
        recreate_every: args.recreate_get_every.unwrap_or(0),
    };
    let report = Tally::new("gets").checking(context.check);
    repeated.run(report, |client, operation, report, _| {
        client.get(operation)?;
        report.add(operation.item().and_then(show::array));
        Ok(())
    })
}
