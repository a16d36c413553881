//! The http workload against real web servers.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::common::{Place, code, stderr, stdout};

/// Whether all of these programs are installed; without one of them the test is skipped.
fn are_here(programs: &[&str]) -> bool {
    programs.iter().all(|program| testing::program(program).is_some())
}

/// Runs a suite with these settings and gives its exit code and its JSON.
fn run(suite: &Path, settings: &[&str]) -> (i32, serde_json::Value) {
    let place = Place::with("");
    let mut arguments = vec!["run", suite.to_str().expect("UTF-8"), "--wait", "--json"];
    settings.iter().for_each(|setting| arguments.extend(["--set", setting]));
    let output = place.loadline(&arguments);
    let said = format!("{}{}", stdout(&output), stderr(&output));
    let json = serde_json::from_str(&stdout(&output)).unwrap_or_else(|_| panic!("{said}"));
    (code(&output), json)
}

/// A suite of this repository, with settings that make it quick and fit any host.
fn run_quickly(name: &str, targets: &[&str], settings: &[&str]) -> (i32, serde_json::Value) {
    let suite = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../suites").join(name);
    let quick = [
        "rounds.measure=60ms",
        "rounds.slice=30ms",
        "rounds.warm_up=10ms",
        "rounds.at_least=1",
        "rounds.at_most=1",
        "clients.cpus=[]",
    ];
    let cpus: Vec<_> = targets.iter().map(|target| format!("target.{target}.cpus=[]")).collect();
    let cpus: Vec<_> = cpus.iter().map(String::as_str).collect();
    run(&suite, &[&quick[..], &cpus, settings].concat())
}

fn run_http_static(settings: &[&str]) -> (i32, serde_json::Value) {
    run_quickly("http-static.toml", &["nginx", "lighttpd"], settings)
}

fn assert_all_right(json: &serde_json::Value, trials: usize) {
    let found = json["trials"].as_array().expect("trials");
    assert_eq!(found.len(), trials, "{json:#}");
    for trial in found {
        // On a busy machine it may be disturbed, which says nothing about the answers.
        assert_ne!(trial["validity"], "invalid", "{trial:#}");
        assert_eq!((&trial["wrong"], &trial["missing"]), (&0.into(), &0.into()), "{trial:#}");
        assert!(trial["operations"].as_u64().expect("a count") > 0, "{trial:#}");
    }
}

/// A web server that closes each connection instead of the fortieth answer.
fn serve_forties() -> std::io::Result<std::net::SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let answer = |stream: TcpStream| -> std::io::Result<()> {
        let mut reader = BufReader::new(stream.try_clone()?);
        let (mut stream, mut line) = (stream, String::new());
        for _ in 1..40 {
            // A request ends with an empty line; there is no body.
            line.clear();
            while reader.read_line(&mut line)? > 2 {
                line.clear();
            }
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")?;
        }
        Ok(())
    };
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || answer(stream));
        }
    });
    Ok(address)
}

#[test]
fn requests_lost_with_a_connection_are_errors_and_judged_as_such() {
    let address = serve_forties().expect("a server");
    let suite = |require: &str| {
        format!(
            "title = 'Closing'\n[[target]]\nname = 'closing'\naddress = '{address}'\n\
             speaks = 'http'\n[workload]\nservice = 'http'\noperation = 'index'\n\
             [[workload.request]]\nname = 'index'\npath = '/'\n[[clients]]\nconnections = 2\n\
             [require]\n{require}\n[rounds]\nmeasure = '500ms'\nslice = 'none'\n\
             warm_up = '0s'\nat_least = 5\nat_most = 5\ndisturbed = 'ignore'\n"
        )
    };
    let run = |require: &str, codes: &[i32]| {
        Place::with(&suite(require)).json(&["run", "suite.toml", "--wait", "--json"], codes)
    };
    let json = run("errors = '< 5%'", &[0]);
    let (trial, values) = (&json["trials"][0], &json["trials"][0]["values"][0]);
    assert_eq!(trial["validity"], "valid", "{trial:#}");
    assert_eq!(values["name"], "connections_broken", "{trial:#}");
    assert_eq!(values["mean"].as_f64(), trial["missing"].as_f64(), "one was under way on each");
    assert!(trial["missing"].as_u64() > Some(0), "{trial:#}");
    assert_eq!(json["requirements"][0]["outcome"], "held", "{json:#}");
    let broken = run("errors = '< 0.1%'", &[3]);
    assert_eq!(broken["requirements"][0]["outcome"], "broken", "{broken:#}");
    let reason = broken["trials"][0]["reason"].as_str().expect("why").to_owned();
    assert!(reason.contains("connections broke: "), "{reason}");
    assert_eq!(run("wrong = '= 0'", &[0, 4])["trials"][0]["validity"], "invalid");
}

