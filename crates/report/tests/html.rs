//! A run as one HTML file, as Markdown and as JUnit.

use std::collections::BTreeSet;

use crate::fixture::Bench;
use crate::fixture::pages::{pages, several_runs};
use findings::{ChartData, Summary};
use ledger::{FailedAt, RequirementOutcome, SamplePoint, SampleWriter, SeriesRow, Validity};
use report::HTML_LIMIT_BYTES;

/// A run of `points` points, with sensors and a hostile service among its targets.
fn run(points: u32) -> (Summary, ChartData) {
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
    let data = ChartData::read(&bench.ledger, &view, ..).unwrap();
    (Summary::of(view).unwrap(), data)
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
fn what_the_host_carried_is_drawn_against_swept_values() {
    let mut bench = Bench::new(&["loadline"]);
    for load in [1_u32, 8] {
        bench.point("cache/get", load);
        bench.round();
        let trial = bench.trial(0, 100_000, 33_000, |_| ());
        let more = f64::from(load);
        for (name, value) in [
            ("measured_ns", 2e9),
            ("server_cpu_ns", 2e8 * more),
            ("generator_cpu_ns", 1e8),
            ("run_cores", 2.0),
            ("foreign", 0.1),
            ("disk_read_bytes", 0.0),
            ("disk_written_bytes", 4e6 * more),
            ("loopback_bytes", 6e6 * more),
            ("network_bytes", 2e6 * more),
        ] {
            bench.usage(trial, name, value);
        }
    }
    let summary = bench.finish();
    let host = findings::HostLoad::of(&summary, 0, 0);
    assert!((host.cores.unwrap() - 0.35).abs() < 1e-9, "{host:?}");
    assert_eq!((host.disk_bytes_per_s, host.network_bytes_per_s), (Some(2e6), Some(4e6)));
    let view = bench.ledger.run_view(bench.run).unwrap();
    let page = report::html(&summary, &ChartData::read(&bench.ledger, &view, ..).unwrap());
    for title in [
        "Busy cores, of those of the run",
        "Bytes of disks per second",
        "Bytes of interfaces per second",
    ] {
        assert!(page.contains(title), "{title}");
    }
}

#[test]
fn a_batch_is_drawn_against_swept_values_as_runs_with_the_figures_that_they_told() {
    let mut bench = Bench::new(&["builder"]);
    for size in [10, 1_000] {
        bench.point("batch", size);
        bench.round();
        let trial = bench.trial(0, 1, 1_000_000_000, |_| ());
        let names = ["wall_ns", "user_ns", "system_ns", "peak_bytes", "updates_per_s"];
        for (ordinal, name) in (0..).zip(names) {
            bench.value(trial, ordinal, name, f64::from(size));
        }
    }
    let summary = bench.finish();
    let view = bench.ledger.run_view(bench.run).unwrap();
    let page = report::html(&summary, &ChartData::read(&bench.ledger, &view, ..).unwrap());
    for drawn in ["Runs per second: ", "Median time of a run: ", "Mean of updates_per_s: "] {
        assert!(page.contains(drawn), "{drawn}: {page}");
    }
    assert!(!page.contains("Median latency: ") && !page.contains("Mean of wall"), "{page}");
}

#[test]
fn the_sentence_of_a_first_target_that_is_worse_is_not_green() {
    for (rate_per_s, class) in [(50_000, "bad"), (200_000, "good")] {
        let mut bench = Bench::new(&["loadline", "memcached"]);
        bench.point("p", 1);
        bench.rounds_of(&[rate_per_s; 5]);
        let summary = bench.finish();
        let view = bench.ledger.run_view(bench.run).unwrap();
        let page = report::html(&summary, &ChartData::read(&bench.ledger, &view, ..).unwrap());
        assert!(page.contains(&format!("class=\"answer {class}\"")), "{rate_per_s}");
    }
}

#[test]
fn a_page_says_the_sentence_first_and_asks_the_network_for_nothing() {
    let (summary, data) = run(3);
    let page = report::html(&summary, &data);
    let sentence = page.find("class=\"answer bad\"").expect("a broken requirement is reported");
    assert!(sentence < page.find("<table").unwrap(), "the sentence comes before the tables");
    for trace in ["<script", "http://", "https://", "url(", "@import", "src="] {
        assert!(!page.contains(trace), "{trace}");
    }
    assert!(page.contains("&lt;script&gt;"), "what a suite names is shown, not run");
    assert!(page.contains("CPU time of cpu0"), "sensors are drawn");
    assert!(page.contains("Rate: rate over clients.connections"), "the sweep is drawn");
    for odd in ["NaN", ">inf", "-inf"] {
        assert!(!page.contains(odd), "{odd}");
    }
}

#[test]
fn what_a_requirement_allows_is_drawn_over_the_swept_values() {
    let page = |expression: &str, bound: fn(u32) -> f64| {
        let mut bench = Bench::new(&["loadline"]);
        for connections in [1, 10] {
            bench.point(&format!("cache/get  {connections} conns"), connections);
            for _ in 0..5 {
                bench.round();
                bench.trial(0, 1_000, 33_000, |_| ());
            }
            let limit = (bound(connections), Some(0.99));
            bench.required(expression, 33_000.0, RequirementOutcome::Held, limit);
        }
        let view = bench.ledger.run_view(bench.run).unwrap();
        let data = ChartData::read(&bench.ledger, &view, ..).unwrap();
        report::html(&Summary::of(view).unwrap(), &data)
    };
    let drawn = page("latency.mean <= 5s * clients.connections", |n| 5e9 * f64::from(n));
    assert!(drawn.contains("required: latency.mean &lt;= 5s * clients.connections"), "{drawn}");
    assert_eq!(drawn.matches("path class=\"bound\"").count(), 2, "a line and its key");
    assert!(drawn.contains("mean latency over clients.connections"));
    let none = page("wrong = 0", |_| 0.0);
    assert!(!none.contains("class=\"bound\""));
}

#[test]
fn a_run_of_many_points_still_fits_and_says_what_has_no_room() {
    let (summary, data) = run(70);
    let page = report::html(&summary, &data);
    assert!(page.len() <= HTML_LIMIT_BYTES, "{} bytes", page.len());
    assert!(page.contains("more points have no room in one page"));
}

type Blow = fn(&mut Summary, &str);

/// Everything in a summary that a suite, a host, a service or a user chose the length of.
const BLOWN: &[(&str, Blow)] = &[
    ("title", |one, text| one.suite.title = text.to_owned()),
    ("suite", |one, text| one.suite.text = text.repeat(50)),
    ("path", |one, text| one.suite.path = text.to_owned()),
    ("claims", |one, text| one.suite.claims = vec![text.to_owned(); 500]),
    ("compromises", |one, text| one.suite.compromises = vec![text.to_owned(); 500]),
    ("note", |one, text| one.run.note = Some(text.to_owned())),
    ("command", |one, text| one.run.command = text.to_owned()),
    ("version", |one, text| one.run.version = text.to_owned()),
    ("start", |one, text| one.run.started_at = text.to_owned()),
    ("settings", |one, text| one.run.settings = vec![(text.to_owned(), text.to_owned()); 50]),
    ("facts", |one, text| {
        let facts = (0..200).map(|at| (format!("{at}{text}"), text.into()));
        one.fingerprint.json = facts.collect();
    }),
    ("targets", |one, text| {
        one.targets.iter_mut().for_each(|target| {
            (target.name, target.description) = (text.to_owned(), text.to_owned());
            target.skipped = Some(text.to_owned());
        });
    }),
    ("points", |one, text| {
        one.points.iter_mut().for_each(|point| point.row.label = text.to_owned());
    }),
    ("reasons", |one, text| {
        one.trials.iter_mut().for_each(|trial| {
            trial.row.validity = ledger::Validity::Invalid;
            trial.row.reason = Some(text.to_owned());
        });
    }),
    ("requirements", |one, text| {
        one.requirements.iter_mut().for_each(|row| row.row.expression = text.to_owned());
    }),
];

#[test]
fn no_page_is_ever_longer_than_its_limit_whatever_has_which_length() {
    let (plain, data) = run(8);
    let mut all = plain.clone();
    let fits = |summary: &Summary, what: &str| {
        let pages = [
            report::html(summary, &data),
            report::run_served(summary, &data),
            report::trials(summary, &data, 0),
        ];
        for (at, page) in pages.iter().enumerate() {
            let bytes = page.len();
            assert!(bytes <= HTML_LIMIT_BYTES, "page {at}, long {what}: {bytes} bytes");
            assert!(page.ends_with("</html>"), "page {at}, long {what}");
        }
        pages
    };
    for (what, blow) in BLOWN {
        let mut one = plain.clone();
        blow(&mut one, &"<\"&é>".repeat(1_200));
        fits(&one, what);
        blow(&mut all, &"<\"&é>".repeat(1_200));
    }
    let pages = fits(&all, "everything");
    for page in &pages[..2] {
        assert!(page.contains("no room"), "what was left out is reported");
        assert!(page.contains("loadline report 1"), "with the command that shows it");
    }
}

#[test]
fn a_list_of_runs_and_a_live_run_keep_to_the_limit_too() {
    let mut bench = Bench::new(&["a"]);
    for point in 1..=300 {
        bench.point("p", point);
    }
    bench.round();
    let mut so_far = bench.ledger.so_far(bench.run).unwrap();
    let long = "<\"&é>".repeat(2_000);
    so_far.title.clone_from(&long);
    so_far.points.iter_mut().for_each(|(_, point)| point.label.clone_from(&long));
    so_far.targets.iter_mut().for_each(|(_, target)| target.name.clone_from(&long));
    let live = report::live(&findings::Progress::of(so_far), None);
    let mut lines = vec![bench.ledger.runs().unwrap().remove(0); 2_000];
    for line in &mut lines {
        line.title.clone_from(&long);
        (line.note, line.started_at) = (Some(long.clone()), long.clone());
        let outcome = "fine".to_owned();
        line.conclusion = Some(ledger::Conclusion { outcome, sentences: long.clone() });
    }
    let listed = report::Listed { kind: None, skipped: 0 };
    for page in [live, report::runs(&long, &lines, listed), report::suites(&lines)] {
        assert!(page.len() <= HTML_LIMIT_BYTES, "{} bytes", page.len());
    }
}

#[test]
fn what_a_page_does_not_draw_is_not_decoded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.sqlite");
    let mut bench = Bench::on_disk(&path, &["loadline", "memcached"]);
    for point in 0..80 {
        bench.point(&format!("{point} conns"), point);
        bench.round();
        for target in [0, 1] {
            let trial = bench.trial(target, 100_000, 33_000, |_| ());
            bench.lag(trial, "readers", "get", 12_000);
        }
    }
    bench.finish();
    // A damaged histogram is an error to whoever decodes it. The rows' columns say what one trial
    // showed, and groups that are alone; the first points are drawn.
    let damage = "UPDATE histogram SET data = x'00' WHERE clients <> '' OR trial_id IN (
        SELECT trial.id FROM trial JOIN round ON round.id = trial.round_id
        JOIN point ON point.id = round.point_id WHERE point.ordinal >= 60)";
    let changed = rusqlite::Connection::open(&path).unwrap().execute(damage, []).unwrap();
    assert!(changed > 300, "{changed}");
    let view = bench.ledger.run_view(bench.run).unwrap();
    let data = ChartData::read(&bench.ledger, &view, ..report::MAX_POINTS_IN_FULL).unwrap();
    let summary = Summary::of(view).unwrap();
    assert!(report::html(&summary, &data).contains("80 conns") || summary.points.len() == 80);
    let json = report::json(&summary);
    assert_eq!(json["trials"][159]["latency_ns"]["p95"], 33_023);
    assert_eq!(json["trials"][159]["groups"][0]["lag_ns"]["p95"], 12_007);
    assert_eq!(report::text(&summary, false).matches("p99 33.0 µs").count(), 160);
}

