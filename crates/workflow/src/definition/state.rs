//! The state that servers' texts have behind `#` on the lines of nodes, and their first lines.

use super::error::{Read, fault, short};
use super::line::{Words, number};
use super::reader::{Reader, Style};
use super::times::duration;
use crate::model::{Flags, Job, Mark, NodeId, ServerState, State};

fn state(word: &str) -> Read<State> {
    State::of_word(word).ok_or_else(|| fault(format!("'{}' is no state", short(word)), ""))
}

fn flags(words: &str) -> Read<Flags> {
    // A flag that a later version knows is no reason to lose a checkpoint.
    let known: Vec<&str> = words.split(',').filter(|word| Flags::of_words(word).is_ok()).collect();
    Ok(Flags::of_words(&known.join(",")).unwrap_or_default())
}

/// `defs_state NET state>:queued flag:message state_change:1 …`
pub(super) fn defs_state(reader: &mut Reader<'_>, of: &Words<'_, '_>) -> Read<()> {
    let word = of.need(1, "style")?;
    reader.style = match word {
        "STATE" => Style::State,
        "NET" => Style::Net,
        "MIGRATE" => Style::Migrate,
        _ => {
            let message = format!("defs_state has no style '{}'", short(word));
            return Err(fault(message, "use STATE, NET or MIGRATE"));
        }
    };
    let (mut root, mut of_root) = (State::Unknown, Flags::default());
    let (mut state_change, mut modify_change) = (0, 0);
    for word in &of.all[2..] {
        let Some((key, value)) = word.split_once(':') else { continue };
        match key {
            "state>" => root = state(value)?,
            "flag" => of_root = flags(value)?,
            "state_change" => state_change = number("state_change", value)?,
            "modify_change" => modify_change = number("modify_change", value)?,
            "server_state" => {
                reader.tree.server_mut().state = ServerState::of_word(value)
                    .ok_or_else(|| fault(format!("'{}' is no server's state", short(value)), ""))?;
            }
            "part" => mark(reader, NodeId::ROOT, value)?,
            "cal_count" => {
                reader.tree.server_mut().calendar_count = number("cal_count", value)?;
            }
            _ => {}
        }
    }
    let unsigned = |number: i32| u32::try_from(number).unwrap_or(0);
    reader.tree.set_change_numbers(unsigned(state_change), unsigned(modify_change));
    reader.root(root, of_root);
    Ok(())
}

/// `part:WORDS`, of this program's own servers: what of a node isn't in the text.
fn mark(reader: &mut Reader<'_>, id: NodeId, words: &str) -> Read<()> {
    let unknown = || fault(format!("'part:{}' is not understood", short(words)), "");
    reader.marks.insert(id, Mark::of_words(words).ok_or_else(unknown)?);
    Ok(())
}

/// `history /path <08>line<08>line`
pub(super) fn history(reader: &mut Reader<'_>, of: &Words<'_, '_>) -> Read<()> {
    let path = of.need(1, "path")?;
    let Some(start) = of.line.find('\u{8}') else {
        // The older way, without signs between the lines.
        for message in old_history(of.line) {
            reader.tree.add_history(path, message);
        }
        return Ok(());
    };
    for message in of.line[start..].split('\u{8}').filter(|message| !message.is_empty()) {
        reader.tree.add_history(path, message);
    }
    Ok(())
}

fn old_history(line: &str) -> Vec<&str> {
    const KINDS: [&str; 6] = ["MSG:[", "LOG:[", "ERR:[", "WAR:[", "DBG:[", "OTH:["];
    let is_start = |at: &usize| KINDS.iter().any(|kind| line[*at..].starts_with(kind));
    let mut starts: Vec<usize> = line.char_indices().map(|(at, _)| at).filter(is_start).collect();
    starts.push(line.len());
    starts.windows(2).map(|pair| &line[pair[0]..pair[1]]).collect()
}

/// The state of a node, behind its name.
pub(super) fn node(reader: &mut Reader<'_>, id: NodeId, of: &Words<'_, '_>) -> Read<()> {
    let Some(start) = of.line.find('#').filter(|_| of.all.len() > 3) else { return Ok(()) };
    let (mut rest, mut reason) = (&of.line[start + 1..], "");
    let mut before = "";
    // The reason of an abort is free text, and may look like anything.
    if let Some((head, tail)) = rest.split_once("abort<:") {
        let Some((text, tail)) = tail.split_once(">abort") else {
            let fix = "it has to end with >abort on the same line";
            return Err(fault("the reason of the abort has no end", fix));
        };
        (before, reason, rest) = (head, text, tail);
    }
    let mut job = Job::default();
    let words = before.split([' ', '\t']).chain(rest.split([' ', '\t']));
    for word in words {
        let Some((key, value)) = word.split_once(':') else { continue };
        match key {
            "passwd" => job.password = value.into(),
            "rid" => job.rid = value.into(),
            "try" => job.try_no = number("the number of tries", value)?,
            "alias_no" => job.alias_no = number("the number of aliases", value)?,
            "state" => reader.tree.edit(id).state = state(value)?,
            "dur" => reader.tree.edit(id).since = duration(value)?,
            "rt" => reader.tree.edit(id).ran = duration(value)?,
            "flag" => reader.tree.edit(id).flags = flags(value)?,
            "suspended" => reader.tree.edit(id).is_suspended = value == "1",
            "part" => mark(reader, id, value)?,
            "begun" => reader.tree.edit(id).is_begun = value == "1",
            _ => {}
        }
    }
    job.abort_reason = reason.replace("\\n", "\n").into();
    if reader.kind.is_job() && job != Job::default() {
        reader.tree.edit(id).job = Some(std::sync::Arc::new(job));
    }
    Ok(())
}