#[test]
fn nginx_and_lighttpd_answer_every_request_of_their_suite_rightly() {
    if !are_here(&["nginx", "lighttpd"]) {
        return;
    }
    let (_, json) = run_http_static(&[]);
    assert_all_right(&json, 4);
    let (_, json) = run_http_static(&["clients.connections=3", "clients.pipeline=8"]);
    assert_all_right(&json, 2);
    let (_, json) = run_http_static(&["clients.connections=2", "clients.reconnect_every=1"]);
    assert_all_right(&json, 2);
}

#[test]
fn nginx_answers_rightly_over_tls_and_in_http_2() {
    if !are_here(&["nginx", "openssl"]) {
        return;
    }
    let targets = ["http1", "http1-tls", "http2-tls"];
    let run = |settings: &[&str]| run_quickly("http-tls.toml", &targets, settings).1;
    assert_all_right(&run(&[]), 6);
    let many_streams = ["clients.connections=2", "clients.pipeline=100"];
    assert_all_right(&run(&many_streams), 3);
    let again = ["clients.connections=2", "clients.pipeline=1", "clients.reconnect_every=3"];
    assert_all_right(&run(&again), 3);
}

/// An nginx that takes ten requests a second and answers all others with 503.
const LIMITED: &str = "title = 'Limited'\n[[target]]\nname = 'nginx'\nspeaks = 'http'\n\
     command = ['nginx', '-p', '{dir}/', '-c', 'nginx.conf', '-e', 'stderr']\n\
     setup = ['sh', '-c', \"\"\"mkdir -p '{dir}/files' && cd '{dir}'\necho hi > files/index.html\n\
     cat > nginx.conf <<END\ndaemon off;\nuser root;\npid nginx.pid;\nevents {}\nhttp {\n\
     access_log off;\nclient_body_temp_path temp;\nproxy_temp_path temp;\n\
     fastcgi_temp_path temp;\nuwsgi_temp_path temp;\nscgi_temp_path temp;\n\
     limit_req_zone \\\\$remote_addr zone=all:1m rate=10r/s;\n\
     server { listen 127.0.0.1:{port}; root files; limit_req zone=all burst=1 nodelay; }\n\
     }\nEND\n\"\"\"]\n\
     [workload]\nservice = 'http'\noperation = 'index'\n\
     [[workload.request]]\nname = 'index'\npath = '/'\n[[clients]]\nconnections = 2\n\
     [rounds]\nmeasure = '60ms'\nslice = 'none'\nwarm_up = '0s'\nat_least = 5\nat_most = 5\n\
     disturbed = 'ignore'\n[require]\nwrong = '= 0'\n";

#[test]
fn a_server_that_refuses_what_is_too_much_is_not_wrong_and_fast_only_where_that_is_allowed() {
    if !are_here(&["nginx"]) {
        return;
    }
    let run = |require: &str, codes: &[i32]| {
        let place = Place::with(&format!("{LIMITED}{require}\n"));
        let json = place.json(&["run", "suite.toml", "--wait", "--json"], codes);
        let said = stdout(&place.loadline(&["report"]));
        (json, said)
    };
    let (json, said) = run("", &[4]);
    let trial = &json["trials"][0];
    assert_eq!((&trial["validity"], &trial["wrong"]), (&"invalid".into(), &0.into()), "{said}");
    assert!(trial["refused"].as_u64() > Some(0), "{trial:#}");
    assert!(trial["refused"].as_u64() < trial["operations"].as_u64(), "{trial:#}");
    let reason = trial["reason"].as_str().expect("why");
    assert!(reason.starts_with("operations were refused: the status is 503, not 200"), "{reason}");
    assert!(said.contains("refusals of nginx, round 1:"), "{said}");
    assert!(said.contains(" refused\n") && said.contains("\nnginx refused "), "{said}");
    let (json, said) = run("refused = '< 100%'", &[0, 4]);
    assert_eq!(json["trials"][0]["validity"], "valid", "{said}");
    let (json, said) = run("refused = '< 1%'", &[3]);
    assert!(said.contains("require refused < 1%: broken, "), "{said}");
    assert_eq!(json["trials"][0]["validity"], "invalid", "{said}");
}