#[test]
fn ladders_searches_floors_and_streams_are_drawn() {
    let mut bench = Bench::new(&["plain", "batched"]);
    bench.rungs(&["as it was", "one write a batch"]);
    bench.point("p", 1);
    for round in 0..5 {
        bench.round();
        bench.trial(0, 100_000 + round, 33_000, |_| ());
        let trial = bench.trial(1, 200_000 + round, 33_000, |_| ());
        bench.streams(trial, "watchers", &[40, 60], 8);
        bench.value(trial, 0, "samples", 1_000.0);
        bench.value(trial, 1, "evaluations_per_sample", 64.0);
        bench.value(trial, 2, "allocated_bytes_per_op", 32.0);
        bench.value(trial, 3, "allocations_per_op", 2.0);
    }
    let floor = ledger::FloorRow { run_id: bench.run, name: "system_call".into(), value_ns: 43.0 };
    bench.ledger.add_floor(&floor).unwrap();
    let view = bench.ledger.run_view(bench.run).unwrap();
    let data = ChartData::read(&bench.ledger, &view, ..).unwrap();
    let page = report::html(&Summary::of(view).unwrap(), &data);
    let has = |part: &str| assert!(page.contains(part), "{part}\n{page}");
    has("<h2>Ladder</h2>");
    has("one write a batch");
    has("undecided; the figures say: keep");
    has("floor: system call");
    has("5,000 samples × 64 evaluations · 32 B in 2 allocations each");
    has("<th scope=\"col\" class=\"n\">stale p99</th>");
}

