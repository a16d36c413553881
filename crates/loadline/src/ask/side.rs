//! What a question is about: a URL, a service at an address, or a command.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use load::Reach;

use super::place::{looks_like_address, resolve};
use crate::exit::Failure;
use crate::registry::{Spoken, spoken};

/// What is measured.
#[derive(Clone, Debug)]
pub(super) enum Side {
    /// A page of a web server.
    Web(Web),
    /// Something that speaks one of the dialects, at this address.
    Service(Spoken, String),
    /// A program that is run to its end: its words.
    Command(Vec<String>),
}

/// A URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Web {
    /// `HOST:PORT` as it was typed.
    pub(super) authority: String,
    /// The same as a suite writes it.
    pub(super) address: String,
    /// The path, with its query.
    pub(super) path: String,
    /// Whether it is `https://`.
    pub(super) is_secure: bool,
}

impl Web {
    /// The URL.
    pub(super) fn url(&self) -> String {
        let scheme = if self.is_secure { "https" } else { "http" };
        format!("{scheme}://{}{}", self.authority, self.path)
    }

    /// The `host` that it is asked for: the authority, without the port that the scheme implies
    /// (RFC 9112, 3.2; RFC 9110, 4.2.3).
    pub(super) fn host_field(&self) -> &str {
        let implied = if self.is_secure { ":443" } else { ":80" };
        self.authority.strip_suffix(implied).unwrap_or(&self.authority)
    }

    /// The host's name, without brackets and port: whom its certificate has to be for.
    pub(super) fn host(&self) -> &str {
        let host = self.authority.rsplit_once(':').map_or(&self.authority[..], |(host, _)| host);
        host.trim_start_matches('[').trim_end_matches(']')
    }
}

impl Side {
    /// Reads the words of one side: a URL, `SERVICE ADDRESS`, or a command in one word.
    ///
    /// # Errors
    /// What the words are not, and what could be meant.
    pub(super) fn read(words: &[String], allow_remote: bool) -> Result<Self, Failure> {
        let split: Vec<String> =
            words.iter().flat_map(|word| word.split_whitespace()).map(str::to_owned).collect();
        let split: Vec<&str> = split.iter().map(String::as_str).collect();
        match split[..] {
            [] => Err(Failure::Usage(format!("there is nothing to try\n  {WAYS}"))),
            [url] if url.contains("://") => web(url, allow_remote),
            [url] if lacks_scheme(url) => web(&format!("http://{url}"), allow_remote),
            [address] if looks_like_address(address) => Err(Failure::Usage(format!(
                "{address}: what is spoken there? Say it, as in `loadline try memcached {address}` \
                 or `loadline try http://{address}/`\n{}",
                list()
            ))),
            [name] if named(name).is_some() || name == "http" => Err(Failure::Usage(format!(
                "where is it? Say the address, as in `loadline try {name} 127.0.0.1:11211`"
            ))),
            ["http", address] => web(&format!("http://{address}"), allow_remote),
            [name, address] if named(name).is_some() => service(name, address, allow_remote),
            [name, address] if looks_like_address(address) => Err(unknown(name)),
            [program, ..]
                if words.len() == 1
                    && (is_program(program) || (split.len() > 1 && is_for_shell(&words[0]))) =>
            {
                Ok(Self::command(&words[0]))
            }
            [name] => Err(unknown(name)),
            [program, ..] if words.len() == 1 => {
                Err(Failure::Usage(format!("{}\n  {WAYS}", no_program(program, &words[0]))))
            }
            [..] => Err(Failure::Usage(format!(
                "\"{}\" is neither SERVICE ADDRESS nor one command\n  {WAYS}",
                words.join(" ")
            ))),
        }
    }

    /// A command in one text: split at blanks, or left to the shell where it has signs of its own.
    pub(super) fn command(text: &str) -> Self {
        Self::Command(match is_for_shell(text) {
            true => ["sh", "-c", text].map(str::to_owned).to_vec(),
            false => text.split_whitespace().map(str::to_owned).collect(),
        })
    }

    /// The words of a command, which has to be there.
    ///
    /// # Errors
    /// When there is no such program.
    pub(super) fn program(words: &[String]) -> Result<Self, Failure> {
        let is_there = words.first().is_some_and(|program| is_program(program));
        let program = words.first().map(String::as_str).unwrap_or_default();
        match is_there {
            true => Ok(Self::Command(words.to_vec())),
            false => Err(Failure::Usage(no_program(program, &words.join(" ")))),
        }
    }

