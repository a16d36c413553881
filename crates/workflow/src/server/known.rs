//! Which checkpoints this home's journal goes on from, by their content. Another one in the place
//! of one of these was put there by another server or by a user, and is neither passed over nor
//! replaced before somebody has decided.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};

/// The file that names them, a line each: the content's length and CRC-32, and the checkpoint's
/// name, as it lies in the home, so that a copy of that has its own.
const FILE: &str = "known-checkpoints";

/// What tells the content of a file from others'.
#[derive(Default)]
pub(super) struct Content {
    bytes: u64,
    sum: crc32fast::Hasher,
}

impl Content {
    /// That of a whole file.
    pub(super) fn of(file: &mut File) -> io::Result<Self> {
        file.rewind()?;
        let (mut content, mut part) = (Self::default(), vec![0; 1 << 16]);
        loop {
            match file.read(&mut part)? {
                0 => return Ok(content),
                read => content.add(&part[..read]),
            }
        }
    }

    /// Adds what follows.
    pub(super) fn add(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        self.sum.update(bytes);
    }
}

impl fmt::Display for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:08x}", self.bytes, self.sum.clone().finalize())
    }
}

/// The checkpoints that a journal knows.
#[derive(Clone, Debug)]
pub(super) struct Known {
    file: PathBuf,
    home: PathBuf,
}

impl Known {
    /// Those of the journal in `data`, the folder of this program's own in the home.
    pub(super) fn of(data: &Path, home: &Path) -> Self {
        Self { file: data.join(FILE), home: home.to_owned() }
    }

    /// Whether this is a content that the checkpoint of this name may have. A file of notes that
    /// can't be read knows none.
    pub(super) fn has(&self, check: &Path, content: &Content) -> bool {
        self.lines().contains(&self.line(check, content))
    }

    /// Knows none: a journal begins.
    pub(super) fn clear(&self) -> io::Result<()> {
        match fs::remove_file(&self.file) {
            Err(why) if why.kind() != io::ErrorKind::NotFound => Err(why),
            _ => Ok(()),
        }
    }

    /// A checkpoint is going to be replaced by this: until it is, both are known.
    pub(super) fn also(&self, check: &Path, content: &Content) -> io::Result<()> {
        let (mut lines, line) = (self.lines(), self.line(check, content));
        if !lines.contains(&line) {
            lines.push(line);
        }
        self.write(&lines)
    }

    /// A checkpoint has been replaced by this, or taken.
    pub(super) fn only(&self, check: &Path, content: &Content) -> io::Result<()> {
        let name = self.name(check);
        let is_other = |line: &String| !line.ends_with(&name);
        let others = self.lines().into_iter().filter(is_other);
        let lines: Vec<String> = others.chain([self.line(check, content)]).collect();
        self.write(&lines)
    }

    fn name(&self, check: &Path) -> String {
        // Whatever bytes it has, it is one line, and the end of one only.
        format!(" {:?}", check.strip_prefix(&self.home).unwrap_or(check))
    }

    fn line(&self, check: &Path, content: &Content) -> String {
        format!("{content}{}", self.name(check))
    }

    fn lines(&self) -> Vec<String> {
        let text = fs::read_to_string(&self.file).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    fn write(&self, lines: &[String]) -> io::Result<()> {
        base::replace_file(&self.file, |new| {
            lines.iter().try_for_each(|line| writeln!(new, "{line}"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_content_is_known_of_one_name_until_another_has_taken_its_place() {
        let folder = tempfile::tempdir().expect("a folder");
        let home = folder.path();
        let known = Known::of(home, home);
        let content = |text: &[u8]| {
            let mut content = Content::default();
            content.add(text);
            content
        };
        let ([old, new], [own, other]) = (
            [&b"old"[..], b"new"].map(content),
            ["a.check", "b a.check"].map(|one| home.join(one)),
        );
        assert!(!known.has(&own, &old));
        known.only(&own, &old).expect("noted");
        assert!(known.has(&own, &old) && !known.has(&own, &new) && !known.has(&other, &old));
        known.only(&other, &new).expect("noted");
        known.also(&own, &new).expect("noted");
        assert!(known.has(&own, &old) && known.has(&own, &new));
        known.only(&own, &new).expect("noted");
        assert!(!known.has(&own, &old) && known.has(&own, &new) && known.has(&other, &new));
        known.clear().expect("gone");
        known.clear().expect("it has gone");
        assert!(!known.has(&own, &new));
    }
}