#[test]
fn events_are_marked_on_the_clock_of_the_run_named_and_listed() {
    let mut bench = Bench::new(&["loadline", "memcached"]);
    bench.point("p", 1);
    bench.round();
    let trials = [0, 1].map(|target| bench.trial(target, 100_000, 33_000, |_| ()));
    for trial in trials {
        bench.slices(trial, &[(100_000, true); 5]);
    }
    bench.event(trials[0], "backup & <b>", (10, 14));
    bench.event(trials[0], "backup & <b>", (30, 33));
    bench.event(trials[1], "fails", (20, 20));
    let (run_id, target_id) = (bench.run, Some(bench.targets[0]));
    let (sensor, name, unit) = ("processes".into(), "cpu".into(), "cores".into());
    let series = SeriesRow { run_id, target_id, sensor, name, unit };
    let series = bench.ledger.add_series(&series).unwrap();
    let mut writer = SampleWriter::new();
    (1..40_u32).for_each(|at| {
        writer.push(series, SamplePoint { at_ns: at.into_ns(), value: f64::from(at) });
    });
    writer.flush(&mut bench.ledger).unwrap();
    let view = bench.ledger.run_view(bench.run).unwrap();
    let data = ChartData::read(&bench.ledger, &view, ..).unwrap();
    let summary = Summary::of(view).unwrap();
    let page = report::html(&summary, &data);
    // Rates are of both targets, the CPU time is of the first.
    let marks = |title: &str| page.matches(&format!("<title>{title}</title>")).count();
    assert_eq!((marks("backup &amp; &lt;b&gt;: 2"), marks("fails: 1")), (2, 1), "{page}");
    let legends = page.matches("</path></svg>backup &amp; &lt;b&gt;</span>").count();
    assert_eq!(legends, 2, "every chart that has a mark names it");
    assert!(page.contains("2 events: backup &amp; &lt;b&gt;\""), "and says so to who can't see it");
    let table = page.split("<h3>Events</h3>").nth(1).expect("a table of them");
    assert!(
        table.contains("<td class=\"wrap\">backup &amp; &lt;b&gt;.sh &lt;now&gt;</td>"),
        "{table}"
    );
    assert!(table.contains("1 failed</span>: exit status: 3"), "{table}");
    let text = report::text(&summary, false);
    let event = "loadline event backup & <b> (backup & <b>.sh <now>): 2 times in 1 trial, ";
    assert!(text.contains(&format!("{event}350 ms each")), "{text}");
    assert!(text.contains("once; 1 failed: exit status: 3"), "{text}");
}

