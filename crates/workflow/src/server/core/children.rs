//! What jobs report.

use crate::definition::is_name;
use crate::model::{
    Child, Credentials, Effect as Ruled, Flag, From, NodeId, Program, QueueAction, Rules, Snapshot,
    Submit, Texts, Verdict, ZombieAction,
};
use crate::protocol::{self, Reply, Report, Standard};
use crate::server::environment::Environment;
use crate::server::log::Category;

use super::alter::bad_name;
use super::check;
use super::filings::{Filings, reading, removing, writing};
use super::parts::{Effect, Parts};
use super::signals::kill_zombie;
use super::zombies::{Call, Decided, MAX_PATH_BYTES, MAX_TEXT_BYTES};

/// Takes a job's report.
pub(super) fn report(
    parts: &mut Parts<'_>,
    rules: &mut Rules<'_>,
    host: &str,
    child: &protocol::Child,
    report: &Report,
) -> Reply {
    let kind = kind(report);
    let who = credentials(child);
    if who.path.len() > MAX_PATH_BYTES {
        return Reply::error(format!("a path of more than {MAX_PATH_BYTES} bytes is no job's"));
    }
    if [host, who.password, who.rid].iter().any(|text| text.len() > MAX_TEXT_BYTES) {
        return Reply::error(format!(
            "a host, password or process of more than {MAX_TEXT_BYTES} bytes is no job's"
        ));
    }
    let verdict = rules.check_child(&who, kind);
    let is_taken = matches!(verdict, Verdict::Accept(_) | Verdict::Repeated(_));
    if is_taken && matches!(kind, Child::Complete | Child::Abort) {
        parts.zombies.ended(child);
    }
    match verdict {
        Verdict::Accept(id) => carry_out(parts, rules, id, child, report),
        Verdict::Halted => Reply::Standard(Standard::Halted),
        Verdict::Repeated(line) => {
            parts.effects.push(Effect::Log(Category::Warning, line));
            Reply::OK
        }
        Verdict::Zombie { node, kind: zombie, reason } => {
            let at_us = parts.at_us;
            let call = Call { child, host, report: kind, kind: zombie, at_us };
            let decided =
                parts.zombies.called(&call, |kind| rules.tree.zombie_rule(who.path, kind));
            if let (ZombieAction::Adopt, Some(id)) = (decided.action, node) {
                rules.adopt(id, &who);
                return carry_out(parts, rules, id, child, report);
            }
            let (taken, reply) = zombie_reply(parts, rules, node, &call, &decided);
            let who = if decided.is_manual { "manual-" } else { "automatic-" };
            let (path, process, password) = (&child.path, &child.process_id, &child.password);
            let word = kind.word();
            let line = match node {
                None => format!(
                    " zombie(*path*) : chd:{word} : {path} : {process} : {password} : \
                     action({who}{taken})"
                ),
                Some(id) => {
                    let (zombie, state) = (decided.kind.word(), rules.tree.node(id).state.word());
                    format!(
                        " zombie({zombie}) : chd:{word} : {path}({state}) : {process} : \
                         {password}{reason} : action({who}{taken})"
                    )
                }
            };
            parts.effects.push(Effect::Log(Category::Error, line));
            reply
        }
    }
}

/// Answers a zombie, and says what was done, as the log has it.
fn zombie_reply(
    parts: &mut Parts<'_>,
    rules: &mut Rules<'_>,
    node: Option<NodeId>,
    call: &Call<'_>,
    decided: &Decided,
) -> (&'static str, Reply) {
    let blocked = Reply::Blocked(decided.kind as i64);
    match decided.action {
        ZombieAction::Fob => {
            if let Some(id) = node.filter(|_| matches!(call.report, Child::Complete | Child::Abort))
            {
                rules.alter_flag(id, Flag::Zombie, false);
            }
            ("fob", Reply::OK)
        }
        ZombieAction::Fail => {
            let why = "[ authentication failed ] Request set to FAIL via zombie setting";
            ("fail", Reply::error(why))
        }
        ZombieAction::Kill => match node {
            None => ("kill(no task, fobing instead)", Reply::OK),
            Some(id) if rules.tree.node(id).flags.has(Flag::Killed) => {
                ("kill(already killed, fobing instead)", Reply::OK)
            }
            Some(id) => {
                kill_zombie(parts, rules, id, &call.child.process_id);
                ("kill & fob", Reply::OK)
            }
        },
        ZombieAction::Remove => ("remove", blocked),
        // What only tells something doesn't hold up a job.
        ZombieAction::Block | ZombieAction::Adopt
            if matches!(call.report, Child::Label | Child::Event | Child::Meter) =>
        {
            ("fob", Reply::OK)
        }
        ZombieAction::Block | ZombieAction::Adopt => ("block", blocked),
    }
}

