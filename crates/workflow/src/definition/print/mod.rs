//! Printing: a tree as ecFlow 5.9.2 prints it.
//!
//! Text is appended to one string, without a format string on the way of the common lines.

mod attribute;
mod evaluation;

use std::fmt::Write as _;

use super::reader::Style;
use crate::model::{
    Attribute, Displayed, Duration, Kind, Marks, Node, NodeId, ServerState, Snapshot, State,
};

/// The version that is the first line of every text.
pub const VERSION: &str = "5.9.2";

/// A text that grows, and how.
struct Printer<'a> {
    tree: &'a Snapshot,
    style: Style,
    is_indented: bool,
    out: String,
    /// What of nodes isn't in the tree.
    marks: Option<&'a Marks>,
    /// What takes the text once there is a piece of it, of this size.
    take: Option<&'a mut dyn FnMut(&str)>,
    piece_bytes: usize,
    /// Values are written so that this program reads them as they are.
    is_kept: bool,
    has_history: bool,
    /// The most bytes that are printed; 0 once there would be more, and nothing follows.
    most: usize,
}

/// About the size of the pieces in which a long text is passed on: they stay in a core's cache.
const PIECE_BYTES: usize = 64 << 10;

/// The whole text of a tree. Servers' texts ([`Style::Net`], [`Style::Migrate`]) are not indented
/// on the wire and in checkpoints; ecFlow's tools indent them.
#[must_use]
pub fn print(tree: &Snapshot, style: Style, is_indented: bool) -> String {
    let out = String::with_capacity(4096);
    let mut printer = Printer { is_indented, out, ..Printer::new(tree, style) };
    printer.whole(|_| true);
    printer.out
}

/// Passes the text of some suites, a whole of their own, to `take` piece by piece, not indented.
pub fn print_pieces(
    tree: &Snapshot,
    style: Style,
    is_in: impl Fn(NodeId) -> bool,
    take: &mut dyn FnMut(&str),
) {
    let out = String::with_capacity(2 * PIECE_BYTES);
    let mut printer = Printer { out, take: Some(take), ..Printer::new(tree, style) };
    printer.whole(is_in);
    printer.pass(0);
}

/// Passes the text of a tree with its edit history to `take` piece by piece, as a server sends it
/// to who migrates: ecFlow calls that text a client's, of which its client makes a checkpoint.
pub fn print_migrated(tree: &Snapshot, take: &mut dyn FnMut(&str)) {
    let (out, has_history) = (String::with_capacity(2 * PIECE_BYTES), true);
    let new = Printer::new(tree, Style::Net);
    let mut printer = Printer { out, has_history, take: Some(take), ..new };
    printer.whole(|_| true);
    printer.pass(0);
}

/// Passes the text of a tree to `take`, not indented, in pieces of at least `bytes` bytes that end
/// with a node.
pub(crate) fn print_by(tree: &Snapshot, style: Style, bytes: usize, take: &mut dyn FnMut(&str)) {
    let new = Printer::new(tree, style);
    let mut printer = Printer { take: Some(take), piece_bytes: bytes, ..new };
    printer.whole(|_| true);
    printer.pass(0);
}

/// Passes the text of what is cut out of a tree to `take` piece by piece: behind a node's name
/// stands what of it isn't there.
pub fn print_cut(
    tree: &Snapshot,
    marks: &Marks,
    (style, is_indented): (Style, bool),
    take: &mut dyn FnMut(&str),
) {
    let (marks, out) = (Some(marks), String::with_capacity(2 * PIECE_BYTES));
    let new = Printer::new(tree, style);
    let mut printer = Printer { is_indented, out, marks, take: Some(take), ..new };
    printer.whole(|_| true);
    printer.pass(0);
}

/// The text of one node and all below it, as `get` of a node returns it.
#[must_use]
pub fn print_node(tree: &Snapshot, id: NodeId, style: Style, is_indented: bool) -> String {
    print_node_within(tree, id, (style, is_indented), usize::MAX).unwrap_or_default()
}

