//! What the tasks of one target should have: the versions of their labels and meters.

use load::kv::{Floor, Keys, Mismatch, Versions, Write};

use super::made::{METER_BASE, VERSION_BYTES};
use super::operations::{LABEL, METER, QUERY_LABEL, QUERY_METER, SYNC_FULL};

/// The state that one target should be in.
#[derive(Debug)]
pub(super) struct Target {
    /// The tasks: each is named by its key.
    pub(super) keys: Keys,
    /// The values that labels may have.
    pub(super) labels: Versions,
    /// The same of meters.
    pub(super) meters: Versions,
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
}

impl Target {
    /// One whose tasks have what was prepared.
    pub(super) fn of(keys: Keys) -> Self {
        Self { keys, labels: Versions::default(), meters: Versions::default() }
    }

    fn versions(&self, operation: usize) -> Option<&Versions> {
        match operation {
            LABEL | QUERY_LABEL | SYNC_FULL => Some(&self.labels),
            METER | QUERY_METER => Some(&self.meters),
            _ => None,
        }
    }

    /// A request is sent: what is known of it, and the number that it says.
    #[inline]
    pub(super) fn begin(&self, operation: usize, key: u64) -> (Sent, u64) {
        match (operation, self.versions(operation)) {
            (LABEL | METER, Some(versions)) => {
                let write = versions.begin_write(key);
                let base = if operation == METER { METER_BASE } else { 0 };
                (Sent::Write(write), base + u64::from(write.version))
            }
            (_, Some(versions)) => (Sent::Read(versions.begin_read(key)), 0),
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
            SYNC_FULL => self.label_in(key, text).and_then(|text| self.version_of_label(key, text)),
            _ => None,
        };
        match (version, self.versions(operation)) {
            (Some(version), Some(versions)) => versions.check(key, floor, version),
            _ => Err(Mismatch::Corrupt),
        }
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
        let label = own.into_iter().find_map(|line| line.strip_prefix("label l \""))?;
        let (first, changed) = label.split_once('"')?;
        let changed = changed.strip_prefix(" # \"").and_then(|text| text.strip_suffix('"'));
        Some(changed.unwrap_or(first))
    }
}

/// The version that a meter's text says.
#[inline]
fn meter(text: &str) -> Option<u32> {
    let value: u64 = text.parse().ok().filter(|_| text.len() == VERSION_BYTES)?;
    u32::try_from(value.checked_sub(METER_BASE)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_are_no_version_of_their_task_are_wrong() {
        let keys = Keys::new(10, 8).expect("keys");
        let target =
            Target { keys, labels: Versions::prepared(10), meters: Versions::prepared(10) };
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
}