#[test]
fn however_often_an_event_happens_a_chart_has_room_for_it() {
    let mut bench = Bench::new(&["a"]);
    bench.point("p", 1);
    bench.round();
    let trial_id = bench.trial(0, 100_000, 33_000, |_| ());
    bench.slices(trial_id, &[(100_000, true); 5]);
    let mut view = bench.ledger.run_view(bench.run).unwrap();
    let event = |ordinal: u32| ledger::EventRow {
        trial_id,
        ordinal,
        at_ns: u64::from(ordinal) * 100_000,
        took_ns: 50_000,
        name: format!("{} {}", ordinal % 20, "<\"&é>".repeat(100)),
        action: "<\"&é>".repeat(100),
        exit_status: None,
        failure: Some("<\"&é>".repeat(100)),
    };
    view.events = (0..5_000).map(event).collect();
    let data = ChartData::read(&bench.ledger, &view, ..).unwrap();
    let page = report::html(&Summary::of(view).unwrap(), &data);
    assert!(page.len() <= HTML_LIMIT_BYTES, "{} bytes", page.len());
    assert!(page.contains("Only the first 8 are marked"), "{page}");
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
    let mut bench = Bench::new(&["dies"]);
    bench.point("p", 1);
    bench.round();
    bench.trial(0, 1_000, 1_000, |row| {
        (row.validity, row.failed_at) = (Validity::Invalid, Some(FailedAt::Measure));
        row.reason = Some("dies died: status 7".to_owned());
    });
    let text = report::junit(&bench.finish(), false);
    assert!(text.contains("<failure message=\"invalid: dies died: status 7"), "{text}");
}