    /// The name of the service whose operations are asked.
    pub(super) fn service_name(&self) -> &'static str {
        match self {
            Self::Web(_) => http::load::SERVICE.name,
            Self::Service(spoken, _) => spoken.service.name,
            Self::Command(_) => "batch",
        }
    }

    /// How reports call it.
    pub(super) fn name(&self) -> String {
        let name = match self {
            Self::Web(web) => web.authority.clone(),
            Self::Service(spoken, _) => spoken.dialect.name.to_owned(),
            Self::Command(words) => match &words[..] {
                [shell, option, text] if shell == "sh" && option == "-c" => text.clone(),
                _ => words.join(" "),
            },
        };
        plain(&name)
    }

    /// Its name with the port that it listens on.
    pub(super) fn name_with_port(&self) -> String {
        match self {
            Self::Service(spoken, address) => {
                let port = address.rsplit(':').next().unwrap_or(address);
                plain(&format!("{} {port}", spoken.dialect.name))
            }
            Self::Web(_) | Self::Command(_) => self.name(),
        }
    }

    /// Its name with its address.
    pub(super) fn name_with_address(&self) -> String {
        match self {
            Self::Service(spoken, address) => plain(&format!("{} {address}", spoken.dialect.name)),
            Self::Web(web) => plain(&format!("{} {}", web.authority, web.address)),
            Self::Command(_) => self.name(),
        }
    }
}

/// Whether it is a URL of which `http://` was left out: an address with a path, and no program.
fn lacks_scheme(text: &str) -> bool {
    text.split_once('/').is_some_and(|(authority, _)| looks_like_address(authority))
        && !text.starts_with("unix:")
        && !is_program(text)
}

/// Whether a command has signs that only a shell understands.
fn is_for_shell(text: &str) -> bool {
    text.contains(|c: char| "|&;<>()$`\\\"'*?[]#~!{}\n".contains(c))
}

/// What may be typed.
const WAYS: &str = "write a URL, SERVICE ADDRESS, or a command behind `--` or in quotes";

/// The longest name of a target.
const LONGEST_NAME: usize = 40;

/// A name that a target may have: without a slash, and not too long.
fn plain(name: &str) -> String {
    let last_part = |word: &str| {
        // What the shell does with a file is kept: `2>/dev/null` is `2>null`.
        let path = word.rfind(|c| "<>=&|(;".contains(c)).map_or(0, |at| at + 1);
        let (sign, path) = word.split_at(path);
        format!("{sign}{}", path.trim_end_matches('/').rsplit('/').next().unwrap_or(path))
    };
    let tidy: Vec<String> = name.split_whitespace().map(last_part).collect();
    let tidy: String = tidy.join(" ").chars().filter(|c| !c.is_control() && *c != '/').collect();
    match tidy.chars().count() {
        0 => "command".to_owned(),
        1..=LONGEST_NAME => tidy,
        _ => tidy.chars().take(LONGEST_NAME - 1).chain(['…']).collect(),
    }
}

/// The dialect of this name, or the first one of the service of this name.
fn named(name: &str) -> Option<Spoken> {
    let dialect = spoken().find(|one| one.dialect.name == name);
    dialect.or_else(|| spoken().find(|one| one.service.name == name))
}

fn service(name: &str, address: &str, allow_remote: bool) -> Result<Side, Failure> {
    let Some(spoken) = named(name) else { return Err(unknown(name)) };
    let start = |address: &str| match spoken.server {
        Some(server) => format!(
            "start one there: loadline serve {server} --listen {address}, or any other that \
             speaks {}",
            spoken.dialect.name
        ),
        None => format!("start what speaks {} there, or name another address", spoken.dialect.name),
    };
    let address = resolve(address, spoken.dialect.reach, allow_remote, start)?;
    Ok(Side::Service(spoken, address))
}

