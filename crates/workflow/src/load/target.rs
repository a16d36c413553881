//! What the tasks of one target should have: the versions of their labels and meters, and their
//! states.

use std::fmt::Display;

use load::kv::{Floor, Keys, Mismatch, Versions, Write};

use super::follower::Follower;
use super::made::{METER_BASE, SUITE, VERSION_BYTES};
use super::numbers::Numbers;
use super::operations::{
    CHILD_LABEL, GET, INIT_COMPLETE, LABEL, METER, QUERY_LABEL, QUERY_METER, REQUEUE, SYNC,
    SYNC_FULL,
};
use super::runs::{Run, Runs};
use crate::protocol::{SyncAnswer, SyncedChange, SyncedNode, read_sync_answer};

/// The state that one target should be in.
#[derive(Debug)]
pub(super) struct Target {
    /// The tasks: each is named by its key.
    pub(super) keys: Keys,
    /// The values that labels may have.
    pub(super) labels: Versions,
    /// The same of meters.
    pub(super) meters: Versions,
    /// The client that follows.
    pub(super) follower: Follower,
    /// Who changes the states of tasks.
    pub(super) runs: Runs,
}

/// What is known of a request from its sending on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    /// Nothing: a ping, an event, or the preparation.
    Nothing,
    /// It reads a version.
    Read(Floor),
    /// It writes one.
    Write(Write),
    /// It takes what has changed since these numbers.
    Follow(Floor, Numbers),
    /// It changes a task's state.
    Run(Run),
}

impl Target {
    /// One whose tasks have what was prepared; what operations don't need isn't kept.
    pub(super) fn of(keys: Keys, operations: &[usize]) -> Self {
        let count = |operation: &[usize]| {
            let is_used = operation.iter().any(|one| operations.contains(one));
            if is_used { keys.count() } else { 0 }
        };
        Self {
            labels: Versions::prepared(count(&[LABEL, CHILD_LABEL])),
            meters: Versions::prepared(count(&[METER])),
            follower: Follower::of(count(&[SYNC])),
            runs: Runs::of(count(&[INIT_COMPLETE, REQUEUE])),
            keys,
        }
    }

    fn versions(&self, operation: usize) -> Option<&Versions> {
        match operation {
            LABEL | CHILD_LABEL | QUERY_LABEL | SYNC_FULL | GET | SYNC => Some(&self.labels),
            METER | QUERY_METER => Some(&self.meters),
            _ => None,
        }
    }

    /// A request is sent: what is known of it, and the number that it says.
    #[inline]
    pub(super) fn begin(&self, operation: usize, key: u64) -> (Sent, u64) {
        match (operation, self.versions(operation)) {
            (LABEL | CHILD_LABEL | METER, Some(versions)) => {
                let write = versions.begin_write(key);
                let base = if operation == METER { METER_BASE } else { 0 };
                (Sent::Write(write), base + u64::from(write.version))
            }
            (SYNC, Some(versions)) => {
                (Sent::Follow(versions.begin_read(key), self.follower.numbers()), 0)
            }
            (_, Some(versions)) => (Sent::Read(versions.begin_read(key)), 0),
            (INIT_COMPLETE | REQUEUE, None) => (Sent::Run(self.runs.begin(key)), 0),
            _ => (Sent::Nothing, 0),
        }
    }

    /// A write is acknowledged.
    #[inline]
    pub(super) fn end(&self, operation: usize, key: u64, write: Write) {
        if let Some(versions) = self.versions(operation) {
            versions.end_write(key, write);
        }
    }

    /// A change of a task's state is over. Whether the state that the task has to have then may
    /// be its own.
    ///
    /// # Errors
    /// What it should be.
    pub(super) fn end_run(
        &self,
        operation: usize,
        key: u64,
        run: Run,
        state: &str,
    ) -> Result<(), String> {
        let is_alone = self.runs.is_alone(key, run);
        self.runs.end(key);
        let expected = if operation == REQUEUE { "queued" } else { "complete" };
        let may_be = ["queued", "complete", "active"].contains(&state);
        match (state == expected, is_alone) {
            (true, _) => Ok(()),
            (false, false) if may_be => Ok(()),
            (false, _) => Err(format!("the task is {state} and should be {expected}")),
        }
    }

    /// Whether a text is right for a read that was sent at `floor`.
    ///
    /// # Errors
    /// In which way it is wrong.
    #[inline]
    pub(super) fn check(
        &self,
        operation: usize,
        key: u64,
        floor: Floor,
        text: &str,
    ) -> Result<(), Mismatch> {
        let version = match operation {
            QUERY_LABEL => self.version_of_label(key, text),
            QUERY_METER => meter(text),
            SYNC_FULL | GET => {
                self.label_in(key, text).and_then(|text| self.version_of_label(key, text))
            }
            _ => None,
        };
        match (version, self.versions(operation)) {
            (Some(version), Some(versions)) => versions.check(key, floor, version),
            _ => Err(Mismatch::Corrupt),
        }
    }

