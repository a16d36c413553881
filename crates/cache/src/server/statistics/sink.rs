//! Where the groups of statistics are put: one name and value after the other.

use std::fmt::Display;

/// Takes one statistic.
pub(super) type Put<'a> = dyn FnMut(&str, &dyn Display) + 'a;
