//! The structure of a definition: which node a line belongs to.

use std::sync::Arc;

use super::attributes;
use super::error::{DefinitionError, Fault, Read, fault, short};
use super::expression::{ExpressionError, parse_expression, stop};
use super::line::{Words, check_name, split, unquote};
use super::reader::{Reader, Style};
use super::recent::Expressions;
use super::state;
use crate::model::{
    Attribute, Condition, Displayed, Joint, Kind, Marks, NodeId, OwnText, Part, Text, Texts, Tree,
    Variable,
};

/// A definition that has been read.
#[derive(Debug, Default)]
pub struct Parsed {
    /// The tree.
    pub tree: Tree,
    /// What the text was printed as.
    pub style: Style,
    /// What was passed over: lines of other versions' servers, and statements that a last line
    /// without its end loses.
    pub warnings: Vec<DefinitionError>,
    /// What of its nodes isn't in the text.
    pub marks: Marks,
    /// In a server's text: the first expression of more terms than ecFlow's programs read.
    pub too_long: Option<DefinitionError>,
}

/// Reads a definition; `file` is what errors call it. In [`Style::Defs`] and [`Style::State`]
/// references are checked, too.
///
/// # Errors
/// The first line that can't be read, or the first reference to what isn't there.
pub fn parse(text: &str, file: &str) -> Result<Parsed, DefinitionError> {
    read(Reader::new(text, file))
}

/// The same of a text that this program has kept: values of variables have all of their blanks, of
/// which ecFlow takes several for one.
///
/// # Errors
/// As of [`parse`].
pub fn parse_kept(text: &str, file: &str) -> Result<Parsed, DefinitionError> {
    let mut parser = Reader::new(text, file);
    parser.is_kept = true;
    read(parser)
}

/// The same as [`parse`], remembering as many expressions, of which equal ones are shared: none,
/// and each is parsed. For who measures what that is worth.
pub(crate) fn parse_remembering(
    count: usize,
    text: &str,
    file: &str,
) -> Result<Parsed, DefinitionError> {
    let mut parser = Reader::new(text, file);
    parser.expressions = Expressions::remembering(count);
    read(parser)
}

fn read(mut parser: Reader<'_>) -> Result<Parsed, DefinitionError> {
    parser.run()?;
    let Reader { tree, style, warnings, places, file, marks, too_long, .. } = parser;
    let mut wrong = super::check::all(&tree, &places, file);
    if !style.is_persistent()
        && let Some(error) = wrong.next()
    {
        return Err(error);
    }
    drop(wrong);
    Ok(Parsed { tree, style, warnings, marks, too_long })
}

/// Reads the text of one node, as a server prints it for `plug` and `replace`: a suite, family,
/// task or alias, with its state. What is no suite lies below nodes that stand for those that it
/// is going to lie in; [`only_node`] returns it.
///
/// # Errors
/// The first line that can't be read.
pub fn parse_node(text: &str, file: &str) -> Result<Parsed, DefinitionError> {
    let mut parser = Reader::new(text, file);
    parser.is_node = true;
    parser.style = Style::Migrate;
    parser.lines.is_persistent = true;
    parser.run()?;
    let Reader { tree, warnings, marks, too_long, .. } = parser;
    Ok(Parsed { tree, style: Style::Migrate, warnings, marks, too_long })
}

/// Reads one attribute of a task: what follows its keyword in a definition.
///
/// # Errors
/// It can't be read, or is more than one attribute; in words for the user.
pub fn parse_attribute(keyword: &str, text: &str) -> Result<Attribute, String> {
    let refused = |why: &str| format!("Could not parse {keyword} {:?}: {why}", short(text));
    if text.contains([';', '\n', '#']) {
        return Err(refused("it has a semicolon, a sign # or an end of line: drop it"));
    }
    let around = format!("suite s\ntask t\n{keyword} {text}\n");
    let mut parser = Reader::new(&around, "");
    parser.run().map_err(|error| refused(&format!("{}; {}", error.message, error.fix)))?;
    let task = parser.tree.find("/s/t");
    let all = task.map(|task| &*parser.tree.node(task).attributes).unwrap_or_default();
    match all {
        [one] if one.word() == keyword => Ok(one.clone()),
        _ => Err(refused("it is not one attribute")),
    }
}