    /// Takes the answer to a sync that was sent at `floor` and with these numbers: they go on, and
    /// the drawn task's label is right at the client that follows.
    ///
    /// # Errors
    /// In which way it is wrong.
    pub(super) fn follow(
        &self,
        key: u64,
        (floor, before): (Floor, Numbers),
        document: &[u8],
    ) -> Result<(), String> {
        let said = |why: &dyn Display| why.to_string();
        let synced = read_sync_answer(document).map_err(|why| said(&why))?;
        let numbers = Numbers::of_sync(&synced)?;
        if numbers != before && !numbers.follow(before) {
            return Err(format!("numbers {numbers:?} after {before:?}"));
        }
        let version = match &synced {
            SyncAnswer::Whole(text) => self.follower.take(numbers, self.labels_of(text), key),
            SyncAnswer::Since { nodes, .. } => {
                let changed = nodes.iter().filter_map(|node| self.label_of(node));
                self.follower.take(numbers, changed, key)
            }
            SyncAnswer::Refused(why) => return Err(why.to_string()),
        };
        match version {
            Some(version) => self.labels.check(key, floor, version).map_err(|why| said(&why)),
            None => Err("the task's label isn't there".to_owned()),
        }
    }

    /// The task that is called so.
    fn key(&self, name: &str) -> Option<u64> {
        let key = name.strip_prefix('k')?.parse().ok()?;
        (key < self.keys.count() && self.keys.is(key, name.as_bytes())).then_some(key)
    }

    /// The version of a task's label that has changed.
    fn label_of(&self, node: &SyncedNode) -> Option<(u64, u32)> {
        let below = node.path.strip_prefix('/')?.strip_prefix(SUITE)?;
        let key = self.key(below.strip_prefix("/tasks/")?)?;
        let mut labels = node.changes.iter().filter_map(SyncedChange::label);
        let (_, text) = labels.find(|(name, _)| *name == "l")?;
        Some((key, self.version_of_label(key, text)?))
    }

    /// The versions of all labels in a whole definition.
    fn labels_of<'a>(&'a self, definition: &'a str) -> impl Iterator<Item = (u64, u32)> + 'a {
        let mut key = None;
        definition.lines().filter_map(move |line| {
            let line = line.trim_start();
            if let Some(task) = line.strip_prefix("task ") {
                key = task.split(' ').next().and_then(|name| self.key(name));
                return None;
            }
            let (key, text) = (key?, value_of_label(line)?);
            Some((key, self.version_of_label(key, text)?))
        })
    }

    /// The version that a label's text says, where it is that task's.
    #[inline]
    fn version_of_label(&self, key: u64, text: &str) -> Option<u32> {
        let (name, version) = text.as_bytes().split_at_checked(self.keys.bytes())?;
        let (b' ', digits) = version.split_first()? else { return None };
        let is_version = digits.len() == VERSION_BYTES && digits.iter().all(u8::is_ascii_digit);
        let version = std::str::from_utf8(digits).ok().filter(|_| is_version)?;
        version.parse().ok().filter(|_| self.keys.is(key, name))
    }

    /// The label of a task in a whole definition: the second text where it was changed.
    fn label_in<'a>(&self, key: u64, definition: &'a str) -> Option<&'a str> {
        let mut task = b"\ntask ".to_vec();
        self.keys.put(key, &mut task);
        let from = memchr::memmem::find(definition.as_bytes(), &task)? + task.len();
        let mut lines = definition.get(from..)?.lines().skip(1);
        let own = lines.by_ref().take_while(|line| !line.starts_with("task "));
        own.into_iter().find_map(value_of_label)
    }
}

/// The value of a task's label, where a line has it: the second text where it was changed.
fn value_of_label(line: &str) -> Option<&str> {
    let (first, changed) = line.strip_prefix("label l \"")?.split_once('"')?;
    let changed = changed.strip_prefix(" # \"").and_then(|text| text.strip_suffix('"'));
    Some(changed.unwrap_or(first))
}

