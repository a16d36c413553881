//! The pages for people: what they say, what they leave out, and how they look in a real browser,
//! where nothing is asked of the network and no script runs.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use conditions::server::ConditionsServer;
use serde_json::{Value as Json, json};

use crate::served::{change, folder, get, insert, serve};

/// Names as clients may give them.
const NASTY: &str = "<script>alert(1)<b>\" onload='x' & é";

/// A server with a bit of everything.
fn filled(data: &Path) -> ConditionsServer {
    let server = serve(data, None);
    let at = server.addresses()[0];
    change(at, "/sets", &json!({ "path": "/det", "description": "What the detector measures" }));
    let columns = json!([
        { "name": "value", "kind": "float" }, { "name": "good", "kind": "bool" },
        { "name": NASTY, "kind": "string" }, { "name": "raw", "kind": "blob" },
    ]);
    let about = format!("Temperatures of all modules, in °C {NASTY}");
    change(
        at,
        "/folders",
        &json!({ "path": "/det/temperature", "description": about, "versioning": "multi",
            "columns": columns }),
    );
    change(
        at,
        "/channels",
        &json!({ "folder": "/det/temperature", "channel": 3, "name": format!("pump {NASTY}") }),
    );
    let begin = 1_700_000_000_000_000_000_u64;
    let object = |channel: u32, n: u64| {
        let since = begin + n * 60_000_000_000 * u64::from(channel);
        let until = since + 60_000_000_000 * u64::from(channel);
        let until = if n == 29 && channel.is_multiple_of(3) { Json::Null } else { until.into() };
        let record =
            json!([20.5 + n as f64 / 8.0, n.is_multiple_of(2), NASTY, "AAECAwQFBgcICQoLDA0O"]);
        json!({ "channel": channel, "since": since, "until": until, "records": [record] })
    };
    let objects: Vec<Json> = (1..9).flat_map(|c| (0..30).map(move |n| object(c, n))).collect();
    let batch =
        |folder: &str, objects| json!({ "batches": [{ "folder": folder, "objects": objects }] });
    change(at, "/objects", &batch("/det/temperature", objects));
    let tag = json!({ "name": NASTY, "path": "/det/temperature", "description": NASTY });
    change(at, "/tags", &tag);
    change(at, "/tags/lock", &json!({ "name": NASTY, "locked": true }));
    change(at, "/tags", &json!({ "name": "all", "path": "/det", "picks": [NASTY] }));
    // More channels, and more intervals, than a picture has.
    folder(at, "/det/hv/many", "single");
    let object = |channel: u32, n: u64| {
        let since = 10 * n;
        json!({ "channel": channel, "since": since, "until": since + 7, "values": [0.5] })
    };
    let dense = (0..500).map(|n| object(0, n));
    let objects: Vec<Json> = dense.chain((1..1_030).map(|channel| object(channel, 499))).collect();
    change(at, "/objects", &batch("/det/hv/many", objects));
    let columns: Vec<_> =
        (0..40).map(|n| json!({ "name": format!("c{n}"), "kind": "int32" })).collect();
    change(
        at,
        "/folders",
        &json!({ "path": "/empty", "versioning": "single", "columns": columns }),
    );
    folder(at, "/long", "single");
    let values = json!([[1.0], [2.0], [3.0], [4.0], [5.0]]);
    let object = json!({ "channel": 1, "since": 0, "records": values });
    change(at, "/objects", &batch("/long", vec![object]));
    server
}

/// The pages with the number of pictures that each has.
const PAGES: &[(&str, &str, usize)] = &[
    ("tree", "/", 0),
    ("set", "/page/set?under=/det/hv", 0),
    ("folder", "/page/folder?folder=/det/temperature", 1),
    ("many", "/page/folder?folder=/det/hv/many", 1),
    ("dense", "/page/folder?folder=/det/hv/many&since=0&until=5000&channels=0-1", 1),
    ("nothing", "/page/folder?folder=/empty", 0),
    ("at", "/page/at", 0),
    ("global", "/page/at?under=/det&tag=all&t=1700000000000000001", 0),
    ("tags", "/page/tags", 0),
    ("refused", "/page/folder?folder=/none", 0),
];

fn page(at: SocketAddr, path: &str) -> String {
    let answer = get(at, path, &[]);
    let text = String::from_utf8(answer.body.clone()).expect("text");
    assert_eq!(answer.status, 200, "{path}: {text}");
    assert_eq!(answer.header("content-type"), "text/html; charset=utf-8", "{path}");
    assert!(answer.header("content-security-policy").contains("default-src 'none'"), "{path}");
    text
}

