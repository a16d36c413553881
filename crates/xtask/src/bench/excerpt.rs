//! The part of a run's text that the README shows.

/// The title, the first point as far as its verdict and its first limit, and the conclusion. Cells
/// behind the server's and what follows a limit's first clause are left out.
pub(super) fn excerpt(printed: &str) -> String {
    let mut blocks = printed.split("\n\n");
    let title = blocks.next().unwrap_or_default().lines().next().unwrap_or_default();
    let mut lines = vec![title.to_owned(), String::new()];
    let point: Vec<&str> = blocks.next().unwrap_or_default().lines().collect();
    let limit = point.iter().position(|line| line.starts_with("  limit: "));
    let mut is_left_out = false;
    for line in &point[..limit.map_or(point.len(), |limit| limit + 1)] {
        // What goes on a line that is left out is left out, too.
        let goes_on = is_left_out && line.starts_with("   ");
        is_left_out =
            goes_on || line.contains(" counted per operation ") || line.starts_with("  beside: ");
        let (cell, _) = line.split_once("  generator ").unwrap_or((line, ""));
        let (clause, _) = match line.starts_with("  limit: ") {
            true => cell.split_once("; ").unwrap_or((cell, "")),
            false => (cell, ""),
        };
        if !is_left_out && !clause.trim().is_empty() {
            lines.push(clause.trim_end().to_owned());
        }
    }
    let rest: Vec<&str> = blocks.collect();
    if let Some((conclusion, others)) = rest.split_last() {
        lines.push(if others.is_empty() { String::new() } else { "…".to_owned() });
        lines.extend(conclusion.lines().map(str::to_owned));
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_has_the_first_points_verdict_and_the_conclusion() {
        let printed = "Tour  run 7\n  claim  small\n\nget  depth 16\n  ours    1M/s\n          \
                       server 9 ns  generator 8 ns\n  ours counted per operation get 1 ·\n    \
                       hits 1\n  verdict: better\n  beside: p50 ·\n          p99\n  \
                       limit: ours: one thread; also more\n    try: less\n\n\
                       get  depth 1\n  ours\n\nours is better.\nAll held.\n";
        let short = "Tour  run 7\n\nget  depth 16\n  ours    1M/s\n          server 9 ns\n  \
                     verdict: better\n  limit: ours: one thread\n…\nours is better.\nAll held.\n";
        assert_eq!(excerpt(printed), short);
    }
}
