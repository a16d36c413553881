//! The page in a real browser: nothing is asked of the network, no error is logged, every chart
//! has marks, every link leads somewhere, and it can be read on a desk and on a phone, by day and
//! by night.

mod fixture;

use std::path::{Path, PathBuf};
use std::process::Command;

use fixture::Bench;
use report::{Sights, Summary};
use serde_json::Value;

/// Looks at the page from inside, and leaves what it saw in the document's title.
const PROBE: &str = r##"<script>
function look() {
  const seen = (what) => [...document.querySelectorAll(what)];
  for (const one of seen("details")) one.open = true;
  const colour = (text) => text.match(/[\d.]+/g).slice(0, 3).map(Number);
  const light = (rgb) => {
    const part = (c) => c <= .04045 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4;
    const [r, g, b] = rgb.map((c) => part(c / 255));
    return .2126 * r + .7152 * g + .0722 * b;
  };
  const page = light(colour(getComputedStyle(document.body).backgroundColor));
  const contrast = (one) => {
    const style = getComputedStyle(one);
    const ink = light(colour(one.closest("svg") ? style.fill : style.color));
    return (Math.max(page, ink) + .05) / (Math.min(page, ink) + .05);
  };
  const size = (one) => parseFloat(getComputedStyle(one).fontSize);
  const bare = (chart) => !chart.querySelector("path.line, path.mark");
  const astray = (link) => !document.querySelector(link.getAttribute("href"));
  const words = seen("p, td, th, dd, dt, a, h1, h2, h3, svg text, summary, li");
  document.title = JSON.stringify({
    wide: document.documentElement.scrollWidth - window.innerWidth,
    width: window.innerWidth,
    contrast: Math.min(...words.map(contrast)),
    tallest: Math.min(...seen("svg text").map((one) => one.getBoundingClientRect().height)),
    smallest: Math.min(...seen("p, td, th, dd").map(size)),
    charts: seen("figure.chart").length,
    empty: seen("figure.chart").filter(bare).length,
    links: seen("a").length,
    astray: seen("a").filter(astray).length,
    fetched: performance.getEntriesByType("resource").length,
  });
}
</script>"##;

#[test]
fn a_page_can_be_read_in_a_browser_on_a_desk_and_on_a_phone_by_day_and_by_night() {
    let Some(browser) = browser() else { return };
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page.html");
    std::fs::write(&page, format!("{}{PROBE}", page_of_a_run())).unwrap();
    for width in [1280, 500, 400] {
        for dark in [false, true] {
            let (seen, log) = looked_at(&browser, &page, folder.path(), width, dark);
            let number = |name: &str| seen[name].as_f64().unwrap_or_else(|| panic!("{seen}"));
            assert!(number("wide") <= 0.0, "wider than the window: {seen}");
            assert!(number("contrast") >= 4.5, "WCAG 2.1, 1.4.3: {seen}");
            assert!(number("smallest") >= 12.0 && number("tallest") >= 11.0, "too small: {seen}");
            assert!(number("charts") >= 8.0 && number("empty") == 0.0, "charts: {seen}");
            assert!(number("links") >= 4.0 && number("astray") == 0.0, "links: {seen}");
            assert_eq!(number("fetched"), 0.0, "something was asked of the network: {seen}");
            assert!(!log.contains("CONSOLE"), "{log}");
        }
    }
}

/// The browser; a missing one is a named skip on a user's machine, and a failure in a CI.
fn browser() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join("chromium"));
    let found = found.into_iter().find(|path| path.exists());
    if found.is_none() {
        let is_ci = std::env::var("CI").is_ok_and(|value| value == "true");
        assert!(!is_ci, "chromium is missing: `cargo xtask peers`");
        eprintln!("skipped: chromium is not installed (`cargo xtask peers` brings it)");
    }
    found
}

/// What the probe saw at this width, and what the browser logged.
fn looked_at(
    browser: &Path,
    page: &Path,
    folder: &Path,
    width: u32,
    dark: bool,
) -> (Value, String) {
    // A window can't be narrower than 500 pixels without a screen; a frame in it can.
    let framed = folder.join("framed.html");
    let frame = format!(
        "<!doctype html><iframe src=\"{}\" style=\"width:{width}px;height:2000px;border:0\">\
         </iframe><script>addEventListener(\"load\", () => {{ const inner = \
         document.querySelector(\"iframe\").contentDocument; inner.defaultView.look(); \
         document.title = inner.title; }});</script>",
        page.file_name().unwrap().to_string_lossy()
    );
    std::fs::write(&framed, frame).unwrap();
    let mut command = Command::new(browser);
    command.args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"]);
    command.args(["--allow-file-access-from-files", "--enable-logging=stderr", "--dump-dom"]);
    command.arg(format!("--user-data-dir={}", folder.join("profile").display()));
    command.arg("--window-size=1400,2000");
    if dark {
        command.arg("--blink-settings=preferredColorScheme=0");
    }
    let out = command.arg(format!("file://{}", framed.display())).output().unwrap();
    let (dom, log) = (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    let title = dom.split("<title>").nth(1).and_then(|rest| rest.split("</title>").next());
    let title = title.unwrap_or_else(|| panic!("the browser gave no title: {dom}\n{log}"));
    (serde_json::from_str(title).unwrap_or_else(|_| panic!("{title}\n{log}")), log.into_owned())
}

fn page_of_a_run() -> String {
    let mut bench = Bench::new(&["loadline", "memcached"]);
    for connections in [1, 4, 16, 64] {
        bench.point(&format!("cache/get  {connections} conns · depth 16 · closed"), connections);
        bench.rounds_of(&[200_000, 210_000, 190_000, 205_000, 201_000]);
    }
    let view = bench.ledger.run_view(bench.run).unwrap();
    let sights = Sights::read(&bench.ledger, &view).unwrap();
    report::html(&Summary::of(view).unwrap(), &sights)
}
