//! `loadline records monitor`: a line for each change or, of arrays, a report a second as
//! `longArrayMonitorMain` gives.

use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::client::shared::Segments;
use crate::client::{Channel, Client, ClientError, Operation, OperationKind, Session, Update};
use crate::protocol::{
    Array, ArrayLocation, Bits, Item, Request, SHARED_OPTION, Scalar, located_scalar,
};
use anyhow::Context as _;
use serde::Serialize;

use super::context::{CommandContext, WAIT};
use super::report::Tally;
use super::typed::{ARRAY_CHANNEL, request, seconds};
use super::{npy, show};
use service::out::note;

/// Arguments of `loadline records monitor`.
#[derive(Debug, clap::Args)]
pub(crate) struct MonitorArgs {
    /// The channel
    #[arg(default_value = ARRAY_CHANNEL)]
    name: String,

    /// Which fields, such as field(value,alarm.severity)
    #[arg(long, value_name = "REQUEST", default_value = "field()", value_parser = request)]
    request: Request,

    /// How many updates may wait, at the server and here; below 2 it is 2
    #[arg(long, value_name = "UPDATES", default_value_t = 2)]
    queue_size: u32,

    /// Seconds to wait after each update, which makes this a slow client
    #[arg(long, value_name = "SECONDS", default_value = "0", value_parser = seconds)]
    wait: Duration,

    /// Have the server send no more updates than there is room for
    #[arg(long)]
    pipeline: bool,

    /// Look at arrays in memory that a server of this host shares (serve records
    /// --shared-memory); those that it doesn't share come by the connection
    #[arg(long, conflicts_with = "npy")]
    shared: bool,

    /// Report once a second instead of each update; arrays are reported so anyhow
    #[arg(long)]
    report: bool,

    /// Write the last array to a file that NumPy reads
    #[arg(long, value_name = "FILE")]
    npy: Option<PathBuf>,

    /// End after this many updates
    #[arg(long, value_name = "UPDATES")]
    count: Option<u64>,

    /// End when the connection is lost, instead of connecting again
    #[arg(long)]
    once: bool,
}

/// The least queue: with one place, an update that comes while another is sent is lost.
const MIN_QUEUE: u32 = 2;

/// The client's side of the queue, between the thread that reads and the one that looks.
#[derive(Debug, Default)]
struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    updates: VecDeque<Update>,
    lost: u64,
    end: Option<ClientError>,
}

pub(crate) fn run(context: &CommandContext, args: &MonitorArgs) -> anyhow::Result<ExitCode> {
    let size = args.queue_size.max(MIN_QUEUE);
    let mut request = args.request.clone();
    request.options.insert("queueSize".to_owned(), size.to_string());
    if args.pipeline {
        request.options.insert("pipeline".to_owned(), "true".to_owned());
    }
    let what = OperationKind::Monitor { window: args.pipeline.then_some(size) };
    let queue = Arc::new(Queue::default());
    let (filled, name, is_shared) = (Arc::clone(&queue), args.name.clone(), args.shared);
    let begin = move |client: &mut Client, channel: &Channel| {
        let start = |client: &mut Client, request: &Request| {
            let monitor = client.begin(channel, what, request)?;
            client.run(&monitor, true).map(|()| monitor)
        };
        if !is_shared {
            return start(client, &request);
        }
        let mut shared = request.clone();
        shared.options.insert(SHARED_OPTION.to_owned(), "true".to_owned());
        let mut monitor = start(client, &shared)?;
        match first_shared(client, &mut monitor)? {
            Ok(first) => {
                first.into_iter().for_each(|first| filled.push(first, size as usize));
                Ok(monitor)
            }
            Err(error) => {
                note(format!(
                    "{name}: arrays come by the connection: their memory can't be seen here: \
                     {error}"
                ));
                client.end(&monitor)?;
                start(client, &request)
            }
        }
    };
    let session = context.session(&args.name, args.once, begin)?;
    let filled = Arc::clone(&queue);
    // It ends with the process: nothing else holds what it reads from.
    std::thread::spawn(move || fill(session, &filled, size as usize));
    look(context, args, &queue)
}

/// Where an item's array lies in shared memory, and what its elements are.
fn placed(item: &Item) -> Option<(ArrayLocation, Scalar)> {
    ArrayLocation::of(item.get("value")?).zip(located_scalar(item.kind()))
}

/// The first update, where the server offers arrays in shared memory: or why that
/// can't be seen here.
fn first_shared(
    client: &mut Client,
    monitor: &mut Operation,
) -> Result<io::Result<Option<Update>>, ClientError> {
    if monitor.kind().and_then(located_scalar).is_none() {
        return Ok(Ok(None));
    }
    let first = client.next(monitor, WAIT)?;
    if let Some((place, scalar)) = first.as_ref().and_then(|update| placed(&update.item))
        && let Err(error) = Segments::default().spot_check(&place, scalar)
    {
        return Ok(Err(error));
    }
    Ok(Ok(first))
}