/// The same where it has at most this number of bytes; of a longer one no more is printed.
#[must_use]
pub fn print_node_within(
    tree: &Snapshot,
    id: NodeId,
    (style, is_indented): (Style, bool),
    most: usize,
) -> Option<String> {
    let mut printer = Printer { is_indented, most, ..Printer::new(tree, style) };
    // A node that is printed alone begins where a suite begins.
    let depth = usize::from(tree.node(id).kind != Kind::Suite);
    printer.node_at(id, depth);
    (!printer.is_over() && printer.out.len() <= most).then_some(printer.out)
}

/// Appends the text of a node and all below it to that of an archive. `depth` is 0 for a suite.
pub fn append_kept(tree: &Snapshot, id: NodeId, depth: usize, text: &mut String) {
    let (out, is_kept) = (std::mem::take(text), true);
    let mut printer = Printer { out, is_kept, ..Printer::new(tree, Style::Migrate) };
    printer.node_at(id, depth);
    *text = printer.out;
}

/// The line of one attribute, without its state; of an expression its first part.
#[must_use]
pub fn print_attribute(tree: &Snapshot, attribute: &Attribute) -> String {
    let mut printer = Printer::new(tree, Style::Defs);
    match attribute {
        Attribute::Trigger(condition) | Attribute::Complete(condition) => {
            printer.condition(attribute.word(), condition, 0);
        }
        _ => printer.line(attribute),
    }
    printer.out
}

/// The last line of every text.
pub const END: &str = "# enddef\n";

const BLANKS: &str = "                                                                ";

impl<'a> Printer<'a> {
    const fn new(tree: &'a Snapshot, style: Style) -> Self {
        let (is_indented, marks, take, is_kept) = (false, None, None, false);
        let out = String::new();
        let (piece_bytes, most) = (PIECE_BYTES, usize::MAX);
        let has_history = matches!(style, Style::Migrate);
        Self { tree, style, is_indented, out, marks, take, piece_bytes, is_kept, has_history, most }
    }
}