/// Reads the expression of a trigger or complete for a node that is there: what it names has to
/// be there, too.
///
/// # Errors
/// It can't be read, or names what isn't there; in words for the user.
pub fn parse_condition(tree: &mut Tree, id: NodeId, text: &str) -> Result<Condition, String> {
    if text.contains('\n') {
        return Err("an expression has no end of line: drop it".to_owned());
    }
    let parts = vec![Part { joint: Joint::First, text: Text::from(text) }];
    let compiled = super::expression(parts, tree.texts_mut());
    let expression = compiled.map_err(|error| not_parsed(text, &error))?;
    let condition = Condition { expression: Arc::new(expression), free: false };
    match super::check::condition(tree, id, "expression", &condition) {
        Some((message, _)) => Err(message),
        None => Ok(condition),
    }
}

/// Why a text is no expression, in ecFlow's words, whose length is that of no match, -1; in words
/// of our own where it is too long to be repeated, or ecFlow would read it.
fn not_parsed(text: &str, error: &ExpressionError) -> String {
    let shown = short(text);
    let is_read = parse_expression(text, &mut Texts::default()).is_ok();
    let rest = stop(text).and_then(|at| text.get(at..));
    match rest.filter(|_| !is_read && shown == text) {
        Some(rest) => format!(
            "Failed to parse expression '{text}'.  Parsing failed\nlength = {}\nstopped at: \": \
             {rest}\"\n",
            u64::MAX
        ),
        None => format!("Failed to parse expression '{shown}': {error}"),
    }
}

/// The name of a node that stands for one around the text of a node: no name that a text may have.
const STAND_IN: &str = "/";

/// The node of a text that [`parse_node`] has read.
#[must_use]
pub fn only_node(tree: &Tree) -> Option<NodeId> {
    let mut id = tree.suites().next()?;
    while tree.node(id).name == *STAND_IN {
        id = tree.children(id).next()?;
    }
    Some(id)
}

impl<'a> Reader<'a> {
    fn run(&mut self) -> Result<(), DefinitionError> {
        let mut words = Vec::with_capacity(64);
        while let Some(line) = self.lines.next() {
            split(line, &mut words);
            if words.is_empty() {
                continue;
            }
            if let Err(fault) = self.line(line, &mut words) {
                return Err(self.error(*fault));
            }
        }
        self.finish().map_err(|fault| self.error(*fault))
    }

    /// Puts the attributes that were read onto their node.
    fn leave(&mut self) -> Read<()> {
        for is_trigger in [false, true] {
            if let Some(pending) = self.scratch.conditions[usize::from(is_trigger)].take() {
                self.compile(is_trigger, pending)?;
            }
        }
        if let Some(node) = self.node
            && !self.scratch.attributes.is_empty()
        {
            let all = &mut self.scratch.attributes;
            if !all.is_sorted_by_key(Attribute::rank) {
                all.sort_by_key(Attribute::rank);
            }
            self.tree.edit(node).attributes = all.drain(..).collect();
        }
        self.scratch.clear();
        Ok(())
    }

    /// Leaves all nodes, at the end of the text.
    pub(super) fn finish(&mut self) -> Read<()> {
        if self.lines.has_lost {
            let message = "a last line without its end is read up to its first ';' only, as by \
                           ecFlow's parser";
            self.warn(*fault(message.to_owned(), "end the line"));
        }
        self.enter(None)
    }

    /// Goes on with a node: `None` is outside of all suites.
    fn enter(&mut self, node: Option<NodeId>) -> Read<()> {
        let node = node.filter(|id| *id != NodeId::ROOT);
        let around = node.and_then(|id| self.tree.node(id).parent);
        if let Some(open) = self.node.filter(|_| self.scratch.is_resumed && around == self.node) {
            let mut scratch = std::mem::take(&mut self.scratch);
            scratch.has_default = false;
            self.resumed.push((open, scratch));
        } else {
            self.leave()?;
        }
        // The end of a suite is that of all families that are open in it.
        while node.is_none()
            && let Some((open, scratch)) = self.resumed.pop()
        {
            (self.node, self.scratch) = (Some(open), scratch);
            self.leave()?;
        }
        self.node = node;
        self.kind = node.map_or(Kind::Root, |id| self.tree.node(id).kind);
        match self.resumed.pop_if(|(open, _)| Some(*open) == node) {
            Some((_, scratch)) => self.scratch = scratch,
            None => {
                let has_some = |id| !self.tree.node(id).attributes.is_empty();
                self.scratch.has_before = node.is_some_and(has_some);
            }
        }
        Ok(())
    }

