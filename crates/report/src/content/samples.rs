//! The samples of operations in a process, a row for each target: on a page they are drawn, and a
//! terminal has a column of block characters for each part of the time.

use findings::{SampleSpread, Summary};

use super::target::name;
use crate::document::{Block, Sheet, TEXT, words};
use crate::number::duration;

/// Heights of a column.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The samples of each target that has some.
pub(crate) fn samples(summary: &Summary, index: usize) -> Block {
    let targets = summary.points[index].targets.iter();
    let seen = targets.filter_map(|one| Some((one.target, one.samples.as_ref()?)));
    let table = Sheet::of("Samples", seen)
        .with(words("target"), |(target, _)| name(summary, *target))
        .with(words("fastest 99 %"), |(_, all)| bars(&all.fastest))
        .with(words("from the least to the 99th percentile"), |(_, all)| {
            let SampleSpread { min_ns, p99_ns, .. } = all;
            format!("{} to p99 {}", duration(*min_ns as f64), duration(*p99_ns as f64))
        })
        .with(words("mean ± σ"), |(_, all)| {
            format!("mean {} ± {}", duration(all.mean_ns), duration(all.sigma_ns))
        })
        .without_head();
    Block::from(table).on(TEXT)
}

/// A row of columns as high as these counts; nothing where there is none.
fn bars(counts: &[u64]) -> String {
    let most = counts.iter().copied().max().unwrap_or(0).max(1) as f64;
    let bar = |count: &u64| match count {
        0 => ' ',
        count => {
            let height = (*count as f64 / most * BARS.len() as f64).ceil() as usize;
            BARS.get(height.saturating_sub(1)).copied().unwrap_or('█')
        }
    };
    counts.iter().map(bar).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_high_as_their_counts() {
        assert_eq!(bars(&[8, 0, 1, 4]), "█ ▁▄");
        assert_eq!(bars(&[800, 1]), "█▁");
        assert_eq!(bars(&[]), "");
    }
}