impl Printer<'_> {
    fn text(&mut self, text: &str) {
        if self.has_room(text.len()) {
            self.out.push_str(text);
        }
    }

    /// Whether there is room for this number of bytes; where there is none, nothing follows.
    fn has_room(&mut self, bytes: usize) -> bool {
        let has_room = bytes <= self.most.saturating_sub(self.out.len());
        if !has_room {
            self.most = 0;
        }
        has_room
    }

    /// Whether the text is longer than what is printed.
    const fn is_over(&self) -> bool {
        self.most == 0
    }

    fn number(&mut self, number: i64) {
        let mut digits = [0_u8; 20];
        let mut at = digits.len();
        let mut rest = number.unsigned_abs();
        loop {
            at -= 1;
            digits[at] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        if number < 0 {
            self.out.push('-');
        }
        self.out.push_str(std::str::from_utf8(&digits[at..]).unwrap_or_default());
    }

    fn indent(&mut self, depth: usize) {
        let mut count = if self.is_indented { depth * 2 } else { 0 };
        while count > 0 {
            let part = count.min(BLANKS.len());
            self.out.push_str(&BLANKS[..part]);
            count -= part;
        }
    }

    /// A text in which lines' ends are written `\n`.
    fn escaped(&mut self, text: &str) {
        if !self.has_room(text.len()) {
            return;
        }
        if memchr::memchr(b'\n', text.as_bytes()).is_some() {
            self.out.push_str(&text.replace('\n', "\\n"));
        } else {
            self.out.push_str(text);
        }
    }

    /// Passes the text on where there is at least this much of it.
    fn pass(&mut self, bytes: usize) {
        if self.out.len() >= bytes
            && let Some(take) = &mut self.take
        {
            take(&self.out);
            self.out.clear();
        }
    }

    fn whole(&mut self, is_in: impl Fn(NodeId) -> bool) {
        self.head();
        for suite in self.tree.suites().filter(|suite| is_in(*suite)) {
            self.node_at(suite, 0);
        }
        self.text(END);
    }

    fn head(&mut self) {
        self.text("#");
        self.text(VERSION);
        self.text("\n");
        let server = self.tree.server();
        if self.style.has_state() {
            self.server_state();
        }
        if self.style == Style::State {
            let _ = writeln!(self.out, "# server state: {}", server.state.word());
        }
        if !self.style.is_persistent() {
            for path in &server.externs {
                let _ = writeln!(self.out, "extern {path}");
            }
        }
    }

    fn server_state(&mut self) {
        let (server, root) = (self.tree.server(), self.tree.node(NodeId::ROOT));
        let _ = write!(self.out, "defs_state {}", self.style.word());
        if root.state != State::Unknown {
            let _ = write!(self.out, " state>:{}", root.state.word());
        }
        if !root.flags.is_empty() {
            let _ = write!(self.out, " flag:{}", root.flags);
        }
        for (name, number) in [
            ("state_change", self.tree.state_change_no()),
            ("modify_change", self.tree.modify_change_no()),
        ] {
            if number != 0 {
                let _ = write!(self.out, " {name}:{number}");
            }
        }
        if server.state != ServerState::Running {
            let _ = write!(self.out, " server_state:{}", server.state.word());
        }
        let _ = write!(self.out, " cal_count:{}", server.calendar_count);
        self.mark(NodeId::ROOT);
        self.text("\n");
        for variable in &server.user_variables {
            self.indent(1);
            self.variable(variable);
            self.text("\n");
        }
        for variable in &server.variables {
            self.indent(1);
            self.variable(variable);
            self.text(" # server\n");
        }
        if self.has_history {
            for (path, lines) in &server.history {
                self.indent(1);
                let _ = write!(self.out, "history {path} ");
                for line in lines {
                    self.text("\u{8}");
                    self.escaped(line);
                }
                self.text("\n");
            }
        }
    }

    /// A node and all below it, without recursion: depth is the tree's, which is limited, but a
    /// walk needs no stack at all.
    fn node_at(&mut self, from: NodeId, depth: usize) {
        let tree = self.tree;
        let (mut at, mut depth) = (from, depth);
        loop {
            self.open(at, depth);
            if self.is_over() {
                return;
            }
            self.pass(self.piece_bytes);
            let node = tree.node(at);
            let is_shown = node.kind != Kind::Task || self.style.has_state();
            if let Some(child) = node.first_child.filter(|_| is_shown) {
                // Aliases stand two levels below their task.
                depth += if node.kind == Kind::Task { 2 } else { 1 };
                at = child;
                continue;
            }
            loop {
                self.close(at, depth);
                if at == from {
                    return;
                }
                let node = tree.node(at);
                if let Some(next) = node.next {
                    at = next;
                    break;
                }
                let Some(parent) = node.parent else { return };
                depth -= if tree.node(parent).kind == Kind::Task { 2 } else { 1 };
                at = parent;
            }
        }
    }

    fn open(&mut self, id: NodeId, depth: usize) {
        let node = self.tree.node(id);
        self.indent(depth);
        self.text(node.kind.word());
        self.text(" ");
        self.text(&node.name);
        if self.style.has_state() {
            self.state(node);
        }
        self.mark(id);
        self.text("\n");
        let inner = depth + 1;
        if node.default != Displayed::Queued {
            self.indent(inner);
            self.text("defstatus ");
            self.text(node.default.word());
            self.text("\n");
        }
        let with_made = self.style == Style::State;
        let mut is_made = !with_made;
        for attribute in node.attributes.iter() {
            if self.is_over() {
                return;
            }
            // Variables that the node makes stand behind the users'.
            if !is_made && attribute.rank() > 4 {
                self.made(id, inner);
                is_made = true;
            }
            self.attribute(id, attribute, inner);
        }
        if !is_made {
            self.made(id, inner);
        }
    }

    /// The variables that a node makes, as comments.
    fn made(&mut self, id: NodeId, depth: usize) {
        let repeat = self.tree.repeat(id);
        let mut of_repeat = Vec::new();
        if let Some(repeat) = repeat {
            of_repeat = repeat.date_parts();
            of_repeat.push((repeat.name.to_string(), repeat.over.text()));
        }
        let own = self.tree.generated(id).into_iter().map(|(name, value)| (name.to_owned(), value));
        let all: Vec<(String, String)> = match self.tree.node(id).kind {
            Kind::Suite => of_repeat.into_iter().chain(own).collect(),
            _ => own.chain(of_repeat).collect(),
        };
        for (name, value) in all {
            self.indent(depth);
            self.text("# edit ");
            self.text(&name);
            self.text(" '");
            self.escaped(&value);
            self.text("'\n");
        }
    }

    fn close(&mut self, id: NodeId, depth: usize) {
        match self.tree.node(id).kind {
            Kind::Suite => {
                self.indent(depth);
                self.text("endsuite\n");
            }
            Kind::Family => {
                self.indent(depth);
                self.text("endfamily\n");
            }
            Kind::Task => {
                let has_aliases = self.tree.node(id).first_child.is_some();
                if has_aliases && self.style.has_state() {
                    self.indent(depth + 2);
                    self.text("endalias\n");
                }
            }
            Kind::Root | Kind::Alias => {}
        }
    }

    /// The state of a node behind its name.
    fn state(&mut self, node: &Node) {
        let mut sign = " #";
        let mut add = |printer: &mut Self, key: &str| {
            printer.text(std::mem::take(&mut sign));
            printer.text(key);
        };
        if node.is_begun && node.kind == Kind::Suite {
            add(self, " begun:1");
        }
        if let Some(job) = &node.job {
            if job.alias_no != 0 && node.kind == Kind::Task {
                add(self, " alias_no:");
                self.number(job.alias_no.into());
            }
            if !job.password.is_empty() && job.password != "_DJP_" {
                add(self, " passwd:");
                self.text(&job.password);
            }
            if !job.rid.is_empty() {
                add(self, " rid:");
                self.text(&job.rid);
            }
            if !job.abort_reason.is_empty() && self.has_room(job.abort_reason.len()) {
                add(self, " abort<:");
                // The reason may quote a script, and ecFlow's client reads no line with a NUL.
                let reason = job.abort_reason.replace('\n', "\\n").replace([';', '\0'], " ");
                // What ends it must not stand in it: the rest would be read as other words.
                self.text(&reason.replace(">abort", "> abort"));
                self.text(">abort");
            }
            if job.try_no != 0 {
                add(self, " try:");
                self.number(job.try_no.into());
            }
        }
        if node.state != State::Unknown {
            add(self, " state:");
            self.text(node.state.word());
        }
        if node.since.whole_seconds() != 0 {
            add(self, " dur:");
            self.duration(node.since);
        }
        if !node.flags.is_empty() {
            add(self, " flag:");
            let _ = write!(self.out, "{}", node.flags);
        }
        if node.is_suspended {
            add(self, " suspended:1");
        }
        if node.ran.whole_seconds() != 0 {
            add(self, " rt:");
            self.duration(node.ran);
        }
    }

    /// What of a node isn't there.
    fn mark(&mut self, id: NodeId) {
        if let Some(mark) = self.marks.and_then(|marks| marks.get(&id)) {
            let _ = write!(self.out, " # part:{}", mark.words());
        }
    }

    fn duration(&mut self, duration: Duration) {
        let _ = write!(self.out, "{duration}");
    }

    fn attribute(&mut self, id: NodeId, attribute: &Attribute, depth: usize) {
        if matches!(attribute, Attribute::Calendar(_)) && !self.style.has_state() {
            return;
        }
        if let Attribute::Trigger(condition) | Attribute::Complete(condition) = attribute {
            self.condition(attribute.word(), condition, depth);
            if self.style == Style::State {
                self.evaluation(id, condition, depth);
            }
            return;
        }
        self.indent(depth);
        self.line(attribute);
        self.text("\n");
    }
}
