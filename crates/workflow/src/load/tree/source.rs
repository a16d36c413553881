//! Which definition a suite's steps are about.

use std::path::Path;
use std::sync::Arc;

use super::super::builds::generate_builds;
use super::super::folder::of_folder;
use super::super::generate::{Counts, generate};

/// A suite behind the definitions of a folder: of the last suite and its last task the steps see
/// whether they were done, and what users' own are like isn't known.
const LAST: &str = "\
suite loadline_last
  task gate
    defstatus complete
    event go
  task last
    trigger gate:go == set
endsuite
";

/// A definition that is still to be made, or one that was read.
#[derive(Clone, Debug)]
pub(super) enum Source {
    Scaled(Counts),
    Builds,
    Folder(Arc<str>),
}

impl Source {
    /// All definitions of a folder.
    ///
    /// # Errors
    /// With the file that is refused.
    pub(super) fn of_folder(folder: &Path) -> Result<Self, String> {
        of_folder(folder).map(|text| Self::Folder((text + LAST).into()))
    }

    /// Its text.
    pub(super) fn text(&self) -> String {
        let mut text = Vec::new();
        // Writing to memory doesn't fail.
        let _ = match self {
            Self::Scaled(counts) => generate(counts, &mut text),
            Self::Builds => generate_builds(&mut text),
            Self::Folder(text) => return text.to_string(),
        };
        String::from_utf8(text).unwrap_or_default()
    }
}
