//! How connections are encrypted: by the options of all services, or by ecFlow's files. Control
//! plane.

use std::path::Path;

use service::TlsFiles;
use wire::ClientCertificates;

use super::WorkflowArgs;
use crate::server::host_name;

/// The value of ECF_SSL for files that several servers share.
const SHARED: &str = "1";

/// The files, if connections are to be encrypted, and ECF_SSL as clients need it.
pub(super) fn encryption(
    args: &WorkflowArgs,
    port: u16,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<Option<(TlsFiles, String)>, String> {
    if let Some(files) = args.encryption.files() {
        return Ok(Some((files, SHARED.to_owned())));
    }
    let ssl = match variable("ECF_SSL") {
        _ if args.ssl => SHARED.to_owned(),
        Some(ssl) => ssl,
        None => return Ok(None),
    };
    let Some(home) = variable("HOME").filter(|home| !home.is_empty()) else {
        return Err("--ssl or ECF_SSL: HOME is not set, below which .ecflowrc/ssl lies".to_owned());
    };
    let folder = Path::new(&home).join(".ecflowrc/ssl");
    in_folder(&folder, &format!("{}.{port}", host_name()), &ssl).map(Some)
}

/// ecFlow's files: `server.crt`, unless `ssl` asks for those of the server or there is none.
fn in_folder(folder: &Path, own: &str, ssl: &str) -> Result<(TlsFiles, String), String> {
    let file = |name: &str, kind: &str| folder.join(format!("{name}.{kind}"));
    let shares = ["", SHARED].contains(&ssl) && file("server", "crt").exists();
    let (name, ssl) = if shares { ("server", SHARED) } else { (own, own) };
    let (certificates, key) = (file(name, "crt"), file(name, "key"));
    for path in [&certificates, &key] {
        if !path.exists() {
            return Err(format!("--ssl or ECF_SSL: {} does not exist", path.display()));
        }
    }
    refuse_encrypted(&key)?;
    let files = TlsFiles {
        certificates,
        key: Some(key),
        authorities: None,
        clients: ClientCertificates::Ignored,
        speaks_1_2: true,
        protocols: &[],
    };
    Ok((files, ssl.to_owned()))
}

fn refuse_encrypted(key: &Path) -> Result<(), String> {
    let bytes = service::read_secret(key).map_err(|why| why.to_string())?;
    let shown = key.display();
    if String::from_utf8_lossy(&bytes).contains("ENCRYPTED") {
        return Err(format!(
            "{shown}: keys with a pass phrase are not read: write one without, by `openssl rsa -in \
             {shown}`, readable by this server alone"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::in_folder;

    #[test]
    fn ecflows_files_are_the_shared_ones_unless_the_servers_own_are_wanted() {
        let folder = tempfile::tempdir().expect("a folder");
        let asked = |ssl: &str| {
            let made = in_folder(folder.path(), "h.1", ssl);
            made.map(|(files, ssl)| (files.certificates.display().to_string(), ssl))
        };
        assert!(asked("1").expect_err("none").contains("h.1.crt does not exist"));
        for name in ["h.1.crt", "h.1.key"] {
            std::fs::write(folder.path().join(name), "x").expect("written");
        }
        assert!(asked("1").is_ok_and(|(file, ssl)| file.ends_with("h.1.crt") && ssl == "h.1"));
        std::fs::write(folder.path().join("server.crt"), "x").expect("written");
        assert!(asked("1").expect_err("no key").contains("server.key does not exist"));
        assert!(asked("h.1").is_ok_and(|(_, ssl)| ssl == "h.1"));
        let key = "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n";
        std::fs::write(folder.path().join("server.key"), key).expect("written");
        assert!(asked("").expect_err("encrypted").contains("pass phrase"));
    }
}