    /// Attributes may stand behind children, too: those before them are taken up again, once, and
    /// put onto their node with the others at its end.
    fn resume(&mut self) -> Read<()> {
        if !std::mem::take(&mut self.scratch.has_before) {
            return Ok(());
        }
        let Some(id) = self.node else { return Ok(()) };
        self.scratch.is_resumed = true;
        let before = self.tree.node(id).attributes.to_vec();
        before.into_iter().try_for_each(|attribute| self.scratch.push(attribute))
    }

    fn parent(&self) -> Option<NodeId> {
        self.node.and_then(|id| self.tree.node(id).parent)
    }

    /// Leaves tasks and aliases, up to the suite or family around them.
    fn leave_jobs(&mut self) -> Read<()> {
        while self.kind.is_job() {
            let parent = self.parent();
            self.enter(parent)?;
        }
        Ok(())
    }

    pub(super) fn line(&mut self, line: &'a str, words: &mut Vec<&'a str>) -> Read<()> {
        let keyword = words[0];
        match keyword {
            "task" | "family" | "suite" | "alias" => return self.begin_node(line, words),
            "endtask" | "endfamily" | "endsuite" | "endalias" => return self.end_node(keyword),
            _ => self.resume()?,
        }
        match keyword {
            "edit" => return self.edit(line, words),
            "trigger" | "complete" if matches!(self.kind, Kind::Root | Kind::Suite) => {
                return self.unexpected(keyword);
            }
            "trigger" | "complete" => return self.condition(line, words),
            _ => {}
        }
        if keyword.starts_with('#') {
            return Ok(());
        }
        let of = Words { line, all: words };
        if self.node.is_none() {
            return match keyword {
                "defs_state" => {
                    state::defs_state(self, &of)?;
                    self.lines.is_persistent = self.style.is_persistent();
                    Ok(())
                }
                "history" => state::history(self, &of),
                "extern" => {
                    let path = self.tree.share(of.need(1, "path")?);
                    self.tree.server_mut().externs.insert(path);
                    Ok(())
                }
                _ => self.unexpected(keyword),
            };
        }
        if keyword == "defstatus" {
            return self.default_status(&of);
        }
        if !allowed(self.kind, keyword) {
            return self.unexpected(keyword);
        }
        attributes::read(self, &of)
    }

    /// A keyword that isn't known here: a fault, but in the text of a server of another version.
    fn unexpected(&mut self, keyword: &str) -> Read<()> {
        let place = match self.node {
            Some(id) => format!("in {} {}", self.kind.word(), self.tree.path(id)),
            None => "outside of a suite".to_owned(),
        };
        let message = format!("unexpected keyword '{}' {place}", short(keyword));
        if self.style.is_persistent() {
            self.warn(Fault { message, fix: "the line is passed over".to_owned() });
            return Ok(());
        }
        let fix = match (self.node, allowed(Kind::Task, keyword)) {
            (None, true) => "put it into a suite, family or task",
            (Some(_), true) => "this kind of node can't have it: put it above or below",
            _ => "see whether it is misspelt",
        };
        Err(fault(message, fix))
    }