/// An nginx of the script of a suite, which is ended with it.
struct Nginx {
    process: Child,
    folder: tempfile::TempDir,
    port: u16,
}

impl Nginx {
    /// With these words behind its port. Another program may take the port before it.
    fn start(arguments: &[&str]) -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../suites/http-tls.sh");
        let folder = tempfile::tempdir().expect("a folder");
        for _ in 0..5 {
            let port = testing::free_port();
            let written = Command::new("sh")
                .arg(&script)
                .arg(folder.path())
                .arg(port.to_string())
                .args(arguments)
                .stderr(Stdio::null())
                .status();
            assert!(written.expect("a shell").success());
            let mut process = Command::new("nginx")
                .args(["-e", "stderr", "-c", "nginx.conf", "-p"])
                .arg(format!("{}/", folder.path().display()))
                .stderr(Stdio::null())
                .spawn()
                .expect("nginx");
            while process.try_wait().expect("its state").is_none() {
                if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                    return Self { process, folder, port };
                }
                std::thread::yield_now();
            }
        }
        panic!("nginx does not start");
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // Killed, it would leave its worker behind.
        let process = rustix::process::Pid::from_child(&self.process);
        let _ = rustix::process::kill_process(process, rustix::process::Signal::TERM);
        let _ = self.process.wait();
    }
}

#[test]
fn try_asks_a_page_over_tls_and_says_what_it_lacks() {
    if !are_here(&["nginx", "openssl"]) {
        return;
    }
    let server = Nginx::start(&["ssl"]);
    let place = Place::with("");
    let asks = |host: &str, path: &str, options: &[&str]| {
        let url = format!("https://{host}:{}/{path}", server.port);
        let output =
            place.loadline(&[&["try", &url, "--for", "100ms", "--wait"], options].concat());
        (code(&output), stderr(&output) + &stdout(&output))
    };
    let certificate = server.folder.path().join("cert.pem");
    let certificate = certificate.to_str().expect("UTF-8");
    let (code, said) = asks("localhost", "page.txt", &["--ca", certificate]);
    assert!([0, 4].contains(&code), "{said}");
    let (code, said) = asks("127.0.0.1", "page.txt", &["--insecure"]);
    assert!([0, 4].contains(&code), "{said}");

    let (code, said) = asks("localhost", "page.txt", &[]);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("--ca") && said.contains("--insecure"), "{said}");
    let (code, said) = asks("127.0.0.1", "page.txt", &["--ca", certificate]);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("only valid for") && said.contains("localhost"), "{said}");
    let (code, said) = asks("localhost", "missing", &["--insecure"]);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("is answered with 404 Not Found, not 200"), "{said}");
}

#[test]
fn try_names_a_port_without_tls() {
    if !are_here(&["nginx"]) {
        return;
    }
    let server = Nginx::start(&[]);
    let place = Place::with("");
    let url = format!("https://127.0.0.1:{}/page.txt", server.port);
    let output = place.loadline(&["try", &url, "--insecure"]);
    let said = stderr(&output);
    assert_eq!(code(&output), 2, "{said}");
    assert!(said.contains("no TLS is spoken at this port"), "{said}");
}

#[test]
fn another_body_than_the_suite_says_is_found_with_its_bytes() {
    if !are_here(&["nginx", "lighttpd"]) {
        return;
    }
    let other = "workload.request.index.expect.body=\"<!doctype html>\\n<title>Other\"";
    let (code, json) = run_http_static(&["workload.operation=index", other]);
    assert_eq!(code, 3, "wrong answers break a requirement: {json:#}");
    let finding = &json["findings"][0];
    let bytes = |side: &str| {
        let digits = finding[side].as_str().expect("digits");
        let pairs = (0..digits.len()).step_by(2).map(|at| &digits[at..at + 2]);
        let bytes = pairs.map(|pair| u8::from_str_radix(pair, 16).expect("hexadecimal"));
        String::from_utf8(bytes.collect()).expect("text")
    };
    assert_eq!(finding["note"], "the body differs from byte 23 on, counted from 0");
    assert_eq!(bytes("expected_hex"), "<!doctype html>\n<title>Other");
    assert!(bytes("received_hex").starts_with("<!doctype html>\n<title>Loadline</title>"));
}

