//! A server's tree down to some level, with the bodies of nodes that are asked for. A server of
//! this program sends just that; of any other the whole is taken, and cut here.

use std::time::Duration;

use super::pushed::Pushed;
use super::{Client, ClientError, Portions, Result};
use crate::model::{AddError, Marks, NodeId, Passed, Portion, Snapshot, Tree};
use crate::protocol::{Encoding, Header, header};

/// What a refusal says where a node is gone.
const NO_NODE: &str = "Cannot find node at path";

/// What a client has of a server's tree.
#[derive(Debug)]
pub struct Levels {
    client: Client,
    /// Whether the server cuts.
    is_own: bool,
    encoding: Encoding,
    wants_states: bool,
    tree: Tree,
    marks: Marks,
    /// The first is that of [`Levels::new`], the others are bodies.
    portions: Vec<Portion>,
    /// Over which the server sends what changes in them.
    pushed: Option<Pushed>,
}

/// What an answer has brought.
#[derive(Debug)]
pub struct Brought {
    /// What may have changed of the tree.
    pub touched: Touched,
    /// The states that nodes have come to since the answer before, by path; none unless they are
    /// asked for ([`Levels::with_states`]).
    pub passed: Passed<String>,
}

/// What may have changed of a tree.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Touched {
    /// Of these nodes, by path, what is their own.
    Nodes(Vec<String>),
    /// Any node, and which there are.
    Any,
}

impl Touched {
    /// What a cut brings.
    fn by(cut: &Snapshot, marks: &Marks) -> Self {
        let mut paths = Vec::new();
        for id in cut.walk(NodeId::ROOT) {
            let mark = marks.get(&id).copied().unwrap_or_default();
            if mark.is_bare {
                continue;
            }
            // Its children are those that come.
            if !mark.has_others && !mark.is_cut {
                return Self::Any;
            }
            paths.push(cut.path(id));
        }
        Self::Nodes(paths)
    }
}

impl Levels {
    /// Takes a node with some levels below it.
    ///
    /// # Errors
    /// When there is no such node, or the server can't be reached.
    pub fn new(client: Client, encoding: Encoding, path: &str, levels: u32) -> Result<Self> {
        let is_own = client.is_own()?;
        let portions = vec![Portion { path: path.to_owned(), levels, known: None }];
        let (tree, marks) = Tree::unknown();
        let (wants_states, pushed) = (false, None);
        let mut all =
            Self { client, is_own, encoding, wants_states, tree, marks, portions, pushed };
        all.sync()?;
        Ok(all)
    }

    /// Has a server of this program send all states that nodes come to, not only their last ones.
    #[must_use]
    pub fn with_states(self) -> Self {
        Self { wants_states: true, ..self }
    }

    /// The tree, as far as it was asked for.
    #[must_use]
    pub const fn tree(&self) -> &Tree {
        &self.tree
    }

    /// What of its nodes is not in it.
    #[must_use]
    pub const fn marks(&self) -> &Marks {
        &self.marks
    }

    /// Takes a node's body, too: some levels below it. All else is brought up to the same moment.
    ///
    /// # Errors
    /// As of [`new`](Self::new).
    pub fn open(&mut self, path: &str, levels: u32) -> Result<()> {
        self.portions.push(Portion { path: path.to_owned(), levels, known: None });
        self.pushed = None;
        let opened = self.sync().map(drop);
        if opened.is_err() {
            self.portions.pop();
        }
        opened
    }

    /// Brings all of it up to one moment. A body whose node is gone is closed, with all others.
    ///
    /// # Errors
    /// As of [`new`](Self::new).
    pub fn sync(&mut self) -> Result<Brought> {
        if !self.is_own {
            let whole = self.client.tree()?;
            return self.take_cut_of(&whole);
        }
        let taken = self.client.cut(&self.header(None));
        let has_new = self.portions.iter().any(|one| one.known.is_none());
        let taken = match taken {
            Err(ClientError::Refused(why))
                if self.portions.len() > 1 && !has_new && why.contains(NO_NODE) =>
            {
                self.portions.truncate(1);
                // Their nodes are in the tree; all is taken anew, without them.
                self.portions[0].known = None;
                (self.tree, self.marks) = Tree::unknown();
                self.client.cut(&self.header(None))?
            }
            taken => taken?,
        };
        self.take(taken)
    }

    /// Waits this long for a change, and takes it: of a server of this program as soon as it
    /// comes, and at most one each `every`; of any other what has come by then. None has come where
    /// nothing is returned.
    ///
    /// # Errors
    /// As of [`new`](Self::new); the next call connects anew.
    pub fn wait(&mut self, within: Duration, every: Duration) -> Result<Option<Brought>> {
        if !self.is_own {
            std::thread::sleep(within);
            return self.sync().map(Some);
        }
        let mut pushed = match self.pushed.take() {
            Some(pushed) => pushed,
            None => {
                let every = u32::try_from(every.as_millis()).unwrap_or(u32::MAX);
                let (least, most) = header::FOLLOW_MS.into_inner();
                self.client.follow(&self.header(Some(every.clamp(least, most))))?
            }
        };
        let Some(answer) = pushed.next(within).map_err(|why| self.client.broken(why))? else {
            self.pushed = Some(pushed);
            return Ok(None);
        };
        match self.client.portions(&self.header(None), answer) {
            Ok(taken) => {
                self.pushed = Some(pushed);
                self.take(taken).map(Some)
            }
            // A body that is gone is closed, and the others are followed on.
            Err(ClientError::Refused(why)) if self.portions.len() > 1 && why.contains(NO_NODE) => {
                self.sync().map(Some)
            }
            Err(why) => Err(why),
        }
    }

    fn header(&self, follow: Option<u32>) -> Header {
        let (encoding, wants_states) = (self.encoding, self.wants_states);
        Header { encoding, follow, wants_states, portions: self.portions.clone() }
    }

    fn take_cut_of(&mut self, whole: &Tree) -> Result<Brought> {
        let all: Vec<Portion> =
            self.portions.iter().cloned().map(|one| Portion { known: None, ..one }).collect();
        let wanted = whole.wanted(&all).map_err(|path| {
            ClientError::Refused(format!("{}: there is no node {path}", self.client.address()))
        })?;
        let (cut, marks) = wanted.cut(whole);
        (self.tree, self.marks) = Tree::unknown();
        self.take_part(&cut, &marks)?;
        Ok(Brought { touched: Touched::Any, passed: Passed::default() })
    }

    fn take(&mut self, (cut, marks, passed): Portions) -> Result<Brought> {
        self.take_part(&cut, &marks)?;
        Ok(Brought { touched: Touched::by(&cut, &marks), passed })
    }

    fn take_part(&mut self, cut: &Snapshot, marks: &Marks) -> Result<()> {
        let bad = |why: AddError| self.client.bad(why);
        self.tree.take_cut(&mut self.marks, cut, marks).map_err(bad)?;
        let known = Some((cut.state_change_no(), cut.modify_change_no()));
        self.portions.iter_mut().for_each(|one| one.known = known);
        Ok(())
    }
}