#[test]
fn a_page_shows_what_there_is_and_leads_to_what_it_leaves_out() {
    let data = tempfile::tempdir().expect("a folder");
    let server = filled(data.path());
    let at = server.addresses()[0];
    let says = |path: &str, parts: &[&str]| {
        let page = page(at, path);
        for part in parts {
            assert!(page.contains(part), "{path}: no {part:?} in {page}");
        }
        assert!(!page.contains("<script"), "{path}");
        page
    };
    let tree =
        says("/", &["What the detector measures", "&lt;script&gt;", ">temperature<", "4 folders"]);
    assert!(tree.contains("1,030 channels, 1,529 objects"), "{tree}");
    let folder = says(
        "/page/folder?folder=/det/temperature",
        &[
            "several versions",
            ">blob<",
            "8 channels, 240 objects",
            "pump &lt;script",
            "locked",
            "from 1,700,000,000,000,000,000 on, in 10",
            "the last one open since ",
        ],
    );
    // Each bar leads to its values: of the last 24 of each channel, and those that meet them.
    let bars = folder.matches("&amp;t=17").count();
    assert!((60..=200).contains(&bars), "{bars} bars");
    let many = says("/page/folder?folder=/det/hv/many", &["980 more channels", "channels=50-"]);
    assert!(many.matches("class=\"lane\"").count() == 50, "{many}");
    says("/page/folder?folder=/det/hv/many&channels=50-", &["930 more channels"]);
    let dense = "/page/folder?folder=/det/hv/many&since=0&until=5000&channels=0-1";
    let dense = says(dense, &["more than 400 intervals", "more than are drawn"]);
    assert_eq!(dense.matches("&amp;t=").count(), 401);
    says("/page/folder?folder=/empty", &["No channel has an object yet"]);
    let own = "href=\"/page/folder?folder=/det/temperature\"";
    says("/page/set?under=/det/temperature", &[own, "--d:0"]);
    let newest = says(
        "/page/at",
        &["/det/temperature", "Nothing at this time in its first 1,000 channels", "2 more records"],
    );
    assert!(newest.contains(": the same from 17"), "{newest}");
    let global = "/page/at?under=/det&tag=all&t=1700000000000000001";
    let global =
        says(global, &["20.5", "15 bytes: AAECAwQF", "true", "tag all", "Nothing is picked"]);
    assert!(global.contains("until 1700000060000000000."), "{global}");
    says("/page/tags", &["the head at revision", "1 tag that it picks"]);
    says("/page/at?under=/det/hv/many&t=4995", &["There is more", "/api/v1/find?folder="]);
}

#[test]
fn every_link_of_every_page_leads_somewhere() {
    let data = tempfile::tempdir().expect("a folder");
    let server = filled(data.path());
    let at = server.addresses()[0];
    let mut seen = BTreeSet::new();
    let mut rest: Vec<String> = vec!["/".to_owned()];
    while let Some(path) = rest.pop() {
        if seen.len() >= 150 || !seen.insert(path.clone()) {
            continue;
        }
        let answer = get(at, &path, &[]);
        assert!([200, 307].contains(&answer.status), "{path}: {}", answer.status);
        if answer.header("content-type").starts_with("text/html") {
            let text = String::from_utf8(answer.body).expect("text");
            let links = text.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next());
            let links = links.filter(|link| *link != "data:,");
            let links = links.map(|link| link.replace("&amp;", "&"));
            rest.extend(links.map(|link| link.split('#').next().unwrap_or_default().to_owned()));
        }
    }
    assert!(seen.len() >= 100, "{seen:?}");
}

#[test]
fn an_empty_store_and_what_is_not_there_have_pages_that_say_what_to_do() {
    let data = tempfile::tempdir().expect("a folder");
    let server = serve(data.path(), None);
    let at = server.addresses()[0];
    assert!(page(at, "/").contains("loadline conditions create"));
    assert!(page(at, "/page/tags").contains("There is none"));
    assert!(page(at, "/page/at").contains("There is no folder here"));
    for (path, status, said) in [
        ("/page/folder?folder=/none", 404, "there is no folder"),
        ("/page/folder?folder=/%3Cb%3E", 404, "&lt;b&gt;"),
        ("/page/folder", 400, "folder is missing"),
        ("/page/set?under=/none", 404, "there is no folder"),
        ("/page/at?t=x", 400, "write a time"),
        ("/page/at?tag=x", 404, "there is no tag"),
        ("/page/at?revision=9", 404, "there is no revision 9"),
        ("/page/at?color=x", 400, "is no parameter"),
        ("/page/other/one", 404, "there is no such page"),
    ] {
        let answer = get(at, path, &[]);
        let text = String::from_utf8(answer.body.clone()).expect("text");
        assert_eq!(answer.status, status, "{path}: {text}");
        assert!(text.starts_with("<!DOCTYPE html>") && text.contains(said), "{path}: {text}");
    }
    // What lies at other places below the root is what it was.
    assert_eq!(get(at, "/dbstore/none", &[]).status, 404);
    assert!(get(at, "/other", &[]).header("content-type").contains("json"));
}