/// A suite with one target, which is a Python program.
fn suite_of_python(target: &str) -> String {
    format!(
        r#"
title = "Python"
[[target]]
name = "python"
{target}
speaks = "http"
[workload]
service = "http"
mix = {{ page = 2, missing = 1 }}
[[workload.request]]
name = "page"
path = "/page.txt"
expect.body = "all of it"
[[workload.request]]
name = "missing"
path = "/other.txt"
expect.status = 404
[[clients]]
connections = 2
[require]
wrong = "= 0"
missing = "= 0"
[rounds]
measure = "100ms"
slice = "50ms"
warm_up = "20ms"
at_least = 1
at_most = 1
"#
    )
}

#[test]
fn a_server_of_http_1_0_that_closes_after_each_answer_is_understood() {
    if !are_here(&["python3"]) {
        return;
    }
    let place = Place::with(&suite_of_python(
        "setup = ['sh', '-c', 'printf \"all of it\" > \"{dir}/page.txt\"']\n\
         command = ['python3', '-m', 'http.server', '{port}', '--bind', '127.0.0.1', \
         '--directory', '{dir}']",
    ));
    let (_, json) = run(&place.path().join("suite.toml"), &[]);
    assert_all_right(&json, 1);
}

#[test]
fn a_body_that_only_the_end_of_the_connection_ends_is_understood() {
    if !are_here(&["python3"]) {
        return;
    }
    let program = r#"
import http.server, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path == "/page.txt" else 404)
        self.end_headers()
        self.wfile.write(b"all of it")
    def log_message(self, *arguments):
        pass
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"#;
    let target = format!("command = ['python3', '-c', '''{program}''', '{{port}}']");
    let place = Place::with(&suite_of_python(&target));
    let (_, json) = run(&place.path().join("suite.toml"), &[]);
    assert_all_right(&json, 1);
}

#[test]
fn a_mistake_in_a_request_is_shown_where_it_stands() {
    let suite = suite_of_python("command = ['sh']").replace("/page.txt", "page.txt");
    let place = Place::with(&suite);
    let output = place.loadline(&["plan", "suite.toml"]);
    assert_eq!(code(&output), 2);
    let said = stderr(&output);
    assert!(said.contains("workload.request.page.path"), "{said}");
    assert!(said.contains("suite.toml:12:8"), "{said}");
}

#[test]
fn a_server_that_floods_and_never_reads_is_given_up_and_its_trial_invalid() {
    let server = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = server.local_addr().expect("its address");
    std::thread::spawn(move || {
        // SETTINGS, then PING over and over (RFC 9113, 6.7).
        let pings = b"\0\0\x08\x06\0\0\0\0\0 no end ".repeat(1000);
        for mut stream in server.incoming().map_while(Result::ok) {
            let pings = pings.clone();
            std::thread::spawn(move || {
                let greeted = stream.write_all(b"\0\0\0\x04\0\0\0\0\0");
                while greeted.is_ok() && stream.write_all(&pings).is_ok() {}
            });
        }
    });
    let suite = format!(
        "title = 'Flood'\n[[target]]\nname = 'flood'\naddress = '{address}'\n\
         speaks = {{ http = {{ version = 2 }} }}\n\
         [workload]\nservice = 'http'\noperation = 'a'\n\
         [[workload.request]]\nname = 'a'\npath = '/'\n\
         [[clients]]\nconnections = 1\n\
         [rounds]\nmeasure = '10s'\nslice = 'none'\nwarm_up = '0s'\nat_least = 1\nat_most = 1\n"
    );
    let run = Place::with(&suite).json(&["run", "suite.toml", "--json"], &[1]);
    let trial = &run["trials"][0];
    assert_eq!((&trial["validity"], &trial["operations"]), (&"invalid".into(), &0.into()));
    let reason = trial["reason"].as_str().expect("a reason");
    assert!(reason.contains("doesn't read what it is answered"), "{reason}");
}
