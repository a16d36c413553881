//! Rows with numbers that are given once, and rows with names besides.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

/// Rows by number: the first one is 1, and that of a row that was removed is not given again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Table<T> {
    rows: Vec<Option<T>>,
    count: usize,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self { rows: Vec::new(), count: 0 }
    }
}

impl<T> Table<T> {
    /// The number that the next row has. The limits of the model are far below the last one.
    pub(super) fn next(&self) -> u32 {
        u32::try_from(self.rows.len() + 1).unwrap_or(u32::MAX)
    }

    pub(super) fn insert(&mut self, row: T) -> u32 {
        let id = self.next();
        self.rows.push(Some(row));
        self.count += 1;
        id
    }

    pub(super) fn get(&self, id: u32) -> Option<&T> {
        self.rows.get((id as usize).checked_sub(1)?)?.as_ref()
    }

    pub(super) fn get_mut(&mut self, id: u32) -> Option<&mut T> {
        self.rows.get_mut((id as usize).checked_sub(1)?)?.as_mut()
    }

    pub(super) fn remove(&mut self, id: u32) -> Option<T> {
        let removed = self.rows.get_mut((id as usize).checked_sub(1)?)?.take();
        self.count -= usize::from(removed.is_some());
        removed
    }

    /// How many rows there are.
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// The rows in order of their numbers.
    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = (u32, &T)> + Clone {
        let numbered = self.rows.iter().enumerate();
        numbered.filter_map(|(place, row)| Some((place as u32 + 1, row.as_ref()?)))
    }
}

/// A row with a name.
pub(super) trait HasName {
    fn name(&self) -> &str;
}

/// Rows by number and by name; no two have the same name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Named<T> {
    table: Table<T>,
    ids: HashMap<String, u32>,
}

impl<T> Default for Named<T> {
    fn default() -> Self {
        Self { table: Table::default(), ids: HashMap::new() }
    }
}

impl<T: HasName> Named<T> {
    pub(super) fn next(&self) -> u32 {
        self.table.next()
    }

    pub(super) fn insert(&mut self, row: T) -> u32 {
        let name = row.name().to_owned();
        let id = self.table.insert(row);
        self.ids.insert(name, id);
        id
    }

    pub(super) fn id(&self, name: &str) -> Option<u32> {
        self.ids.get(name).copied()
    }

    pub(super) fn named(&self, name: &str) -> Option<(u32, &T)> {
        let id = self.id(name)?;
        Some((id, self.get(id)?))
    }

    pub(super) fn get(&self, id: u32) -> Option<&T> {
        self.table.get(id)
    }

    pub(super) fn get_mut(&mut self, id: u32) -> Option<&mut T> {
        self.table.get_mut(id)
    }

    pub(super) fn remove(&mut self, id: u32) -> Option<T> {
        let removed = self.table.remove(id)?;
        self.ids.remove(removed.name());
        Some(removed)
    }

    pub(super) fn len(&self) -> usize {
        self.table.len()
    }

    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = (u32, &T)> + Clone {
        self.table.iter()
    }
}
