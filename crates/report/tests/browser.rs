//! Every kind of page in a real browser: nothing is asked of the network, no error is logged, every
//! chart has marks, every link leads somewhere, and it can be read on a desk and on a phone, by day
//! and by night.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::fixture::pages::{Page, pages};
use serde_json::Value;

/// Looks at a page from inside, and leaves what it saw in the document's title.
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
  const behind = (one) => {
    for (; one; one = one.parentElement) {
      const found = getComputedStyle(one).backgroundColor;
      if (!found.startsWith("rgba(0, 0, 0, 0")) return light(colour(found));
    }
    return 1;
  };
  const contrast = (one) => {
    const style = getComputedStyle(one);
    const [page, ink] = [behind(one), light(colour(one.closest("svg") ? style.fill : style.color))];
    return (Math.max(page, ink) + .05) / (Math.min(page, ink) + .05);
  };
  const size = (one) => parseFloat(getComputedStyle(one).fontSize);
  const bare = (chart) => !chart.querySelector("path.line, path.mark, path.bars");
  const astray = (link) => {
    const way = link.getAttribute("href");
    return way[0] === "#" ? !document.querySelector(way) : way[0] !== "/";
  };
  const words = seen("p, td, th, dd, dt, a:not(svg a), h1, h2, h3, svg text, summary, li, pre, " +
    ".word, button, label, strong, select, input, caption, figcaption");
  const least = (all) => all.length ? Math.min(...all) : 99;
  document.title = JSON.stringify({
    wide: document.documentElement.scrollWidth - window.innerWidth,
    width: window.innerWidth,
    contrast: least(words.map(contrast)),
    tallest: least(seen("svg text").map((one) => one.getBoundingClientRect().height)),
    smallest: least(seen("p, td, th, dd").map(size)),
    charts: seen("figure.chart").length,
    empty: seen("figure.chart").filter(bare).length,
    links: seen("a").length,
    astray: seen("a").filter(astray).map((link) => link.getAttribute("href")),
    verdicts: seen("td.verdict").length,
    unseen: seen("td.verdict, th.verdict").filter((one) => {
      const box = one.getBoundingClientRect();
      return box.width > 0 && (box.left < 0 || box.right > window.innerWidth + 1);
    }).length,
    happened: seen("figure.chart path.happened").length,
    unnamed: seen("figure.chart").filter((chart) => {
      const number = (what) => chart.querySelectorAll(what + " path.happened").length;
      return number("svg[role]") !== number(".key");
    }).length,
    fetched: performance.getEntriesByType("resource").length,
  });
}
</script>"##;

/// Widths of a desk's window and of a phone's.
const WIDTHS: [u32; 3] = [1280, 500, 400];

#[test]
fn every_page_can_be_read_in_a_browser_on_a_desk_and_on_a_phone_by_day_and_by_night() {
    let Some(browser) = browser() else { return };
    let folder = tempfile::tempdir().unwrap();
    let pages = pages();
    for page in &pages {
        // A page that loads itself again would do so under the eyes of the probe.
        let still = page.html.replace("http-equiv=\"refresh\"", "name=\"refresh\"");
        let file = folder.path().join(format!("{}.html", page.name));
        std::fs::write(file, format!("{still}{PROBE}")).unwrap();
    }
    for dark in [false, true] {
        let (seen, log) = looked_at(&browser, &pages, folder.path(), dark);
        assert!(!log.contains("CONSOLE"), "{log}");
        assert_eq!(seen.len(), pages.len() * WIDTHS.len());
        for (at, seen) in seen.iter().enumerate() {
            let (page, width) = (&pages[at / WIDTHS.len()], WIDTHS[at % WIDTHS.len()]);
            let place = format!("{} at {width}, dark: {dark}: {seen}", page.name);
            let number = |name: &str| seen[name].as_f64().unwrap_or_else(|| panic!("{place}"));
            assert_eq!(seen["width"], width, "{place}");
            assert!(number("wide") <= 0.0, "wider than the window: {place}");
            assert!(number("contrast") >= 4.5, "WCAG 2.1, 1.4.3: {place}");
            assert!(number("smallest") >= 12.0 && number("tallest") >= 11.0, "small: {place}");
            assert!(number("charts") >= page.charts as f64, "charts: {place}");
            assert_eq!(number("empty"), 0.0, "empty charts: {place}");
            let is_compared = ["one-point", "two-keys"].contains(&page.name);
            assert!(!is_compared || number("verdicts") > 0.0, "verdicts: {place}");
            assert_eq!(number("unseen"), 0.0, "a verdict out of sight: {place}");
            let wants_events = ["file", "run"].contains(&page.name);
            assert_eq!(number("happened") > 0.0, wants_events, "events are marked: {place}");
            assert_eq!(number("unnamed"), 0.0, "a mark that no legend names: {place}");
            assert!(number("links") >= page.links as f64, "links: {place}");
            assert_eq!(seen["astray"], serde_json::json!([]), "links: {place}");
            assert_eq!(number("fetched"), 0.0, "something was asked of the network: {place}");
        }
    }
}

/// The browser; without one the test is skipped.
fn browser() -> Option<PathBuf> {
    testing::program("chromium")
}

/// What the probe saw on each page at each width, and what the browser logged.
fn looked_at(browser: &Path, pages: &[Page], folder: &Path, dark: bool) -> (Vec<Value>, String) {
    // A window can't be narrower than 500 pixels without a screen; a frame in it can.
    let frame = |name: &str, width: u32| {
        format!(
            "<iframe src=\"{name}.html\" style=\"width:{width}px;height:2000px;border:0\"></iframe>"
        )
    };
    let frames = pages.iter().flat_map(|page| WIDTHS.map(|width| frame(page.name, width)));
    let frames: String = frames.collect();
    let framed = folder.join("framed.html");
    let look = "addEventListener(\"load\", () => { document.title = JSON.stringify([...\
        document.querySelectorAll(\"iframe\")].map((one) => { one.contentWindow.look(); \
        return JSON.parse(one.contentDocument.title); })); });";
    std::fs::write(&framed, format!("<!doctype html>{frames}<script>{look}</script>")).unwrap();
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
    let title = title.replace("&amp;", "&").replace("&lt;", "<").replace("&gt;", ">");
    (serde_json::from_str(&title).unwrap_or_else(|_| panic!("{title}\n{log}")), log.into_owned())
}
