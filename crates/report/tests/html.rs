//! A run as one HTML file, as Markdown and as JUnit.

mod fixture;

use fixture::Bench;
use ledger::{RequirementOutcome, SamplePoint, SampleWriter, SeriesRow};
use report::{HTML_LIMIT_BYTES, Sights, Summary};

/// A run of so many points, with sensors and a hostile service among its targets.
fn run(points: u32) -> (Summary, Sights) {
    let mut bench = Bench::new(&["loadline", "<script>alert(1)</script>"]);
    for point in 1..=points {
        bench.point(&format!("cache/get  {point} conns · \"a\" & <b>"), point);
        bench.rounds_of(&[200_000 + u64::from(point) * 1000; 5]);
    }
    bench.requirement("wrong = 0", 1.0, RequirementOutcome::Broken);
    let mut writer = SampleWriter::new();
    for name in ["cpu0.user", "cpu0.system"] {
        let row = SeriesRow {
            run_id: bench.run,
            target_id: None,
            sensor: "cores".into(),
            name: name.into(),
            unit: "fraction".into(),
        };
        let series = bench.ledger.add_series(&row).unwrap();
        for tenth in 0..60 {
            let value = f64::from(tenth % 10) / 10.0;
            writer.push(series, SamplePoint { at_ns: tenth.into_ns(), value });
        }
    }
    writer.flush(&mut bench.ledger).unwrap();
    let view = bench.ledger.run_view(bench.run).unwrap();
    let sights = Sights::read(&bench.ledger, &view).unwrap();
    (Summary::of(view).unwrap(), sights)
}

trait Tenths {
    fn into_ns(self) -> u64;
}

impl Tenths for u32 {
    fn into_ns(self) -> u64 {
        u64::from(self) * 100_000_000
    }
}

#[test]
fn a_page_says_the_sentence_first_and_asks_the_network_for_nothing() {
    let (summary, sights) = run(3);
    let page = report::html(&summary, &sights);
    let sentence = page.find("class=\"answer bad\"").expect("a broken requirement is said");
    assert!(sentence < page.find("<table").unwrap(), "the sentence comes before the tables");
    for trace in ["<script", "http://", "https://", "url(", "@import", "src="] {
        assert!(!page.contains(trace), "{trace}");
    }
    assert!(page.contains("&lt;script&gt;"), "what a suite names is shown, not run");
    assert!(page.contains("cpu0: user, system"), "sensors are drawn");
    assert!(page.contains("Rate against clients.connections"), "the sweep is drawn");
    for odd in ["NaN", ">inf", "-inf"] {
        assert!(!page.contains(odd), "{odd}");
    }
}

#[test]
fn a_run_of_many_points_still_fits_and_says_what_has_no_room() {
    let (summary, sights) = run(150);
    let page = report::html(&summary, &sights);
    assert!(page.len() <= HTML_LIMIT_BYTES, "{} bytes", page.len());
    assert!(page.contains("more points have no room in one page"));
}

#[test]
fn markdown_is_a_table_that_no_name_can_break() {
    let (summary, _) = run(2);
    let text = report::markdown(&summary);
    let rows: Vec<&str> = text.lines().filter(|line| line.starts_with('|')).collect();
    assert_eq!(rows.len(), 2 + 4, "{text}");
    let bars = |row: &str| row.replace("\\|", "").matches('|').count();
    assert!(rows.iter().all(|row| bars(row) == 9), "{text}");
    assert!(!text.contains("<script>"), "{text}");
    assert!(text.contains("- `wrong = 0` at") && text.contains(": broken"), "{text}");
}

#[test]
fn junit_counts_what_failed_and_what_cannot_be_told() {
    let (summary, _) = run(1);
    let text = report::junit(&summary, false);
    let cases = text.matches("<testcase ").count();
    let failures = text.matches("<failure ").count();
    let skipped = text.matches("<skipped ").count();
    let counts = format!("tests=\"{cases}\" failures=\"{failures}\" skipped=\"{skipped}\"");
    assert_eq!(text.matches(&counts).count(), 2, "{text}");
    assert!(failures >= 1 && text.contains("it was 1"), "{text}");
    assert!(!text.contains("<script>") && text.contains("&quot;a&quot; &amp; &lt;b&gt;"), "{text}");
}
