//! The page in a real browser: what it shows, follows, filters and changes, on a desk and on a
//! phone; nothing in it acts but its own script.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::web::{Seen, TOKEN};

/// A page of a browser, spoken to over its DevTools protocol.
struct Browser {
    child: Child,
    input: File,
    output: File,
    rest: Vec<u8>,
    session: Value,
    id: u64,
    /// Errors and refusals that the page's console had.
    errors: Vec<Value>,
    _folder: tempfile::TempDir,
}

impl Drop for Browser {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Browser {
    fn open(program: &Path, url: &str, (width, height): (u32, u32)) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["in", "out"] {
            let made = Command::new("mkfifo").arg(folder.path().join(name)).status();
            assert!(made.expect("mkfifo").success());
        }
        let mut command = Command::new("sh");
        command.current_dir(folder.path()).arg("-c");
        command.arg("exec \"$0\" \"$@\" 3<in 4>out").arg(program);
        command.args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"]);
        command.args(["--remote-debugging-pipe", "--user-data-dir=profile"]);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("a browser");
        let input = File::options().write(true).open(folder.path().join("in")).expect("a pipe");
        let output = File::open(folder.path().join("out")).expect("a pipe");
        let (rest, session, id, errors) = (Vec::new(), Value::Null, 0, Vec::new());
        let _folder = folder;
        let mut page = Self { child, input, output, rest, session, id, errors, _folder };
        let target = page.call("Target.createTarget", json!({ "url": "about:blank" }));
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        page.session = page.call("Target.attachToTarget", attach)["sessionId"].clone();
        for domain in ["Page", "Runtime", "Log"] {
            page.call(&format!("{domain}.enable"), json!({}));
        }
        let is_phone = width < 600;
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1,
            "mobile": is_phone });
        page.call("Emulation.setDeviceMetricsOverride", size);
        page.call("Page.navigate", json!({ "url": url }));
        page.until("document.body && document.body.dataset.ready === 'yes'");
        page
    }

    fn call(&mut self, method: &str, params: Value) -> Value {
        self.id += 1;
        let mut message = json!({ "id": self.id, "method": method, "params": params });
        if !self.session.is_null() {
            message["sessionId"] = self.session.clone();
        }
        self.input.write_all(format!("{message}\0").as_bytes()).expect("sent");
        loop {
            let message = self.message();
            if message["id"] == self.id {
                assert!(message.get("error").is_none(), "{method}: {message}");
                return message["result"].clone();
            }
            let kind = message["method"].as_str().unwrap_or_default();
            let is_error = message["params"]["entry"]["level"] == "error";
            if kind == "Runtime.exceptionThrown" || kind == "Log.entryAdded" && is_error {
                self.errors.push(message);
            }
        }
    }

    fn message(&mut self) -> Value {
        loop {
            if let Some(end) = self.rest.iter().position(|byte| *byte == 0) {
                let message: Vec<u8> = self.rest.drain(..=end).collect();
                return serde_json::from_slice(&message[..end]).expect("JSON");
            }
            let mut piece = [0; 64 << 10];
            let read = self.output.read(&mut piece).expect("the browser");
            assert!(read > 0, "the browser ended");
            self.rest.extend_from_slice(&piece[..read]);
        }
    }

    fn value(&mut self, expression: &str) -> Value {
        let asked =
            json!({ "expression": expression, "awaitPromise": true, "returnByValue": true });
        let seen = self.call("Runtime.evaluate", asked);
        assert!(seen.get("exceptionDetails").is_none(), "{expression}: {seen}");
        seen["result"]["value"].clone()
    }

    /// Waits until an expression is true.
    fn until(&mut self, expression: &str) {
        let begun = Instant::now();
        while self.value(&format!("!!({expression})")) != true {
            let page = "document.body && document.body.innerText";
            assert!(
                begun.elapsed() < Duration::from_secs(60),
                "{expression}\n{}\n{:?}",
                self.value(page),
                self.errors
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// The text of the page.
const TEXT: &str = "document.body.innerText";

fn has(text: &str) -> String {
    format!("{TEXT}.includes({})", json!(text))
}

#[test]
fn the_page_follows_the_tree_and_changes_it_with_a_token() {
    let Some(program) = testing::program("chromium") else { return };
    let seen = Seen::new(true, false).with_suite();
    let nasty = "<img src=x onerror=document.title='ill'>";
    seen.place.told(&["--alter", "change", "label", "info", nasty, "/big/f/t"]);
    let url = format!("http://{}/#/big/f/u", seen.at());
    let mut page = Browser::open(&program, &url, (1280, 800));
    page.until(&has("suite /big has not begun"));
    page.until(&has(nasty));
    page.until("document.getElementById('link').textContent === 'live'");
    // What ecFlow's client does is seen without being asked for.
    seen.place.told(&["--alter", "change", "meter", "m", "77", "/big/f/t"]);
    page.until(&has("m 77 of 100"));
    let suspend = "document.querySelector('[data-action=suspend]').click()";
    page.value(suspend);
    page.until(&has("A change needs a token"));
    let token = format!("document.querySelector('[name=token]').value = {}", json!(TOKEN));
    page.value(&token);
    page.value(suspend);
    page.until("document.querySelector('[aria-selected=true] .chip').textContent === 'suspended'");
    assert_eq!(seen.place.told(&["--query", "dstate", "/big/f/u"]).trim(), "suspended");
    // Parts of the node, and other views.
    page.value("document.querySelector('[data-tab=attributes]').click()");
    page.until(&has("23:00"));
    page.value("document.querySelector('[data-tab=script]').click()");
    page.until(&has("cannot be found"));
    page.value("document.querySelector('[data-view=limits]').click()");
    page.until(&has("/big:l"));
    page.value("document.querySelector('[data-view=tree]').click()");
    let filter = "const form = document.forms[0]; form.elements.state.value = 'suspended'; \
                  form.dispatchEvent(new Event('input', { bubbles: true }))";
    page.value(filter);
    page.until(&has("1 found"));
    assert_eq!(page.value("document.querySelectorAll('.row').length"), 1);
    // A suite that is loaded appears, and one that is deleted goes.
    page.value("document.forms[0].reset(); filter()");
    let more = seen.place.write("more.def", "suite more\n task x\nendsuite\n");
    seen.place.told(&[&format!("--load={}", more.display())]);
    page.until("list.some((node) => node.path === '/more')");
    seen.place.told(&["--delete", "force", "yes", "/more"]);
    page.until("!list.some((node) => node.path === '/more')");
    assert_eq!(page.value("document.title"), "Loadline workflow", "a text of the tree has acted");
    let hosts = "performance.getEntriesByType('resource').every((one) => \
                 new URL(one.name).host === location.host)";
    assert_eq!(page.value(hosts), true, "another host was asked");
    // Refusals that the test has caused are errors of the network alone.
    let ill = page.errors.iter().find(|one| one["params"]["entry"]["source"] != "network");
    assert!(ill.is_none(), "{ill:?}");
}

#[test]
fn on_a_phone_nothing_is_wider_than_the_window_and_of_many_rows_few_are_in_the_document() {
    let Some(program) = testing::program("chromium") else { return };
    let seen = Seen::new(true, false);
    // As many as in the largest suites of weather centres.
    let family = |family: usize| {
        let tasks = (0..8_000).map(|task| format!("task t{}\n", family * 8_000 + task));
        format!("family f{family}\n{}endfamily\n", tasks.collect::<String>())
    };
    for suite in 0..10 {
        let families: String = (suite * 4..(suite + 1) * 4).map(family).collect();
        let text = format!("suite many{suite}\n{families}endsuite\n");
        let file = seen.place.write("many.def", &text);
        seen.place.told(&[&format!("--load={}", file.display())]);
    }
    let mut page = Browser::open(&program, &format!("http://{}/#/many0", seen.at()), (390, 800));
    page.value(
        "(async () => { for (const suite of root.kids) { await open(suite, true); \
         for (const family of suite.kids) await open(family, true); } })()",
    );
    page.until("list.length === 320050");
    assert_eq!(page.value("list[7000].name === undefined"), true, "fetched before it is in view");
    page.value("document.getElementById('scroll').scrollTop = 26 * 319_000");
    page.until(&has("t318955"));
    let rows = page.value("document.querySelectorAll('.row').length").as_u64();
    assert!(rows.is_some_and(|rows| (5..100).contains(&rows)), "{rows:?}");
    let wide = "document.documentElement.scrollWidth <= innerWidth && innerWidth === 390";
    assert_eq!(page.value(wide), true);
    let shown = "document.getElementById('detail').getBoundingClientRect()";
    assert_eq!(page.value(&format!("{shown}.top < 790 && {shown}.height > 200")), true);
    assert!(page.errors.is_empty(), "{:?}", page.errors);
}

#[test]
fn the_timeline_has_a_bar_for_each_run_of_a_job_and_goes_on_with_the_log() {
    let programs = ["chromium", "ecflow_client"].map(testing::program);
    let [Some(program), Some(_)] = programs else { return };
    let seen = Seen::new(true, false);
    let suite = "suite s\n edit ECF_TRIES 1\n task a\n task b\n  trigger a == complete\n task c\n  \
                 trigger b == complete\nendsuite\nsuite other\nendsuite\n";
    for (task, body) in [("a", "true"), ("b", "true"), ("c", "exit 1")] {
        seen.place.script(&format!("s/{task}"), body);
    }
    let file = seen.place.write("s.def", suite);
    seen.place.told(&[&format!("--load={}", file.display())]);
    let mut page = Browser::open(&program, &format!("http://{}/#/s", seen.at()), (1280, 800));
    page.value("document.querySelector('[data-view=runs]').click()");
    page.until(&has("The log has no runs at /s."));
    // It shows what runs while it is looked at.
    seen.place.told(&["--restart"]);
    seen.place.told(&["--begin=s"]);
    page.until(&has("The last 3 runs at /s, by the log"));
    let cells = "[...document.querySelectorAll('#other tbody tr')].map((row) => \
                 [row.cells[0].textContent, row.cells[3].textContent].join(' '))";
    let all = json!(["/s/c aborted", "/s/b complete", "/s/a complete"]);
    page.until(&format!("JSON.stringify({cells}) === {}", json!(all.to_string())));
    // Of each run when it waited and when it ran, one behind the other, within the lane.
    let bars = "[...document.querySelectorAll('#other svg.lane')].map((lane) => \
                [...lane.querySelectorAll('rect')].map((bar) => [bar.getAttribute('class'), \
                +bar.getAttribute('x'), +bar.getAttribute('width')]))";
    let lanes = page.value(bars);
    let mut last = 0.0;
    for (lane, state) in [(2, "complete"), (1, "complete"), (0, "aborted")] {
        let lane = &lanes[lane];
        let number = |bar: usize, place: usize| lane[bar][place].as_f64().expect("a number");
        assert_eq!([&lane[0][0], &lane[1][0]], ["submitted", state], "{lanes}");
        assert!(number(0, 1) >= last && number(1, 1) >= number(0, 1), "{lanes}");
        last = number(1, 1);
        // A bar is two wide at least.
        assert!(last + number(1, 2) <= 1002.0, "{lanes}");
    }
    page.value("select('/other').then(other)");
    page.until(&has("The log has no runs at /other."));
    assert!(page.errors.is_empty(), "{:?}", page.errors);
}