#[test]
fn a_damaged_segment_is_named_where_it_is_needed_and_all_else_is_shown() {
    let data = tempfile::tempdir().expect("a folder");
    let server = serve(data.path(), None);
    let at = server.addresses()[0];
    for path in ["/a", "/b"] {
        folder(at, path, "single");
        (0..5).for_each(|n| _ = insert(at, path, 1, (10 * n, None), n as f64));
    }
    server.seal().expect("sealed");
    server.stop(std::time::Duration::ZERO);
    let mut names: Vec<_> = std::fs::read_dir(data.path().join("segments"))
        .expect("segments")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|end| end == "segment"))
        .collect();
    names.sort();
    let mut bytes = std::fs::read(&names[0]).expect("bytes");
    bytes[40] ^= 1;
    std::fs::write(&names[0], bytes).expect("written");
    let name = names[0].file_name().expect("a name").to_string_lossy().into_owned();

    let server = serve(data.path(), None);
    let at = server.addresses()[0];
    assert!(page(at, "/").contains(&name));
    let (one, other) = (page(at, "/page/folder?folder=/a"), page(at, "/page/folder?folder=/b"));
    assert!(one.contains(&name) != other.contains(&name), "{one}\n{other}");
    let whole = if one.contains(&name) { other } else { one };
    assert!(whole.contains("4 intervals") || whole.contains("5 intervals"), "{whole}");
    let both = page(at, "/page/at?t=45");
    assert!(both.contains(&name) && both.contains("<td class=\"n\">40</td>"), "{both}");
}

#[test]
fn pages_have_a_bounded_size_however_many_folders_tags_and_channels_there_are() {
    let data = tempfile::tempdir().expect("a folder");
    let server = serve(data.path(), None);
    let at = server.addresses()[0];
    for n in 0..260 {
        let path = format!("/set{}/{}{n:03}", n % 2, "x".repeat(200));
        folder(at, &path, "multi");
        change(at, "/tags", &json!({ "name": format!("t{n:03}"), "path": path }));
    }
    let root = page(at, "/");
    assert!(root.contains("too many for one page") && root.contains("130 folders"), "{root}");
    let set = page(at, "/page/set?under=/set1");
    assert_eq!(set.matches("<li ").count(), 130);
    let tags = page(at, "/page/tags");
    assert!(tags.contains("210 more") && tags.contains("after=t049"), "{tags}");
    assert!(page(at, "/page/tags?after=t249").contains("t259"));
    let held = page(at, "/page/at");
    assert!(held.contains("230 more folders"), "{held}");
    for text in [root, set, tags, held] {
        assert!(text.len() < 500_000, "{} bytes", text.len());
    }
}

/// Looks at a page from inside, and leaves what it saw in the document's title.
const PROBE: &str = r##"<script>
function look() {
  const seen = (what) => [...document.querySelectorAll(what)];
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
    const [page, ink] = [behind(one), light(colour(getComputedStyle(one).color))];
    return (Math.max(page, ink) + .05) / (Math.min(page, ink) + .05);
  };
  const words = seen("p, td, th, a:not(svg a), h1, h2, li, code, button, label, select, input, " +
    "span, strong, bdi, footer");
  const shown = words.filter((one) => one.getClientRects().length && one.textContent.trim());
  const boxes = seen(".tick").filter((one) => one.getClientRects().length)
    .map((one) => one.getBoundingClientRect());
  const least = (all) => all.length ? Math.min(...all) : 99;
  const thin = seen(".lane path.a, .lane path.b").map((one) => one.getBoundingClientRect().width);
  document.title = JSON.stringify({
    wide: document.documentElement.scrollWidth - window.innerWidth,
    width: window.innerWidth,
    contrast: least(shown.map(contrast)),
    smallest: least(shown.map((one) => parseFloat(getComputedStyle(one).fontSize))),
    pictures: seen("figure.picture").filter((one) => one.querySelector("path.a")).length,
    thinnest: least(thin),
    apart: least(boxes.slice(1).map((box, at) => box.left - boxes[at].right)),
    fetched: performance.getEntriesByType("resource").length,
  });
}
</script>"##;

/// Widths of a desk's window, of a small one, and of a phone's.
const WIDTHS: [u32; 3] = [1280, 500, 400];

