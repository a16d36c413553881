//! Encrypted connections: what a client that is not ours gets over them, with tokens and pages, and
//! certificates that are read again.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use conditions::client::{Client, Trust};
use conditions::server::BoundConditions;
use serde_json::json;
use service::{Face, HttpSettings, TlsFiles, Tokens};
use wire::ClientCertificates;

use crate::served::serve;

const TOKEN: &str = "0123456789abcdef";

/// A certificate with its key, for this name.
struct Made {
    certificate: PathBuf,
    key: PathBuf,
    pem: String,
}

fn made(folder: &Path, name: &str) -> Made {
    let made = rcgen::generate_simple_self_signed([name.to_owned()]).expect("a certificate");
    let (certificate, key) = (folder.join("server.pem"), folder.join("server.key"));
    let pem = made.cert.pem();
    std::fs::write(&certificate, &pem).expect("written");
    std::fs::write(&key, made.signing_key.serialize_pem()).expect("written");
    Made { certificate, key, pem }
}

fn curl(authority: &Path, args: &[&str]) -> Option<Output> {
    let mut curl = Command::new(testing::program("curl")?);
    curl.args(["--silent", "--show-error", "--max-time", "20", "--noproxy", "*", "--cacert"]);
    Some(curl.arg(authority).args(args).output().expect("curl"))
}

#[test]
fn requests_tokens_and_pages_work_encrypted_and_certificates_are_read_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let first = made(folder.path(), "127.0.0.1");
    let files = TlsFiles {
        certificates: first.certificate.clone(),
        key: Some(first.key.clone()),
        authorities: None,
        clients: ClientCertificates::Ignored,
        speaks_1_2: true,
        protocols: &["http/1.1"],
    };
    let tls = files.read().expect("certificates");
    let tokens = folder.path().join("tokens");
    std::fs::write(&tokens, format!("{TOKEN}\n")).expect("written");
    let tokens = Some(Tokens::read(tokens).expect("tokens"));
    let address = ([127, 0, 0, 1], 0).into();
    let settings = HttpSettings { address, takes_names: false, tokens, face: Face::Api };
    let bound = BoundConditions::bind(vec![settings]).expect("an address");
    let bound = bound.encrypted(&tls, Duration::from_secs(10));
    let server = bound.start(&folder.path().join("data")).expect("a server");
    let at = server.addresses()[0];

    // Our own client: nothing is changed without a token.
    let body = json!({ "path": "/a", "versioning": "multi",
        "columns": [{ "name": "value", "kind": "float" }] });
    let client = |pem: &str, token: Option<&str>, name| {
        let trust = Trust { authorities: pem.as_bytes(), identity: None, name };
        let token = token.map(str::to_owned);
        Client::encrypted(at, &trust, token, Duration::from_secs(20)).expect("a client")
    };
    let refused = client(&first.pem, None, None).post("/folders", &body).expect_err("refused");
    assert!(refused.to_string().contains("a token is needed"), "{refused}");
    assert_eq!(client(&first.pem, Some(TOKEN), None).post("/folders", &body).expect("made"), 1);
    let wrong = |client: Client, words: &str| {
        let why = client.get("/tags", &[]).expect_err("no answer").to_string();
        assert!(why.contains(words), "{why}");
    };
    let bare = |at: SocketAddr| Client::new(&at.to_string(), None, Duration::from_secs(20));
    wrong(bare(at), "add --tls-ca FILE");
    let large = bare(at).insert(&vec![0; 8 << 20]).expect_err("no answer").to_string();
    assert!(large.contains("add --tls-ca FILE"), "{large}");
    let open = serve(&folder.path().join("open"), None);
    let trust = Trust { authorities: first.pem.as_bytes(), identity: None, name: None };
    let encrypted = Client::encrypted(open.addresses()[0], &trust, None, Duration::from_secs(20));
    wrong(encrypted.expect("a client"), "leave --tls-ca out");

    // Another one.
    let (page, change) = (format!("https://{at}/"), format!("https://{at}/api/v1/tags"));
    if let Some(out) = curl(&first.certificate, &[&page]) {
        let text = String::from_utf8_lossy(&out.stdout);
        assert!(out.status.success() && text.contains("1 folder"), "{out:?}");
        let tag = r#"{"name":"t","path":"/a"}"#;
        let json = ["--header", "content-type: application/json", "--data", tag, "--tlsv1.3"];
        let bare = curl(&first.certificate, &[&json[..], &[&change]].concat()).expect("curl");
        assert!(String::from_utf8_lossy(&bare.stdout).contains("a token is needed"), "{bare:?}");
        let token = format!("authorization: Bearer {TOKEN}");
        let all = [&json[..], &["--header", &token, &change]].concat();
        let out = curl(&first.certificate, &all).expect("curl");
        assert_eq!(String::from_utf8_lossy(&out.stdout), r#"{"revision":2}"#, "{out:?}");
        let old = ["--tls-max", "1.1", &page];
        assert!(!curl(&first.certificate, &old).expect("curl").status.success());
    }

    // What SIGHUP does: the new certificate counts for connections that come from then on.
    let second = made(folder.path(), "localhost");
    files.renew(&tls).expect("certificates");
    wrong(client(&first.pem, None, None), "no authority of --tls-ca has signed");
    wrong(client(&second.pem, None, None), "--tls-name NAME says which");
    let tags = client(&second.pem, None, Some("localhost")).get_json("/tags", &[]);
    assert!(tags.expect("an answer")["tags"].is_array());
}

#[test]
fn a_certificate_of_an_authority_is_named_as_what_it_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut params = rcgen::CertificateParams::new(["127.0.0.1".to_owned()]).expect("a name");
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let key = rcgen::KeyPair::generate().expect("a key");
    let pem = params.self_signed(&key).expect("a certificate").pem();
    let (certificates, of_key) = (folder.path().join("c.pem"), folder.path().join("k.pem"));
    std::fs::write(&certificates, &pem).expect("written");
    std::fs::write(&of_key, key.serialize_pem()).expect("written");
    let files = TlsFiles {
        certificates,
        key: Some(of_key),
        authorities: None,
        clients: ClientCertificates::Ignored,
        speaks_1_2: true,
        protocols: &["http/1.1"],
    };
    let tls = files.read().expect("certificates");
    let address = ([127, 0, 0, 1], 0).into();
    let settings = HttpSettings { address, takes_names: false, tokens: None, face: Face::Api };
    let bound = BoundConditions::bind(vec![settings]).expect("an address");
    let server = bound.encrypted(&tls, Duration::from_secs(10));
    let server = server.start(&folder.path().join("data")).expect("a server");
    let trust = Trust { authorities: pem.as_bytes(), identity: None, name: None };
    let client = Client::encrypted(server.addresses()[0], &trust, None, Duration::from_secs(20));
    let why = client.expect("a client").get("/tags", &[]).expect_err("refused").to_string();
    assert!(why.contains("make one with CA:FALSE"), "{why}");
}