    fn begin_node(&mut self, line: &'a str, words: &[&'a str]) -> Read<()> {
        let kind = match words[0] {
            "suite" => Kind::Suite,
            "family" => Kind::Family,
            "task" => Kind::Task,
            _ => Kind::Alias,
        };
        let of = Words { line, all: words };
        let name = of.need(1, "name")?;
        // What is kept has been taken before: it is read whatever it is called.
        if !self.is_kept {
            check_name(kind.word(), name)?;
        }
        if kind == Kind::Alias {
            if self.kind == Kind::Alias {
                let parent = self.parent();
                self.enter(parent)?;
            }
        } else {
            self.leave_jobs()?;
        }
        if kind == Kind::Suite && self.node.is_some() {
            return Err(fault(
                format!("suite '{}' begins within a suite", short(name)),
                "end the suite before it with endsuite",
            ));
        }
        let parent = match self.node {
            Some(parent) => parent,
            None if kind == Kind::Suite => NodeId::ROOT,
            None if self.is_node && self.tree.count() == 0 => self.stand_in(kind)?,
            None => {
                let message = format!("{} '{}' outside of a suite", kind.word(), short(name));
                return Err(fault(message, "begin a suite before it"));
            }
        };
        let name = self.tree.own_text(name);
        let added = self.tree.add(parent, kind, name, None);
        let id = added.map_err(|error| {
            fault(format!("{} '{}': {error}", words[0], words[1]), "give it another name or place")
        })?;
        self.enter(Some(id))?;
        // Aliases stand in servers' texts only, so that theirs is read always.
        if self.style.has_state() || kind == Kind::Alias {
            state::node(self, id, &of)?;
        }
        Ok(())
    }

    /// Begins a node under another name, or in another place, where it can't have its own: what is
    /// below it is read all the same. Of an alias nothing is.
    pub(super) fn begin_elsewhere(&mut self, words: &[&str]) -> Read<()> {
        let kind = match words[0] {
            "suite" => Kind::Suite,
            "family" => Kind::Family,
            "task" => Kind::Task,
            _ => return Err(fault("an alias in no place of its own", "")),
        };
        match kind {
            Kind::Suite => self.enter(None)?,
            _ => self.leave_jobs()?,
        }
        let name = words.get(1).copied().filter(|name| check_name(kind.word(), name).is_ok());
        let parent = match self.node {
            Some(parent) => parent,
            None if kind == Kind::Suite => NodeId::ROOT,
            None => self.add_under(NodeId::ROOT, Kind::Suite, "unnamed")?,
        };
        let id = self.add_under(parent, kind, name.unwrap_or("unnamed"))?;
        self.enter(Some(id))
    }

    /// Adds a node of such a name, or one behind which `_again` is put.
    fn add_under(&mut self, parent: NodeId, kind: Kind, name: &str) -> Read<NodeId> {
        let mut name = name.to_owned();
        while self.tree.child(parent, &name).is_some() {
            name.push_str("_again");
        }
        let name = self.tree.own_text(&name);
        self.tree.add(parent, kind, name, None).map_err(|error| fault(error.to_string(), ""))
    }

    /// Nodes in which a lone node can lie.
    fn stand_in(&mut self, kind: Kind) -> Read<NodeId> {
        let kinds: &[Kind] =
            if kind == Kind::Alias { &[Kind::Suite, Kind::Task] } else { &[Kind::Suite] };
        let mut parent = NodeId::ROOT;
        for kind in kinds {
            let added = self.tree.add(parent, *kind, OwnText::from(STAND_IN), None);
            parent = added.map_err(|error| fault(error.to_string(), ""))?;
        }
        Ok(parent)
    }

    fn end_node(&mut self, keyword: &str) -> Read<()> {
        let wrong = |what: &str| {
            Err(fault(format!("{keyword} without {what}"), "drop it, or begin what it ends"))
        };
        match keyword {
            "endalias" if self.kind == Kind::Alias => {
                let parent = self.parent();
                self.enter(parent)
            }
            "endalias" => wrong("an alias"),
            "endtask" if self.kind.is_job() => self.leave_jobs(),
            "endtask" => wrong("a task"),
            "endfamily" => {
                self.leave_jobs()?;
                if self.kind != Kind::Family {
                    return wrong("a family");
                }
                let parent = self.parent();
                self.enter(parent)
            }
            _ => {
                if self.node.is_none() {
                    return wrong("a suite");
                }
                self.enter(None)
            }
        }
    }

    fn edit(&mut self, line: &'a str, words: &[&'a str]) -> Read<()> {
        let of = Words { line, all: words };
        let name = of.need(1, "name")?;
        let value = of.need(2, "value")?;
        let mut text = std::mem::take(&mut self.scratch.text);
        let joined = if words.len() == 3 { value } else { of.join(2, &mut text) };
        let kept = if self.is_kept { of.kept(2) } else { None };
        let value = self.tree.own_text(kept.as_deref().unwrap_or_else(|| unquote(joined)));
        self.scratch.text = text;
        let is_free = self.style == Style::Net || self.kind == Kind::Alias || self.is_kept;
        let name = if is_free { name } else { check_name("variable", name)? };
        let name = self.tree.share(name);
        let variable = Variable { name, value };
        if self.node.is_none() {
            let server = self.tree.server_mut();
            let is_server = words.len() > 3 && of.state(3).first() == Some(&"server");
            let list = if is_server { &mut server.variables } else { &mut server.user_variables };
            match list.iter_mut().find(|known| known.name == variable.name) {
                Some(known) => known.value = variable.value,
                None => list.push(variable),
            }
            return Ok(());
        }
        const RANK: u8 = 4;
        match self.scratch.find(RANK, &variable.name) {
            Some(place) => {
                self.scratch.attributes[place] = Attribute::Variable(variable);
                Ok(())
            }
            None => self.scratch.push(Attribute::Variable(variable)),
        }
    }

    fn default_status(&mut self, of: &Words<'a, '_>) -> Read<()> {
        let word = of.need(1, "state")?;
        let Some(state) = Displayed::of_word(word) else {
            return Err(fault(
                format!("'{}' is no state", short(word)),
                "use complete, aborted, queued, active, submitted, suspended or unknown",
            ));
        };
        if std::mem::replace(&mut self.scratch.has_default, true) {
            return Err(fault("a second defstatus", "a node has one at most"));
        }
        if let Some(id) = self.node {
            self.tree.edit(id).default = state;
        }
        Ok(())
    }
}