/// Who a job says that it is.
pub(super) fn credentials(child: &protocol::Child) -> Credentials<'_> {
    Credentials {
        path: &child.path,
        password: &child.password,
        rid: &child.process_id,
        try_no: i32::try_from(child.try_no).unwrap_or(0),
    }
}

const fn kind(report: &Report) -> Child {
    match report {
        Report::Init(_) => Child::Init,
        Report::Complete(_) => Child::Complete,
        Report::Abort(_) => Child::Abort,
        Report::Event { .. } => Child::Event,
        Report::Meter { .. } => Child::Meter,
        Report::Label { .. } => Child::Label,
        Report::Wait(_) => Child::Wait,
        Report::Queue { .. } => Child::Queue,
    }
}

fn carry_out(
    parts: &mut Parts<'_>,
    rules: &mut Rules<'_>,
    id: NodeId,
    child: &protocol::Child,
    report: &Report,
) -> Reply {
    let mut missing = |what: String| {
        // A job must not die of it: only the log says so.
        parts.effects.push(Effect::Log(Category::Error, what));
    };
    let path = &child.path;
    match report {
        Report::Init(added) => {
            let (named, others): (Vec<_>, Vec<_>) =
                added.iter().cloned().partition(|(name, _)| is_name(name));
            rules.init(id, &child.process_id, &named);
            for (name, _) in others {
                missing(format!("Init of {path}: {}", bad_name(&name)));
            }
        }
        Report::Complete(removed) => rules.complete(id, removed),
        Report::Abort(reason) => rules.abort(id, reason),
        Report::Event { name, is_set } => {
            if !rules.set_event(id, name, *is_set) {
                missing(format!(
                    "Event request failed as event '{name}' does not exist on task {path}"
                ));
            }
        }
        Report::Meter { name, value } => {
            let number = i32::try_from(*value).ok();
            if !number.is_some_and(|number| rules.set_meter(id, name, number)) {
                missing(format!(
                    "Meter request failed: meter '{name}' of {path} is not there, or {value} is \
                     out of its range"
                ));
            }
        }
        Report::Label { name, text } => {
            if !rules.set_label(id, name, text) {
                missing(format!(
                    "Label request failed as label '{name}' does not exist on task {path}"
                ));
            }
        }
        Report::Wait(expression) => {
            // A job would wait for ever for what isn't there.
            let checked = program(expression).and_then(|program| {
                let from = From { tree: rules.tree, node: id };
                check::references(&from, &program, ("trigger", expression))
                    .map_err(|why| format!("CtsWaitCmd: {why}"))?;
                Ok(program)
            });
            return match checked {
                Ok(program) if rules.wait(id, &program) => Reply::OK,
                Ok(_) => Reply::Standard(Standard::Wait),
                Err(why) => Reply::Error(why),
            };
        }
        Report::Queue { name, action, step, path } => {
            let action = match action.as_str() {
                "active" => QueueAction::Active,
                "complete" => QueueAction::Complete(step),
                "aborted" => QueueAction::Aborted(step),
                "reset" => QueueAction::Reset,
                "no_of_aborted" => QueueAction::CountAborted,
                other => return Reply::error(format!("QueueCmd:: there is no action {other:?}")),
            };
            return match rules.queue(id, name, action, path) {
                Ok(answer) if answer.is_empty() => Reply::OK,
                Ok(answer) => Reply::Text(answer),
                Err(why) => Reply::error(why.to_string()),
            };
        }
    }
    Reply::OK
}

/// The meaning of an expression that a client sends.
pub(super) fn program(text: &str) -> Result<Program, String> {
    let parsed = crate::definition::parse_expression(text, &mut Texts::default());
    parsed.map_err(|error| error.to_string())
}

/// What the rules have asked for, in the server's terms; submissions go apart.
pub(super) fn effects(
    ruled: Vec<Ruled>,
    tree: &Snapshot,
    environment: &Environment,
    (filings, effects): (&mut Filings, &mut Vec<Effect>),
) -> Vec<Submit> {
    let mut submitted = Vec::new();
    for effect in ruled {
        effects.push(match effect {
            Ruled::Log(line) => Effect::Log(Category::Change, line),
            Ruled::LogError(line) => Effect::Log(Category::Error, line),
            Ruled::LogMessage(line) => Effect::Log(Category::Message, line),
            Ruled::Submit(submit) => {
                submitted.push(submit);
                continue;
            }
            Ruled::Archive(archived) => {
                let filing = writing(tree, environment, &archived);
                filings.written.insert(archived.path.clone(), archived);
                Effect::File(filing)
            }
            Ruled::Restore(path, how) => {
                if filings.read.insert(path.clone(), how).is_some() {
                    continue;
                }
                filings.asked.push(path.clone());
                Effect::File(reading(tree, environment, &path))
            }
            Ruled::DropArchives { path, home } => Effect::File(removing(environment, &path, home)),
            Ruled::Discard(gone) => Effect::Discard(gone),
        });
    }
    submitted
}
