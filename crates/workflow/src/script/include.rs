//! The first pass over a script: its includes, and whether its directives come in pairs.

use std::collections::HashSet;

use super::{Files, MAX_JOB_BYTES, Micro, Origin, Scope, lines, shown, substitute, token};

/// The most files within each other.
pub const MAX_DEPTH: usize = 100;

/// The most files that a job includes, each as often as it is included.
const MAX_INCLUDED: usize = 10_000;

/// Which of the blocks that end with `%end` is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Block {
    Comment,
    Manual,
}

/// A script whose includes are being read.
pub(super) struct Includes<'a, F> {
    files: &'a F,
    scope: &'a Scope,
    /// The node's path, and the script's or the command that prints it.
    node: &'a str,
    script: &'a str,
    origin: Origin,
    /// What error texts begin with.
    context: &'a str,
    micro: Micro,
    block: Option<Block>,
    is_verbatim: bool,
    once: HashSet<String>,
    open: Vec<String>,
    lines: Vec<Vec<u8>>,
    bytes: usize,
    included: usize,
}

impl<'a, F: Files> Includes<'a, F> {
    pub(super) fn new(
        files: &'a F,
        scope: &'a Scope,
        (node, script, origin): (&'a str, &'a str, Origin),
        context: &'a str,
    ) -> Result<Self, String> {
        let micro = Micro::of(scope, node)?;
        let (once, open, lines) = (HashSet::new(), Vec::new(), Vec::new());
        let (block, is_verbatim, bytes, included) = (None, false, 0, 0);
        Ok(Self {
            files,
            scope,
            node,
            script,
            origin,
            context,
            micro,
            block,
            is_verbatim,
            once,
            open,
            lines,
            bytes,
            included,
        })
    }

