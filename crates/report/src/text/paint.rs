//! Colours, by what they mean. Without colour every role is plain text.

use anstyle::{AnsiColor, Style};

/// The role of a piece of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Better, held.
    Good,
    /// Worse, broken, wrong.
    Bad,
    /// Can't tell, disturbed.
    Unsure,
    /// Titles and names.
    Strong,
    /// Secondary text.
    Dim,
}

/// Paints, or doesn't.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Paint {
    colour: bool,
}

impl Paint {
    pub(crate) fn new(colour: bool) -> Paint {
        Paint { colour }
    }

    pub(crate) fn text(self, role: Role, text: &str) -> String {
        if !self.colour {
            return text.to_owned();
        }
        let style = match role {
            Role::Good => AnsiColor::Green.on_default(),
            Role::Bad => AnsiColor::Red.on_default(),
            Role::Unsure => AnsiColor::Yellow.on_default(),
            Role::Strong => Style::new().bold(),
            Role::Dim => Style::new().dimmed(),
        };
        format!("{style}{text}{style:#}")
    }
}
