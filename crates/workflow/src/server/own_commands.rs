//! Commands of users to the server itself: its log, the files of its users, its end.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;

use super::access::Part;
use super::core::Told;
use super::environment::CheckMode;
use super::log::last_lines;
use super::message::{Asked, Message, is_checkpoint};
use super::owner::Owner;
use super::shared::Shared;
use super::slot::{Answer, Held, Slot};
use crate::protocol::{
    Alteration, Body, Command, LogCommand, NodeCommand, Reply, Request, ServerCommand, User, write,
};

/// Gives the server the variable ECF_LOG, to which `--log=new` without a path returns; that answers
/// the client, too.
fn remember_log(shared: &Shared, slot: Slot, (host, user): (String, User), file: String) {
    let alter = Command::Alter {
        paths: vec!["/".to_owned()],
        alteration: Alteration::Add("variable"),
        name: "ECF_LOG".to_owned(),
        value: file,
    };
    let request = Request { host, body: Body::User(user, alter) };
    let (document, held) = (Bytes::from(write(&request)), Held::none(&shared.memory));
    let (is_trusted, definition, header) = (true, None, None);
    let asked = Asked { document, slot, held, is_trusted, definition, header };
    asked.send(request, &shared.owner);
}

/// The answer once the log is written, or can't be.
fn written(log: &Path, done: &io::Result<()>) -> Reply {
    match done {
        Ok(()) => Reply::OK,
        Err(why) => Reply::Error(format!("{}: the log can't be written: {why}", log.display())),
    }
}

impl Owner {
    /// Answers what is asked of the log.
    pub(super) fn of_the_log(&mut self, request: &Request, asked: &Asked) -> bool {
        let Body::User(user, Command::Log(command)) = &request.body else { return false };
        let (slot, shared) = (asked.slot.clone(), Arc::clone(&self.shared));
        let put = move |reply| shared.answer(&slot, reply);
        match command {
            LogCommand::Path => put(Reply::Text(self.core.log_file.clone())),
            LogCommand::Flush => {
                self.shared.log.flushed(move |path, done| put(written(path, done)));
            }
            LogCommand::Clear => {
                self.shared.log.clear(move |path, done| put(written(path, done)));
            }
            LogCommand::Get(lines) => {
                let most = usize::try_from(*lines).unwrap_or(0);
                self.shared.log.flushed(move |path, _| {
                    put(match last_lines(path, most) {
                        Ok(text) => Reply::Text(text),
                        Err(why) => Reply::Error(format!("{}: {why}", path.display())),
                    });
                });
            }
            LogCommand::New(path) => {
                let is_named = !path.is_empty();
                let path = if is_named { path.clone() } else { self.core.log_path() };
                let whole = self.environment.home.join(path);
                let name = whole.display().to_string();
                let by = (request.host.clone(), user.clone());
                let (shared, slot) = (Arc::clone(&self.shared), asked.slot.clone());
                self.shared.log.go_on_in(whole, move |opened| {
                    if let Err(why) = opened {
                        return put(Reply::Error(format!("{name} can't be the log: {why}")));
                    }
                    // The owner outlives the log.
                    let _ = shared.owner.send(Message::LogIn(name.clone()));
                    if is_named {
                        remember_log(&shared, slot, by, name);
                    } else {
                        put(Reply::OK);
                    }
                });
            }
        }
        true
    }

    /// Has a file of users read again.
    pub(super) fn of_the_users(&mut self, request: &Request, asked: &Asked) -> bool {
        let Body::User(_, Command::Server(command)) = &request.body else { return false };
        let Some(part) = Part::reloaded_by(*command) else { return false };
        let (own, environment) = (self.shared.owner.clone(), Arc::clone(&self.environment));
        let slot = asked.slot.clone();
        let work = move || {
            let _ = own.send(Message::Users(part.read_again(&environment), slot));
        };
        if self.shared.in_background(work).is_err() {
            asked.slot.put(Answer::Reply(Reply::error("too much to do: try again")));
        }
        true
    }

    /// Answers what becomes of the commands of a task whose job runs: where they wait for a place,
    /// run, or have ended; of the server, that commands have taken all places for long. ecFlow's
    /// server, which is asked the same by `ecflow_client --why`, says nothing.
    pub(super) fn of_the_places(&self, request: &Request, asked: &Asked) -> bool {
        let Body::User(_, Command::Node(NodeCommand::Why, path)) = &request.body else {
            return false;
        };
        let why = self.shared.why(self.core.tree(), path);
        asked.slot.put(Answer::Reply(why.map_or(Reply::OK, Reply::Text)));
        true
    }

    /// What a command asks of the server beside the tree.
    pub(super) fn after_server_command(&mut self, request: &Request, told: &Told) {
        if matches!(told, Told::Reply(Reply::Error(_))) {
            return;
        }
        match &request.body {
            Body::User(_, Command::Group(all)) => {
                all.iter().for_each(|request| self.after_server_command(request, told));
            }
            body if is_checkpoint(body) => {
                // One that is being written lacks what the group has changed. The group is answered
                // before it is written, as with all that other threads do for one of its requests;
                // ecFlow's server, which has one thread, writes it first. What fails is logged.
                self.checkpoints.ask_again();
                self.checkpoint();
            }
            Body::User(_, Command::Server(ServerCommand::Terminate)) => (self.terminate)(),
            Body::User(_, Command::CheckPoint { mode, interval, alarm }) => {
                self.core.checks.set(CheckMode::of_number(*mode), *interval, *alarm);
                self.clock.check = Instant::now() + self.core.checks.interval();
            }
            _ => {}
        }
    }
}
