//! `--user`: the privileges of root are given up once sockets are bound.

use std::path::PathBuf;

use anyhow::{Context as _, bail};
use nix::unistd::{Gid, Uid, User, getegid, geteuid, setgid, setgroups, setuid};
use wire::Address;

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
    /// When there is no such user; a mistake of what was typed.
    pub(crate) fn of(name: &str) -> anyhow::Result<Self> {
        let user = User::from_name(name).with_context(|| format!("--user {name} (or -u)"))?;
        let Some(user) = user else {
            bail!("--user {name} (or -u): this host has no such user; name one of /etc/passwd")
        };
        Ok(Self { name: name.to_owned(), uid: user.uid, gid: user.gid })
    }

    /// Becomes the user: supplementary groups, group and user of all threads, which can't be
    /// undone. The files of Unix sockets become the user's. Without privileges there are none to
    /// give up, so a service that isn't started by root stays what it is.
    pub(crate) fn drop_all(&self, addresses: &[Address]) -> anyhow::Result<()> {
        let Self { name, uid, gid } = self;
        if !geteuid().is_root() {
            if geteuid() != *uid {
                let own = geteuid();
                tracing::warn!("--user {name}: only root can change users; it stays user {own}");
            }
            return Ok(());
        }
        for path in addresses.iter().filter_map(socket_file) {
            std::os::unix::fs::chown(&path, Some(uid.as_raw()), Some(gid.as_raw()))
                .with_context(|| format!("{} can't become {name}'s", path.display()))?;
        }
        let refused = || format!("--user {name}: the system refuses it");
        setgroups(&[*gid]).with_context(refused)?;
        setgid(*gid).with_context(refused)?;
        setuid(*uid).with_context(refused)?;
        if geteuid() != *uid || getegid() != *gid || !uid.is_root() && setuid(Uid::from(0)).is_ok()
        {
            bail!("--user {name}: the privileges of root were not given up");
        }
        Ok(())
    }
}

fn socket_file(address: &Address) -> Option<PathBuf> {
    match address {
        Address::Unix(path) => Some(path.clone()),
        Address::Internet(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::Privileges;

    #[test]
    fn an_unknown_user_is_an_error_before_anything_is_bound() {
        let said = Privileges::of("no-such-user").expect_err("unknown").to_string();
        assert!(said.contains("no such user"), "{said}");
        assert_eq!(Privileges::of("root").expect("known").uid.as_raw(), 0);
    }
}