    /// Returns the lines with those of all includes.
    pub(super) fn expand(mut self, script: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>, String> {
        self.all(script)?;
        Ok(self.lines)
    }

    fn error<T>(&self, what: impl AsRef<str>) -> Result<T, String> {
        Err(format!(
            "{}: Failed preprocessing : TASK:{} : path/cmd({})\n: {}",
            self.context,
            self.node,
            self.script,
            what.as_ref()
        ))
    }

    fn all(&mut self, lines: Vec<Vec<u8>>) -> Result<(), String> {
        let was_in_block = self.block.is_some();
        for line in lines {
            self.bytes += line.len() + 1;
            if self.bytes > MAX_JOB_BYTES {
                return self.error(format!("the job has more than {MAX_JOB_BYTES} bytes"));
            }
            self.line(line)?;
        }
        if self.is_verbatim {
            return self.error("Unterminated nopp, matching 'end' is missing");
        }
        match self.block {
            Some(Block::Comment) if !was_in_block => {
                self.error("Unterminated comment, matching 'end' is missing")
            }
            Some(Block::Manual) if !was_in_block => {
                self.error("Unterminated manual, matching 'end' is missing")
            }
            _ => Ok(()),
        }
    }

    fn line(&mut self, line: Vec<u8>) -> Result<(), String> {
        let place = self.micro.find(&line);
        let is_plain = self.is_verbatim || self.block.is_some();
        if place.is_some_and(|place| place > 0) && !is_plain {
            let count = self.micro.count(&line);
            if !count.is_multiple_of(2) {
                let micro = shown(&self.micro.0);
                let line = shown(&line);
                return self
                    .error(format!("Mismatched ecfmicro({micro}) count({count})  at : {line}"));
            }
        }
        if place != Some(0) {
            self.lines.push(line);
            return Ok(());
        }
        if self.directive(&line)? || self.is_verbatim {
            self.lines.push(line);
            return Ok(());
        }
        if token(&line, 1).is_none() {
            if !self.micro.count(&line).is_multiple_of(2) {
                let line = shown(&line);
                return self.error(format!(" unrecognised pre-processing directive at: '{line}'"));
            }
            self.lines.push(line);
            return Ok(());
        }
        self.include(line)
    }

    /// Whether the line is a directive that stays until the second pass.
    fn directive(&mut self, line: &[u8]) -> Result<bool, String> {
        let micro = self.micro.clone();
        for (word, block) in [("manual", Block::Manual), ("comment", Block::Comment)] {
            if micro.begins(line, word) {
                if self.block.is_some() {
                    let line = shown(line);
                    return self
                        .error(format!("Embedded comments/manuals not supported : '{line}'"));
                }
                self.block = Some(block);
                return Ok(true);
            }
        }
        if micro.begins(line, "nopp") {
            if self.is_verbatim {
                return self.error(format!("Embedded nopp not supported : '{}'", shown(line)));
            }
            self.is_verbatim = true;
            return Ok(true);
        }
        if micro.begins(line, "end") {
            if self.block.take().is_none() && !std::mem::take(&mut self.is_verbatim) {
                return self.error(format!(
                    "{}end found with no matching %comment | %manual | %nopp  : '{}'",
                    shown(&micro.0),
                    shown(line)
                ));
            }
            return Ok(true);
        }
        if self.is_verbatim {
            return Ok(true);
        }
        if micro.begins(line, "ecfmicro") {
            match Micro::of_line(line, self.script) {
                Ok(micro) => self.micro = micro,
                Err(why) => return self.error(why),
            }
            return Ok(true);
        }
        if micro.begins(line, "ecf_micro") {
            let line = shown(line);
            return self
                .error(format!("Replace with 'ecf_micro' with 'ecfmicro' at line: '{line}'"));
        }
        Ok(false)
    }

    fn include(&mut self, line: Vec<u8>) -> Result<(), String> {
        let is_verbatim = self.micro.begins(&line, "includenopp");
        let is_once = !is_verbatim && self.micro.begins(&line, "includeonce");
        if !self.micro.begins(&line, "include") {
            self.lines.push(line);
            return Ok(());
        }
        let Some(named) = token(&line, 1) else {
            return self.error(format!("Could not extract include token at : {}", shown(&line)));
        };
        let path = self.path(named, &line)?;
        if is_once && !self.once.insert(path.clone()) {
            return Ok(());
        }
        if self.open.contains(&path) || self.open.len() >= MAX_DEPTH {
            let script = self.script;
            return self.error(format!(" Recursive include of file {path} for {script}"));
        }
        self.included += 1;
        if self.included > MAX_INCLUDED {
            return self.error(format!("the job includes more than {MAX_INCLUDED} files"));
        }
        let read = match self.origin {
            Origin::Fetch => self.files.output(&format!("{} -i {path}", self.script)),
            _ => self.files.read(&path),
        };
        let bytes = match read {
            Ok(bytes) => bytes,
            Err(why) => return self.error(format!("Could not open include file: {path} ({why})")),
        };
        let mut included = lines(&bytes);
        if is_verbatim {
            let micro = &self.micro.0;
            included.insert(0, [micro, &b"nopp"[..]].concat());
            included.push([micro, &b"end"[..]].concat());
        }
        self.open.push(path);
        self.all(included)?;
        self.open.pop();
        Ok(())
    }

    /// Where an included file is.
    fn path(&self, named: &[u8], line: &[u8]) -> Result<String, String> {
        let mut named = named.to_vec();
        if self.micro.find(&named).is_some() {
            let count = self.micro.count(&named);
            if !count.is_multiple_of(2) {
                let (micro, line) = (shown(&self.micro.0), shown(line));
                return self
                    .error(format!("Mismatched ecfmicro({micro}) count({count}) at : {line}"));
            }
            named = substitute(&named, self.scope, &[], &self.micro.0).unwrap_or(named);
        }
        let Ok(named) = String::from_utf8(named) else {
            return self.error(format!("the name of a file is not UTF-8 at : {}", shown(line)));
        };
        let first = named.as_bytes().first().copied();
        let bare = match first {
            Some(b'<' | b'"') => {
                let end = named.len() - usize::from(named.ends_with(['>', '"']) && named.len() > 1);
                named[1..end].to_owned()
            }
            _ => return Ok(named),
        };
        if bare.starts_with('/') {
            return Ok(bare);
        }
        if first == Some(b'<') { self.searched(&bare, line) } else { self.quoted(&bare, line) }
    }

    /// A file of ECF_INCLUDE, or else of ECF_HOME.
    fn searched(&self, name: &str, line: &[u8]) -> Result<String, String> {
        let folders = self.scope.user("ECF_INCLUDE").unwrap_or_default();
        for folder in folders.split(':').filter(|folder| !folder.is_empty()) {
            let path = dollars(format!("{folder}/{name}"), self.scope);
            if self.files.exists(&path) {
                return Ok(path);
            }
        }
        match self.scope.any("ECF_HOME") {
            Some(home) if !home.is_empty() => Ok(format!("{home}/{name}")),
            _ => self.error(format!("ECF_INCLUDE/ECF_HOME not specified, at : {}", shown(line))),
        }
    }

    /// A file beside the script, or else of ECF_HOME/SUITE/FAMILY.
    fn quoted(&self, name: &str, line: &[u8]) -> Result<String, String> {
        if name.starts_with("./") || name.starts_with("../") {
            let own = match self.origin {
                Origin::Script => Some(self.script),
                _ => self.scope.any("ECF_JOB"),
            };
            if let Some((folder, _)) = own.and_then(|own| own.rsplit_once('/')) {
                return Ok(format!("{folder}/{name}"));
            }
        }
        let mut path = String::new();
        for variable in ["ECF_HOME", "SUITE", "FAMILY"] {
            let value = match variable {
                "ECF_HOME" => self.scope.user(variable),
                _ => self.scope.any(variable),
            };
            match value {
                Some(value) if !value.is_empty() => path.push_str(value),
                _ => {
                    return self.error(format!("{variable} not specified, at : {}", shown(line)));
                }
            }
            path.push('/');
        }
        Ok(path + name)
    }
}

/// Puts values in place of `$NAME`, as far as there are any.
fn dollars(mut path: String, scope: &Scope) -> String {
    for _ in 0..MAX_DEPTH {
        let Some(first) = path.find('$') else { break };
        let name: String = path[first + 1..]
            .chars()
            .take_while(|letter| letter.is_ascii_alphanumeric() || *letter == '_')
            .collect();
        let Some(value) = scope.any(&name).filter(|_| !name.is_empty()) else { break };
        let is_endless = value.contains(&name);
        path.replace_range(first..=first + name.len(), value);
        if is_endless || path.len() > MAX_JOB_BYTES {
            break;
        }
    }
    path
}
