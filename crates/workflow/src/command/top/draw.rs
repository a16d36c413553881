//! A screen of `top`: the list, why the chosen node waits, and what can be done.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::view::{Row, View};
use crate::model::Displayed;

/// The most lines that say why a node waits.
const WHY: usize = 8;

/// What is around the list.
#[derive(Debug, Default)]
pub(super) struct Around {
    /// The server.
    pub(super) address: String,
    /// What the last line says instead of the keys.
    pub(super) note: String,
    /// Whether a filter is being typed.
    pub(super) is_typing: bool,
    /// Whether the reasons are shown.
    pub(super) has_why: bool,
    /// Whether colours are used.
    pub(super) has_colour: bool,
}

/// ecFlow's colours.
pub(super) const fn colour(state: Displayed) -> Color {
    match state {
        Displayed::Unknown => Color::Rgb(0xd3, 0xd3, 0xd3),
        Displayed::Suspended => Color::Rgb(0xff, 0xa5, 0x00),
        Displayed::Complete => Color::Rgb(0xff, 0xee, 0x33),
        Displayed::Queued => Color::Rgb(0xad, 0xd8, 0xe6),
        Displayed::Submitted => Color::Rgb(0x40, 0xe0, 0xd0),
        Displayed::Active => Color::Rgb(0x4c, 0xdb, 0x4c),
        Displayed::Aborted => Color::Rgb(0xff, 0x5a, 0x50),
    }
}

/// What a node looks like as text.
pub(super) fn text(row: &Row) -> (String, String, String) {
    let mark = match row.is_open {
        None => ' ',
        Some(true) => '▾',
        Some(false) => '▸',
    };
    let before = format!("{:1$}{mark} ", "", 2 * row.depth);
    (before, format!(" {} ", row.state.word()), format!(" {}  {}", row.name, row.says))
}

/// Draws a frame.
pub(super) fn draw(frame: &mut Frame<'_>, view: &mut View, around: &Around) {
    let reasons = if around.has_why { reasons(view) } else { Vec::new() };
    let why = u16::try_from(reasons.len()).unwrap_or(0);
    let parts = [
        Constraint::Length(1),
        Constraint::Fill(1),
        Constraint::Length(why),
        Constraint::Length(1),
    ];
    let [head, list, below, foot] = Layout::vertical(parts).areas(frame.area());
    frame.render_widget(Paragraph::new(title(view, around)), head);
    let (rows, chosen) = view.screen(list.height.into());
    let lines = rows.iter().enumerate().map(|(place, row)| {
        let (before, state, after) = text(row);
        let on = if around.has_colour {
            Style::new().bg(colour(row.state)).fg(Color::Black)
        } else {
            Style::new()
        };
        let line = Line::from(vec![before.into(), Span::styled(state, on), after.into()]);
        if place == chosen {
            line.style(Style::new().add_modifier(Modifier::REVERSED))
        } else {
            line
        }
    });
    frame.render_widget(Paragraph::new(lines.collect::<Vec<_>>()), list);
    let reasons: Vec<Line<'_>> = reasons.into_iter().map(Line::from).collect();
    frame.render_widget(Paragraph::new(reasons), below);
    frame.render_widget(Paragraph::new(last(view, around)), foot);
}

fn reasons(view: &View) -> Vec<String> {
    let Some(id) = view.chosen().and_then(|path| view.tree().find(path)) else {
        return Vec::new();
    };
    let mut why = view.tree().why(id, &mut |_| None);
    if why.is_empty() {
        why.push("nothing holds it".to_owned());
    }
    let lines = why.iter().flat_map(|reason| reason.lines());
    lines.take(WHY).map(|line| format!("  {line}")).collect()
}

fn title(view: &View, around: &Around) -> Line<'static> {
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let server = view.tree().server().state.word();
    let mut spans =
        vec![Span::styled(format!("{} ", around.address), bold), format!("{server} ").into()];
    let counts = view.counts();
    for state in Displayed::ALL {
        let count = counts[state as usize];
        if count > 0 {
            let on = if around.has_colour {
                Style::new().bg(colour(state)).fg(Color::Black)
            } else {
                Style::new()
            };
            spans.push(Span::styled(format!(" {} {count} ", state.word()), on));
        }
    }
    Line::from(spans)
}

fn last(view: &View, around: &Around) -> String {
    if around.is_typing {
        return format!("/{}_   (Enter keeps it, Esc drops it)", view.filter);
    }
    if !around.note.is_empty() {
        return around.note.clone();
    }
    let mut text = String::new();
    if !view.filter.is_empty() {
        text = format!("/{}  ", view.filter);
    }
    if let Some(state) = view.only {
        text = format!("{text}only {}  ", state.word());
    }
    if view.is_cut {
        text = format!("{text}(more than is shown)  ");
    }
    format!(
        "{text}arrows move  / filter  a state  w why  s suspend  u resume  x run  e requeue  q quit"
    )
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;
    use crate::command::top::view::Step;
    use crate::definition::parse;

    #[test]
    fn a_screen_shows_states_in_colour_and_why_the_chosen_node_waits() {
        let text = "suite s\n task a\n label l 'hello'\n task b\n trigger a == complete\n\
                    endsuite\n";
        let tree = parse(text, "x.def").expect("a definition").tree.snapshot();
        let mut view = View::new(tree);
        view.step(Step::End);
        let around = Around {
            address: "localhost:3141".to_owned(),
            has_why: true,
            has_colour: true,
            ..Around::default()
        };
        for (width, height) in [(100, 12), (20, 3), (1, 1), (100, 4)] {
            let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a terminal");
            terminal.draw(|frame| draw(frame, &mut view, &around)).expect("drawn");
            let buffer = terminal.backend().buffer().clone();
            if height == 12 {
                let shown = format!("{buffer:?}");
                for part in ["localhost:3141", " unknown  a  l: hello", "/s has not begun", "quit"]
                {
                    assert!(shown.contains(part), "{part}: {shown}");
                }
                assert!(shown.contains("task /s/b is unknown"), "{shown}");
                assert!(buffer.content.iter().any(|cell| cell.bg == colour(Displayed::Unknown)));
            }
        }
    }
}