/// Reads updates until the session ends.
fn fill(mut session: Session, queue: &Queue, size: usize) {
    const LOOK_EVERY: Duration = Duration::from_secs(1);
    loop {
        match session.next(LOOK_EVERY) {
            Ok(None) => {}
            Ok(Some(update)) => queue.push(update, size),
            Err(error) => return queue.end(error),
        }
    }
}

/// What an update that is lost had changed has changed for the next one, too.
fn merge(lost: &Update, next: &mut Update) {
    next.changed.union(&lost.changed);
    next.overrun.union(&lost.overrun);
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an update; of more than `size`, the oldest is lost.
    fn push(&self, update: Update, size: usize) {
        let mut state = self.lock();
        if state.updates.len() >= size
            && let Some(oldest) = state.updates.pop_front()
        {
            state.lost += 1;
            if let Some(next) = state.updates.front_mut() {
                merge(&oldest, next);
            }
        }
        state.updates.push_back(update);
        self.changed.notify_one();
    }

    fn end(&self, error: ClientError) {
        self.lock().end = Some(error);
        self.changed.notify_one();
    }

    /// The next update and how many were lost here before it; nothing within a second.
    fn next(&self) -> Result<Option<(Update, u64)>, ClientError> {
        let mut state = self.lock();
        if state.updates.is_empty() && state.end.is_none() {
            let second = Duration::from_secs(1);
            let waited = self.changed.wait_timeout(state, second);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        let lost = std::mem::take(&mut state.lost);
        match state.updates.pop_front() {
            Some(update) => Ok(Some((update, lost))),
            None => state.end.take().map_or(Ok(None), Err),
        }
    }
}

fn look(context: &CommandContext, args: &MonitorArgs, queue: &Queue) -> anyhow::Result<ExitCode> {
    let mut report = Tally::new("updates").checking(context.check);
    let mut segments = Segments::default();
    let fields = args.request.field.as_ref().map_or(&[][..], |selection| &selection.fields);
    let asks_array = fields.is_empty() || fields.iter().any(|(name, _)| name == "value");
    let mut left = args.count.unwrap_or(u64::MAX);
    let mut last: Option<Item> = None;
    let mut end = None;
    while left > 0 && end.is_none() {
        match queue.next() {
            Ok(Some((update, lost))) => {
                left -= 1;
                report.lost(lost);
                if let Some((place, scalar)) = placed(&update.item) {
                    match segments.spot_check(&place, scalar) {
                        Ok(Some(spots)) => report.add_spot_check(&spots),
                        Ok(None) => report.lost(1),
                        // The server that shared it has ended.
                        Err(error) => {
                            report.lost(1);
                            note(format!("{}: an array's memory is gone: {error}", args.name));
                        }
                    }
                    report.add_fields(&update.changed, &update.overrun);
                } else if args.report || (asks_array && show::array(&update.item).is_some()) {
                    let array = show::array(&update.item).filter(|_| asks_array);
                    report.add(array);
                    report.add_fields(&update.changed, &update.overrun);
                    check(args, array);
                } else {
                    print(context, args, &update, lost)?;
                }
                last = args.npy.is_some().then_some(update.item);
                std::thread::sleep(args.wait);
            }
            Ok(None) => {}
            Err(error) => end = Some(error),
        }
        if let Some(done) = report.due() {
            context.print(&done.json(), &done.text())?;
        }
    }
    if let Some(done) = report.take() {
        context.print(&done.json(), &done.text())?;
    }
    if let (Some(path), Some(item)) = (&args.npy, &last) {
        npy::write(path, &args.name, item)?;
    }
    match end {
        Some(error) => Err(error).with_context(|| args.name.clone()),
        None => report.outcome(&args.name),
    }
}

/// An array that brings nothing is no update of one.
fn check(args: &MonitorArgs, array: Option<&Array>) {
    if array.is_some_and(Array::is_empty) {
        note(format!("{}: an update without elements", args.name));
    }
}

/// An update as JSON.
#[derive(Serialize)]
struct UpdateJson<'a> {
    schema: u32,
    name: &'a str,
    changed: Vec<String>,
    server_overrun: Vec<String>,
    client_overrun: u64,
    value: show::NodesJson<'a>,
}

fn print(
    context: &CommandContext,
    args: &MonitorArgs,
    update: &Update,
    lost: u64,
) -> anyhow::Result<()> {
    let bits = |bits: &Bits| {
        let name = |bit| update.item.kind().path(bit).map(|(path, _)| path);
        bits.iter().filter_map(name).collect::<Vec<_>>()
    };
    let item = &show::asked(&args.request, &update.item);
    let object = UpdateJson {
        schema: 1,
        name: &args.name,
        changed: bits(&update.changed),
        server_overrun: bits(&update.overrun),
        client_overrun: lost,
        value: show::item_json(item),
    };
    let time = show::time(item).map(|time| format!("{time}  ")).unwrap_or_default();
    let mut text = format!("{}  {time}{}", args.name, show::record_line(item));
    if !update.overrun.is_empty() {
        text.push_str(&format!("  (values of {} were lost)", bits(&update.overrun).join(", ")));
    }
    context.print(&object, &text)
}