#[test]
fn latencies_are_drawn_whatever_they_are_worth_with_their_grade() {
    let page = pages().into_iter().find(|page| page.name == "disturbed").unwrap().html;
    assert!(page.contains("Latency by percentile"), "{page}");
    let (_, rows) = page.split_once("<caption>Latencies</caption>").expect("a table of them");
    let rows = rows.split("</table>").next().unwrap();
    assert!(rows.contains("disturbed") && rows.contains(" µs"), "{rows}");
}

/// Whatever is swept, colour is the target, and the value of the second key a dash and a mark.
#[test]
fn a_target_has_one_colour_over_a_sweep_of_two_keys() {
    let page = pages().into_iter().find(|page| page.name == "two-keys").unwrap().html;
    let (mut colours, mut variants) = (BTreeSet::new(), BTreeSet::new());
    for line in page.split("<g class=\"s").skip(1) {
        let (look, rest) = line.split_once('"').unwrap();
        let Some((colour, variant)) = look.split_once(" d") else { continue };
        // Lines without a mark have no title.
        let line = rest.split("</g>").next().unwrap();
        let Some((_, title)) = line.split_once("<title>") else { continue };
        let target = title.split([',', ':']).next().unwrap();
        colours.insert((target.to_owned(), colour.to_owned()));
        if title.starts_with(&format!("{target},")) {
            variants.insert(variant.to_owned());
        }
    }
    let targets: Vec<&str> = colours.iter().map(|(target, _)| &**target).collect();
    assert_eq!(targets, ["loadline", "memcached"], "{colours:?}");
    assert_ne!(colours.first().unwrap().1, colours.last().unwrap().1);
    assert_eq!(variants.len(), 3, "{variants:?}");
}

#[test]
fn each_run_in_a_list_has_its_sentence_in_the_colour_of_its_verdict() {
    let ledger = several_runs(ledger::Ledger::in_memory().unwrap());
    let runs = ledger.runs().unwrap();
    let page = report::runs("a.sqlite", &runs, report::Listed::default());
    let wanted = [
        ("good", "loadline has 2.00 times the rate of memcached"),
        ("bad", "loadline has a 40 % lower rate than memcached"),
        ("good", "loadline has the same rate as memcached"),
        ("bad", "loadline had a p99 of 33.0 µs. The requirement is broken"),
        ("unsure", "Nothing was measured of loadline: "),
        ("unsure", "loadline reached 100k/s (disturbed; "),
        ("bad", "Nothing was concluded from 0 trials."),
    ];
    assert_eq!(runs.len(), wanted.len());
    for (run, (class, words)) in runs.iter().zip(wanted) {
        let shown = format!("<span class=\"word {class}\">{words}");
        assert!(page.contains(&shown), "{shown}: {page}");
        let sentence = report::run_sentence(run, false);
        assert!(sentence.starts_with(words), "{sentence}");
    }
    let red = report::run_sentence(&runs[1], true);
    assert!(red.starts_with("\u{1b}[31m"), "{red:?}");
}
