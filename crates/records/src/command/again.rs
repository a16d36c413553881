//! Doing one thing to a channel again and again, with a report once a second.

use std::process::ExitCode;
use std::time::Duration;

use crate::client::{Channel, Client, Operation, OperationKind};
use crate::protocol::Request;
use anyhow::Context as _;

use super::context::CommandContext;
use super::report::Tally;
use super::typed::seconds;

/// How something is done again and again.
#[derive(Debug, clap::Args)]
pub(super) struct Again {
    /// Do it again and again, and report once a second; the options that say how do so, too
    #[arg(long)]
    repeat: bool,

    /// Close and open the channel anew after this many times; 0 is never [default: 0]
    #[arg(long, value_name = "TIMES")]
    recreate_channel_every: Option<u64>,

    /// Seconds between two times [default: 1]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    delay: Option<Duration>,

    /// End after this many times
    #[arg(long, value_name = "TIMES")]
    count: Option<u64>,

    /// End when the connection is lost, instead of connecting again
    #[arg(long)]
    once: bool,
}

/// The default pause between two operations.
const USUAL_DELAY: Duration = Duration::from_secs(1);

impl Again {
    /// Whether it is done more than once, which a count or a rate implies.
    pub(super) fn is_asked(&self) -> bool {
        let says_how = self.delay.is_some() || self.count.is_some();
        self.repeat || says_how || self.recreate_channel_every.is_some()
    }
}

/// What is done again and again, and to which channel.
pub(super) struct Repeated<'a> {
    pub(super) context: &'a CommandContext,
    pub(super) again: &'a Again,
    pub(super) name: &'a str,
    pub(super) what: OperationKind,
    pub(super) request: &'a Request,
    /// The operation is begun anew after this many times; 0 is never.
    pub(super) recreate_every: u64,
}

impl Repeated<'_> {
    /// Does `once` with the number of the time, counted from 0, as often as it is asked for.
    pub(super) fn run(
        self,
        mut report: Tally,
        mut once: impl FnMut(&mut Client, &mut Operation, &mut Tally, u64) -> anyhow::Result<()>,
    ) -> anyhow::Result<ExitCode> {
        let Self { context, again, name, what, request, recreate_every } = self;
        let request = request.clone();
        let begin =
            move |client: &mut Client, channel: &Channel| client.begin(channel, what, &request);
        let mut session = context.session(name, again.once, begin)?;
        let every =
            |number: u64, times: u64| times > 0 && number > 0 && number.is_multiple_of(times);
        for number in 0..again.count.unwrap_or(u64::MAX) {
            if every(number, again.recreate_channel_every.unwrap_or(0)) {
                session.reopen().with_context(|| name.to_owned())?;
            } else if every(number, recreate_every) {
                session.restart().with_context(|| name.to_owned())?;
            }
            // What a lost connection has cut off is done again.
            loop {
                let (client, operation) = session.parts();
                let Err(error) = once(client, operation, &mut report, number) else { break };
                session.recover(error.downcast()?).with_context(|| name.to_owned())?;
            }
            if let Some(done) = report.due() {
                context.print(&done.json(), &done.text())?;
            }
            std::thread::sleep(again.delay.unwrap_or(USUAL_DELAY));
        }
        if let Some(done) = report.take() {
            context.print(&done.json(), &done.text())?;
        }
        report.outcome(name)
    }
}