/// The version that a meter's text says.
#[inline]
fn meter(text: &str) -> Option<u32> {
    let value: u64 = text.parse().ok().filter(|_| text.len() == VERSION_BYTES)?;
    u32::try_from(value.checked_sub(METER_BASE)?).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn texts_that_are_no_version_of_their_task_are_wrong() {
        let keys = Keys::new(10, 8).expect("keys");
        let target = Target::of(keys, &[LABEL, METER, SYNC]);
        let (Sent::Read(floor), _) = target.begin(QUERY_LABEL, 3) else { panic!("a read") };
        let label = |text: &str| target.check(QUERY_LABEL, 3, floor, text);
        assert_eq!(label("k0000003 0000000001"), Ok(()));
        assert_eq!(label("k0000003 0000000002"), Err(Mismatch::Unwritten));
        for wrong in ["", "k0000004 0000000001", "k0000003 1", "k0000003 +000000001", "é"] {
            assert_eq!(label(wrong), Err(Mismatch::Corrupt), "{wrong}");
        }
        let (Sent::Write(write), number) = target.begin(METER, 3) else { panic!("a write") };
        assert_eq!(number, METER_BASE + 2);
        target.end(METER, 3, write);
        let (Sent::Read(floor), _) = target.begin(QUERY_METER, 3) else { panic!("a read") };
        let meter = |text: &str| target.check(QUERY_METER, 3, floor, text);
        assert_eq!(meter("1000000002"), Ok(()));
        assert_eq!(meter("1000000001"), Err(Mismatch::Stale));
        assert_eq!(meter("2"), Err(Mismatch::Corrupt));
        let text = "suite load\ntask k0000003 # state:queued\nlabel l \"k0000003 0000000001\" # \
                    \"k0000003 0000000005\"\ntask k0000004\nlabel l \"k0000004 0000000001\"\n";
        assert_eq!(target.label_in(3, text), Some("k0000003 0000000005"));
        assert_eq!(target.label_in(4, text), Some("k0000004 0000000001"));
        assert_eq!(target.label_in(5, text), None);
    }

    #[test]
    fn a_client_that_follows_finds_changes_that_were_not_sent() {
        let target = Target::of(Keys::new(2, 8).expect("keys"), &[LABEL, SYNC]);
        let answer = |labels: Vec<Value>, state: i64| {
            let changes = json!({
                "server_state_change_no_": state,
                "server_modify_change_no_": 1,
                "compound_mementos_": labels,
            });
            let data = json!({"full_defs_": false, "incremental_changes_": changes, "value1": ""});
            let pointer = json!({"polymorphic_name": "SSyncCmd", "ptr_wrapper": {"data": data}});
            json!({"a": {"stc_cmd_": pointer}}).to_string()
        };
        let label = |version: u32| {
            let value = format!("k0000001 {version:010}");
            let label = json!({"label_": {"n_": "l", "v_": "x", "new_v_": value}});
            let label = json!({
                "polymorphic_name": "NodeLabelMemento",
                "ptr_wrapper": {"data": label},
            });
            let node = json!({"absNodePath_": "/load/tasks/k0000001", "vec_": [label]});
            vec![json!({"ptr_wrapper": {"data": node}})]
        };
        let follow = |answer: &str| {
            let (Sent::Follow(floor, numbers), _) = target.begin(SYNC, 1) else { panic!("a sync") };
            target.follow(1, (floor, numbers), answer.as_bytes())
        };
        assert_eq!(follow(&answer(label(1), 10)), Ok(()));
        let (Sent::Write(write), _) = target.begin(LABEL, 1) else { panic!("a write") };
        target.end(LABEL, 1, write);
        assert!(follow(&answer(vec![], 10)).unwrap_err().contains("replaced"));
        assert_eq!(follow(&answer(label(2), 11)), Ok(()));
        assert_eq!(follow(&answer(vec![], 12)), Ok(()));
        assert!(follow(&answer(label(3), 13)).unwrap_err().contains("never written"));
        assert!(follow(&answer(vec![], 9)).unwrap_err().contains("after"));
    }

    #[test]
    fn a_state_is_known_of_a_task_that_nobody_else_changes() {
        let target = Target::of(Keys::new(2, 8).expect("keys"), &[INIT_COMPLETE]);
        let begin = |operation| {
            let (Sent::Run(run), _) = target.begin(operation, 1) else { panic!("a run") };
            run
        };
        let end = |operation, run, state| target.end_run(operation, 1, run, state);
        assert_eq!(end(INIT_COMPLETE, begin(INIT_COMPLETE), "complete"), Ok(()));
        assert!(end(INIT_COMPLETE, begin(INIT_COMPLETE), "active").is_err());
        assert!(end(REQUEUE, begin(REQUEUE), "complete").is_err());
        let (one, two) = (begin(INIT_COMPLETE), begin(REQUEUE));
        assert_eq!(end(INIT_COMPLETE, one, "queued"), Ok(()));
        assert!(end(REQUEUE, two, "aborted").is_err());
    }
}
