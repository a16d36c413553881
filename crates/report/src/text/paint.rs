//! Colours, by what they mean. Without colour every role is plain text.

use anstyle::{AnsiColor, Style};

use crate::document::Role;

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
        let style = match role {
            Role::Plain => return text.to_owned(),
            _ if !self.colour || text.is_empty() => return text.to_owned(),
            Role::Good => AnsiColor::Green.on_default(),
            Role::Bad => AnsiColor::Red.on_default(),
            Role::Unsure => AnsiColor::Yellow.on_default(),
            Role::Strong => Style::new().bold(),
            Role::Dim => Style::new().dimmed(),
        };
        format!("{style}{text}{style:#}")
    }
}
