//! `--user`: the privileges of root are given up once sockets are bound.

use std::ffi::CString;
use std::fs::File;

use anyhow::{Context as _, bail};
use nix::unistd::{Gid, Uid, User, getegid, geteuid, initgroups, setgid, setuid};
use wire::Listener;

/// The user that a service becomes.
#[derive(Clone, Debug)]
pub(crate) struct Privileges {
    name: String,
    uid: Uid,
    gid: Gid,
}

impl Privileges {
    /// Looks up the user `name`.
    ///
    /// # Errors
    /// When there is no such user, or only root could become it; both are usage errors.
    pub(crate) fn of(name: &str) -> anyhow::Result<Self> {
        let user = User::from_name(name).with_context(|| format!("--user {name} (or -u)"))?;
        let Some(user) = user else {
            bail!("--user {name} (or -u): this host has no such user; name one of /etc/passwd")
        };
        if !geteuid().is_root() && geteuid() != user.uid {
            bail!("--user {name} (or -u): only root can change users; leave it out, or be root");
        }
        Ok(Self { name: name.to_owned(), uid: user.uid, gid: user.gid })
    }

    /// Makes a file the user's, if this process is root.
    pub(crate) fn give(&self, file: &File) -> std::io::Result<()> {
        if !geteuid().is_root() {
            return Ok(());
        }
        std::os::unix::fs::fchown(file, Some(self.uid.as_raw()), Some(self.gid.as_raw()))
    }

    /// Becomes the user: supplementary groups, group and user of all threads, which can't be
    /// undone. The files of Unix sockets become the user's. A process that already is that user
    /// stays what it is.
    pub(crate) fn drop_all(&self, listeners: &[Listener]) -> anyhow::Result<()> {
        let Self { name, uid, gid } = self;
        if !geteuid().is_root() {
            return Ok(());
        }
        for listener in listeners {
            listener.set_owner(uid.as_raw(), gid.as_raw())?;
        }
        let refused = || format!("--user {name}: the system refuses it");
        initgroups(&CString::new(name.as_str())?, *gid).with_context(refused)?;
        setgid(*gid).with_context(refused)?;
        setuid(*uid).with_context(refused)?;
        if geteuid() != *uid || getegid() != *gid || !uid.is_root() && setuid(Uid::from(0)).is_ok()
        {
            bail!("--user {name}: the privileges of root were not given up");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Privileges;

    #[test]
    fn an_unknown_user_is_an_error_before_anything_is_bound() {
        let said = Privileges::of("no-such-user").expect_err("unknown").to_string();
        assert!(said.contains("no such user"), "{said}");
    }
}