/// Reads `http://HOST[:PORT][/PATH]`, or the same of `https`.
fn web(url: &str, allow_remote: bool) -> Result<Side, Failure> {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let is_secure = scheme.eq_ignore_ascii_case("https");
    if !is_secure && !scheme.eq_ignore_ascii_case("http") {
        return Err(Failure::Usage(format!("{url}: only http:// and https:// are\n{}", list())));
    }
    let rest = rest.split('#').next().unwrap_or(rest);
    let at = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(at);
    if authority.contains('@') {
        let message = "a URL with a password is not taken: put an authorization header into the \
                       suite that --save writes";
        return Err(Failure::Usage(message.to_owned()));
    }
    let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
    let has_port = authority.rsplit_once(':').is_some_and(|(host, port)| {
        port.parse::<u16>().is_ok() && (!host.starts_with('[') || host.ends_with(']'))
    });
    if let Some((_, port)) =
        authority.rsplit_once(':').filter(|(_, port)| !has_port && is_number(port))
    {
        return Err(Failure::Usage(format!("{url}: there is no port {port}: they end at 65535")));
    }
    let port = if is_secure { 443 } else { 80 };
    let authority = if has_port { authority.to_owned() } else { format!("{authority}:{port}") };
    let start = |address: &str| {
        let port = address.rsplit(':').next().unwrap_or("8080");
        format!(
            "start your web server there; for a trial: \
             python3 -m http.server {port} --bind 127.0.0.1"
        )
    };
    let address = resolve(&authority, Reach::Stream, allow_remote, start)?;
    Ok(Side::Web(Web { authority, address, path, is_secure }))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The services by name, a line each.
fn list() -> String {
    let shown =
        spoken().filter(|one| !one.is_hidden).map(|one| (one.dialect.name, one.dialect.doc));
    let all = [("http", "a URL: http://HOST:PORT/PATH, or https://")].into_iter().chain(shown);
    let lines = all.map(|(name, doc)| {
        format!("  {name:<14} {}", doc.split(';').next().unwrap_or(doc).trim_end_matches('.'))
    });
    format!("services:\n{}", lines.collect::<Vec<_>>().join("\n"))
}

fn unknown(name: &str) -> Failure {
    let known = spoken().flat_map(|one| [one.dialect.name, one.service.name]).chain(["http"]);
    let nearest = super::explain::nearest(name, known, 1);
    let meant = nearest.first().map(|near| format!("; did you mean {near}?")).unwrap_or_default();
    Failure::Usage(format!("there is no service \"{name}\"{meant}\n{}\n  {WAYS}", list()))
}

/// Whether there is a program of this name, by a path or on the PATH.
fn is_program(name: &str) -> bool {
    if name.contains('/') {
        return is_executable(Path::new(name));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders = std::env::split_paths(&path).filter(|folder| *folder != PathBuf::new());
    folders.any(|folder| is_executable(&folder.join(name)))
}

fn is_executable(file: &Path) -> bool {
    file.metadata().is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
}

/// Why the first word of a command is no program, and what could be meant.
fn no_program(name: &str, command: &str) -> String {
    let is_variable = name.split_once('=').is_some_and(|(variable, _)| {
        !variable.is_empty()
            && variable.bytes().all(|byte| byte == b'_' || byte.is_ascii_alphanumeric())
    });
    if is_variable {
        return format!("{name} sets a variable: start the command by `env {command}`");
    }
    if name.contains('/') && Path::new(name).is_file() {
        return format!("{name} is not executable: chmod +x {name}, or start it by what runs it");
    }
    if name.contains("://") {
        return format!("\"{command}\" is no URL: a blank in one is %20");
    }
    format!("there is no program \"{name}\" here, nor on the PATH")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &[&str]) -> Result<Side, String> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        Side::read(&words, false).map_err(|failure| failure.to_string())
    }

    #[test]
    fn a_mistake_is_answered_with_what_could_be_meant() {
        for (words, said) in [
            (&["memcachd", "127.0.0.1:1"][..], "did you mean memcached?"),
            (&["nosuch"], "pvaccess "),
            (&["127.0.0.1:11211"], "loadline try memcached 127.0.0.1:11211"),
            (&["redis"], "loadline try redis 127.0.0.1:11211"),
            (&["https://127.0.0.1:1/x"], "nothing listens on 127.0.0.1:1"),
            (&["ftp://localhost/x"], "only http:// and https://"),
            (&["http://127.0.0.1:99999/"], "there is no port 99999"),
            (&["HTTP://127.0.0.1:1/x"], "python3 -m http.server 1"),
            (&["http://me:secret@localhost/"], "authorization header"),
            (&["a", "b", "c"], "neither SERVICE ADDRESS nor one command"),
            (&["nosuchprogram --x"], "there is no program \"nosuchprogram\""),
            (&["TZ=UTC date -u"], "start the command by `env TZ=UTC date -u`"),
            (&["/proc/self/status x"], "/proc/self/status is not executable: chmod +x"),
            (&["memcached", "127.0.0.1:1"], "loadline serve cache --listen 127.0.0.1:1"),
            (&["redis", "127.0.0.1:1"], "start what speaks redis there"),
            (&["http://127.0.0.1:1/x"], "python3 -m http.server 1"),
            (&["127.0.0.1:1/x"], "python3 -m http.server 1"),
        ] {
            let error = read(words).unwrap_err();
            assert!(error.contains(said), "{words:?}: {error}");
            assert!(!error.contains("  null"), "{error}");
        }
    }

    #[test]
    fn a_page_is_asked_of_the_host_that_was_typed_without_the_port_that_is_implied() {
        let web = |authority: &str, is_secure| Web {
            authority: authority.to_owned(),
            address: String::new(),
            path: "/".to_owned(),
            is_secure,
        };
        for (authority, is_secure, host) in [
            ("my.test:80", false, "my.test"),
            ("my.test:80", true, "my.test:80"),
            ("my.test:443", true, "my.test"),
            ("127.0.0.1:8080", false, "127.0.0.1:8080"),
            ("[::1]:80", false, "[::1]"),
        ] {
            assert_eq!(web(authority, is_secure).host_field(), host);
        }
    }

    #[test]
    fn a_command_is_split_at_blanks_or_left_to_the_shell() {
        let Ok(Side::Command(words)) = read(&["sh -s"]) else { panic!("a command") };
        assert_eq!(words, ["sh", "-s"]);
        let Side::Command(words) = Side::command("ls | wc") else { panic!("a command") };
        assert_eq!(words, ["sh", "-c", "ls | wc"]);
        assert_eq!(Side::command("ls | wc").name(), "ls | wc");
        assert_eq!(Side::command("/usr/bin/gzip -9 /tmp/x").name(), "gzip -9 x");
        assert_eq!(Side::command("/bin/x 2>/dev/null >/tmp/y").name(), "x 2>null >y");
    }
}