#[test]
fn every_page_can_be_read_in_a_browser_on_a_desk_and_on_a_phone_by_day_and_by_night() {
    let Some(browser) = testing::program("chromium") else { return };
    let data = tempfile::tempdir().expect("a folder");
    let (server, empty) = (filled(&data.path().join("data")), serve(&data.path().join("no"), None));
    let mut pages: Vec<(&str, usize)> = Vec::new();
    // With PAGES=target/shots `cargo xtask shots conditions` draws them.
    let shots = std::env::var_os("PAGES").map(std::path::PathBuf::from);
    for (name, path, pictures) in PAGES.iter().chain([&("new", "/", 0)]) {
        let of = if *name == "new" { &empty } else { &server };
        let text = String::from_utf8(get(of.addresses()[0], path, &[]).body).expect("text");
        let file = data.path().join(format!("{name}.html"));
        std::fs::write(file, format!("{text}{PROBE}")).expect("written");
        if let Some(shots) = &shots {
            let file = shots.join(format!("conditions-{name}.html"));
            std::fs::write(file, text).expect("written");
        }
        pages.push((name, *pictures));
    }
    for dark in [false, true] {
        let (seen, log) = looked_at(&browser, &pages, data.path(), dark);
        assert!(!log.contains("CONSOLE"), "{log}");
        assert_eq!(seen.len(), pages.len() * WIDTHS.len());
        for (place, seen) in seen.iter().enumerate() {
            let ((name, pictures), width) =
                (pages[place / WIDTHS.len()], WIDTHS[place % WIDTHS.len()]);
            let place = format!("{name} at {width}, dark: {dark}: {seen}");
            let number = |name: &str| seen[name].as_f64().unwrap_or_else(|| panic!("{place}"));
            assert_eq!(seen["width"], width, "{place}");
            assert!(number("wide") <= 0.0, "wider than the window: {place}");
            assert!(number("contrast") >= 4.5, "WCAG 2.1, 1.4.3: {place}");
            assert!(number("smallest") >= 11.0, "small: {place}");
            assert_eq!(number("pictures"), pictures as f64, "{place}");
            assert!(number("thinnest") > 0.2, "a bar that can't be seen: {place}");
            assert!(number("apart") >= 2.0, "times of an axis run into each other: {place}");
            assert_eq!(number("fetched"), 0.0, "something was asked of the network: {place}");
        }
    }
    // As it is served: the policy of its contents forbids nothing that a page has.
    for (_, path, _) in PAGES {
        let mut command = begun(&browser, data.path());
        let out = command.arg(format!("http://{}{path}", server.addresses()[0])).output();
        let out = out.expect("a browser");
        let log = String::from_utf8_lossy(&out.stderr).into_owned();
        assert!(
            String::from_utf8_lossy(&out.stdout).contains("nav class=\"top\""),
            "{path}: {log}"
        );
        assert!(!log.contains("CONSOLE"), "{path}: {log}");
    }
}

fn begun(browser: &Path, folder: &Path) -> Command {
    let mut command = Command::new(browser);
    command.args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"]);
    command.args(["--allow-file-access-from-files", "--enable-logging=stderr", "--dump-dom"]);
    command.arg(format!("--user-data-dir={}", folder.join("profile").display()));
    command.arg("--window-size=1400,2000");
    command
}

/// What the probe saw on each page at each width, and what the browser logged.
fn looked_at(
    browser: &Path,
    pages: &[(&str, usize)],
    folder: &Path,
    dark: bool,
) -> (Vec<Json>, String) {
    // A window can't be narrower than 500 pixels without a screen; a frame in it can.
    let frame = |name: &str, width: u32| {
        format!(
            "<iframe src=\"{name}.html\" style=\"width:{width}px;height:2000px;border:0\"></iframe>"
        )
    };
    let frames = pages.iter().flat_map(|(name, _)| WIDTHS.map(|width| frame(name, width)));
    let frames: String = frames.collect();
    let framed = folder.join("framed.html");
    let look = "addEventListener(\"load\", () => { document.title = JSON.stringify([...\
        document.querySelectorAll(\"iframe\")].map((one) => { one.contentWindow.look(); \
        return JSON.parse(one.contentDocument.title); })); });";
    let page = format!("<!doctype html>{frames}<script>{look}</script>");
    std::fs::write(&framed, page).expect("written");
    let mut command = begun(browser, folder);
    if dark {
        command.arg("--blink-settings=preferredColorScheme=0");
    }
    let out = command.arg(format!("file://{}", framed.display())).output().expect("a browser");
    let (dom, log) = (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    let title = dom.split("<title>").nth(1).and_then(|rest| rest.split("</title>").next());
    let title = title.unwrap_or_else(|| panic!("the browser gave no title: {dom}\n{log}"));
    let title = title.replace("&amp;", "&").replace("&lt;", "<").replace("&gt;", ">");
    (serde_json::from_str(&title).unwrap_or_else(|_| panic!("{title}\n{log}")), log.into_owned())
}
