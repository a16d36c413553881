//! A server's tree down to some level, with the bodies of nodes that are asked for. A server of
//! this program sends just that; of any other the whole is taken, and cut here.

use super::{Client, ClientError, Result};
use crate::model::{AddError, Marks, Portion, Snapshot, Tree};
use crate::protocol::{Encoding, Header};

/// What a refusal says where a node is gone.
const NO_NODE: &str = "Cannot find node at path";

/// What a client has of a server's tree.
#[derive(Debug)]
pub struct Levels {
    client: Client,
    /// Whether the server cuts.
    is_own: bool,
    encoding: Encoding,
    tree: Tree,
    marks: Marks,
    /// The first is that of [`Levels::new`], the others are bodies.
    portions: Vec<Portion>,
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
        let mut all = Self { client, is_own, encoding, tree, marks, portions };
        all.sync()?;
        Ok(all)
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
        let opened = self.sync();
        if opened.is_err() {
            self.portions.pop();
        }
        opened
    }

    /// Brings all of it up to one moment. A body whose node is gone is closed, with all others.
    ///
    /// # Errors
    /// As of [`new`](Self::new).
    pub fn sync(&mut self) -> Result<()> {
        if !self.is_own {
            let whole = self.client.tree()?;
            return self.take_cut_of(&whole);
        }
        let header = Header { encoding: self.encoding, portions: self.portions.clone() };
        let taken = self.client.cut(&header);
        let has_new = self.portions.iter().any(|one| one.known.is_none());
        let (cut, marks) = match taken {
            Err(ClientError::Refused(why))
                if self.portions.len() > 1 && !has_new && why.contains(NO_NODE) =>
            {
                self.portions.truncate(1);
                // Their nodes are in the tree; all is taken anew, without them.
                self.portions[0].known = None;
                (self.tree, self.marks) = Tree::unknown();
                let portions = self.portions.clone();
                self.client.cut(&Header { encoding: self.encoding, portions })?
            }
            taken => taken?,
        };
        self.take(&cut, &marks)
    }

    fn take_cut_of(&mut self, whole: &Tree) -> Result<()> {
        let all: Vec<Portion> =
            self.portions.iter().cloned().map(|one| Portion { known: None, ..one }).collect();
        let wanted = whole.wanted(&all).map_err(|path| {
            ClientError::Refused(format!("{}: there is no node {path}", self.client.address()))
        })?;
        let (cut, marks) = wanted.cut(whole);
        (self.tree, self.marks) = Tree::unknown();
        self.take(&cut, &marks)
    }

    fn take(&mut self, cut: &Snapshot, marks: &Marks) -> Result<()> {
        let bad = |why: AddError| self.client.bad(why);
        self.tree.take_cut(&mut self.marks, cut, marks).map_err(bad)?;
        let known = Some((cut.state_change_no(), cut.modify_change_no()));
        self.portions.iter_mut().for_each(|one| one.known = known);
        Ok(())
    }
}