/// Whether a kind of node may have this attribute in a definition.
fn allowed(kind: Kind, keyword: &str) -> bool {
    match keyword {
        "label" | "meter" | "event" | "limit" | "inlimit" | "repeat" | "late" | "cron"
        | "autocancel" | "verify" | "zombie" | "queue" | "generic" | "edit" | "aviso"
        | "mirror" => true,
        "time" | "today" | "date" | "day" => kind != Kind::Suite,
        "clock" | "endclock" | "calendar" => kind == Kind::Suite,
        "autoarchive" => matches!(kind, Kind::Suite | Kind::Family),
        "autorestore" => kind != Kind::Alias,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::{only_node, parse, parse_kept, parse_node};

    #[test]
    fn a_name_is_checked_when_it_comes_and_never_again() {
        for name in ["../x", "a/b", &"n".repeat(1025)] {
            let text = format!("#5.9.2\ndefs_state NET\nsuite {name}\nendsuite\n");
            let refused = parse(&text, "t").map(|_| ()).map_err(|why| why.to_string());
            assert!(refused.is_err_and(|why| why.contains("is no name of a suite")), "{name}");
            let kept = text.replace("NET", "MIGRATE");
            assert!(parse_kept(&kept, "t").is_ok(), "{name}");
        }
    }

    #[test]
    fn a_lone_node_is_found_whatever_it_is_called() {
        for (text, name, below) in [
            ("suite _\n task a\nendsuite\n", "_", 1),
            ("family _\n task a\n task b\nendfamily\n", "_", 2),
            ("task t\nendtask\n", "t", 0),
            ("alias _\nendalias\n", "_", 0),
        ] {
            let tree = parse_node(text, "t").expect(text).tree;
            let node = only_node(&tree).expect("a node");
            assert_eq!((tree.node(node).name.as_str(), tree.children(node).count()), (name, below));
        }
    }

    #[test]
    fn a_kept_value_has_all_of_its_blanks_where_ecflow_takes_several_for_one() {
        let text = "#5.9.2\ndefs_state MIGRATE state_change:1\nedit TOP 'x   y'\nsuite s\n  \
                    edit V 'a  b\t# it's'\n  edit W ''\nendsuite\n# enddef\n";
        let values = |tree: &crate::model::Tree| {
            let suite = tree.find("/s").expect("the suite");
            let own = ["V", "W"].map(|name| {
                tree.own_variable(suite, name).map(|value| value.to_string()).unwrap_or_default()
            });
            let top = tree.server_variable("TOP").map(|value| value.to_string());
            (own, top.unwrap_or_default())
        };
        let kept = parse_kept(text, "kept").expect("a definition");
        assert_eq!(
            values(&kept.tree),
            (["a  b\t# it's", ""].map(String::from), "x   y".to_owned())
        );
        let read = parse(text, "read").expect("a definition");
        assert_eq!(values(&read.tree).1, "x y");
    }
}
