//! Commands about the service itself: statistics, lists, and what is set while it runs.

use wire::Output;

use super::state::{CacheConnection, State};
use super::text::put_unless;
use crate::model::{Cursor, Seconds};
use crate::protocol::Refusal;
use crate::protocol::text::Command;
use crate::protocol::text::answer::{self, LINE_END};
use crate::server::clients::Activity;
use crate::server::statistics;

impl CacheConnection {
    /// Answers a command about the service itself.
    pub(super) fn answer_about_service(
        &mut self,
        now_s: Seconds,
        command: &Command<'_>,
        out: &mut Output,
    ) {
        match *command {
            Command::Stats { group, rest } => {
                if let Some(client) = &self.client {
                    client.note_activity(Activity::Parses);
                }
                statistics::answer(&self.service, now_s, group, rest, out.tail());
            }
            Command::Crawler(command) => {
                let outcome = self.service.crawler.command(command);
                out.put(outcome.map_or_else(Refusal::line, |()| answer::OK));
            }
            Command::List(_) if !self.service.crawler.options().enabled => {
                out.put(Refusal::NoCrawler.line());
            }
            Command::List(_) if !self.service.options.list_keys => {
                out.put(Refusal::NoDump.line());
            }
            Command::List(listing) => self.state = State::List(listing, Cursor::default()),
            Command::Memory { megabytes, noreply } => {
                let bytes = usize::try_from(megabytes << 20).unwrap_or(usize::MAX);
                let changed = self.service.store.set_memory(now_s, bytes);
                let line = changed.map_or(Refusal::BadMemory.line(), |()| answer::OK);
                put_unless(noreply, line, out);
            }
            Command::Verbosity { level, noreply } => {
                self.service.verbosity.set(level);
                put_unless(noreply, answer::OK, out);
            }
            Command::Ignored { noreply } => put_unless(noreply, answer::OK, out),
            Command::RefreshCerts { noreply } => match self.service.refresh_certificates() {
                Ok(()) => put_unless(noreply, answer::OK, out),
                Err(why) => {
                    // memcached's words: no other answer begins with this one.
                    out.put(b"Error ");
                    out.put(why.replace(['\r', '\n'], " ").as_bytes());
                    out.put(LINE_END);
                }
            },
            Command::Version => {
                out.put(b"VERSION ");
                out.put(crate::VERSION.as_bytes());
                out.put(LINE_END);
            }
            // The callers carry these out: they are about keys, have data or end the connection.
            Command::Get { .. }
            | Command::Set(_)
            | Command::MetaSet(..)
            | Command::MetaGet(_)
            | Command::MetaDelete(_)
            | Command::MetaSum(..)
            | Command::MetaDebug(_)
            | Command::MetaNoop
            | Command::Delete { .. }
            | Command::Sum { .. }
            | Command::Touch { .. }
            | Command::FlushAll { .. }
            | Command::Shutdown { .. }
            | Command::Watch(_)
            | Command::DebugTime(_)
            | Command::Quit => {}
        }
    }
}
