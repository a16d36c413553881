//! Listening sockets: TCP, Unix stream and UDP.
//!
//! Control plane: done once, before anything is served.

use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, Uid, chownat, fchmod, fstat, open};
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, getsockname, listen,
    socket_with, sockopt,
};

use crate::Address;
use crate::stream::family;
use crate::transport::Transport;

const FLAGS: SocketFlags = SocketFlags::NONBLOCK.union(SocketFlags::CLOEXEC);

/// Options of a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListenOptions {
    /// The most connections that may wait to be accepted; the kernel's own limit is
    /// `net.core.somaxconn`.
    pub backlog: i32,
    /// The permissions of a Unix socket's file; `0o700` by default. Without any the umask decides.
    pub unix_mode: Option<u32>,
    /// Whether each write is sent at once (`TCP_NODELAY`). Otherwise a small one waits for the
    /// acknowledgement of the one before it (Nagle's algorithm).
    pub no_delay: bool,
    /// The least time between two accepted connections of the server: zero, unless connections
    /// shall wait in the backlog.
    pub accept_interval: Duration,
}

impl Default for ListenOptions {
    fn default() -> Self {
        let (no_delay, accept_interval) = (true, Duration::ZERO);
        Self { backlog: 1024, unix_mode: Some(0o700), no_delay, accept_interval }
    }
}

/// A listening stream socket, TCP or Unix.
#[derive(Debug)]
pub struct Listener {
    pub(crate) socket: OwnedFd,
    address: Address,
    options: ListenOptions,
    file: Option<SocketFile>,
    #[cfg(feature = "tls")]
    tls: Option<crate::Tls>,
}

impl Listener {
    /// Binds and listens. Port 0 takes any free one, which [`Listener::address`] returns.
    ///
    /// A stale Unix socket file, on which no server listens, is replaced; the listener's own is
    /// removed when it is dropped.
    ///
    /// # Errors
    /// When the address is in use or not permitted; the error names it.
    pub fn bind(address: &Address, options: &ListenOptions) -> io::Result<Self> {
        let bound = match address {
            Address::Internet(internet) => Self::bind_internet(internet, options),
            Address::Unix(path) => Self::bind_unix(path, options),
        };
        bound.map_err(|error| named(&error, "cannot listen on", address))
    }

    /// The bound address, with the actual port.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// How its connections are accepted.
    pub(crate) fn options(&self) -> &ListenOptions {
        &self.options
    }

    fn new(
        socket: OwnedFd,
        address: Address,
        options: &ListenOptions,
        file: Option<SocketFile>,
    ) -> Self {
        Self {
            socket,
            address,
            options: *options,
            file,
            #[cfg(feature = "tls")]
            tls: None,
        }
    }

    /// Makes a user the owner of a Unix socket's file; other listeners have none. A file that has
    /// taken its place is left alone.
    ///
    /// # Errors
    /// When the file is another one by now, or the system refuses it.
    pub fn set_owner(&self, user: u32, group: u32) -> io::Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        let owned = file.set_owner(user, group);
        owned.map_err(|error| named(&error, "cannot change the owner of", &self.address))
    }

    /// Encrypts the connections of this listener.
    #[cfg(feature = "tls")]
    #[must_use]
    pub fn with_tls(mut self, tls: crate::Tls) -> Self {
        self.tls = Some(tls);
        self
    }

    /// The transport of a new connection.
    pub(crate) fn transport(&self) -> io::Result<Transport> {
        #[cfg(feature = "tls")]
        if let Some(tls) = &self.tls {
            return Ok(Transport::Tls(Box::new(tls.session()?)));
        }
        Ok(Transport::Plain)
    }

    fn bind_internet(address: &SocketAddr, options: &ListenOptions) -> io::Result<Self> {
        let socket = socket_with(family(address), SocketType::STREAM, FLAGS, None)?;
        sockopt::set_socket_reuseaddr(&socket, true)?;
        bind(&socket, address)?;
        listen(&socket, options.backlog)?;
        let address = Address::Internet(getsockname(&socket)?.try_into()?);
        Ok(Self::new(socket, address, options, None))
    }

    fn bind_unix(path: &Path, options: &ListenOptions) -> io::Result<Self> {
        let name = SocketAddrUnix::new(path)?;
        remove_stale(path, &name)?;
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, FLAGS, None)?;
        let mode = options.unix_mode;
        if let Some(mode) = mode {
            // The file is created with the permissions of its socket, less the umask's.
            fchmod(&socket, Mode::from_bits_truncate(mode))?;
        }
        bind(&socket, &name)?;
        let file = SocketFile::at(path)?;
        if let Some(mode) = mode {
            file.set_mode(mode)?;
        }
        listen(&socket, options.backlog)?;
        Ok(Self::new(socket, Address::Unix(path.to_owned()), options, Some(file)))
    }
}

/// For servers that bring their own loop; it is non-blocking.
impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Some(file) = &self.file {
            file.remove();
        }
    }
}

/// The file of a Unix socket, identified by its inode so that another server's is never removed.
#[derive(Debug)]
struct SocketFile {
    path: PathBuf,
    inode: (u64, u64),
}

impl SocketFile {
    fn at(path: &Path) -> io::Result<Self> {
        let (_, inode, _) = Self::open(path)?;
        Ok(Self { path: path.to_owned(), inode })
    }

    /// The socket file at `path`, never a link's target, with its inode and permissions. A change
    /// by its descriptor reaches no other file, whatever is put at the path meanwhile.
    fn open(path: &Path) -> io::Result<(OwnedFd, (u64, u64), u32)> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = open(path, flags, Mode::empty())?;
        let data = fstat(&file)?;
        if FileType::from_raw_mode(data.st_mode) != FileType::Socket {
            return Err(io::Error::new(ErrorKind::AlreadyExists, "a file that is no socket"));
        }
        Ok((file, (data.st_dev, data.st_ino), data.st_mode & 0o7777))
    }

    fn open_own(&self) -> io::Result<(OwnedFd, u32)> {
        let (file, inode, mode) = Self::open(&self.path)?;
        if inode != self.inode {
            return Err(io::Error::new(ErrorKind::AlreadyExists, "another socket took its place"));
        }
        Ok((file, mode))
    }

    fn set_mode(&self, mode: u32) -> io::Result<()> {
        let (file, now) = self.open_own()?;
        if now == mode {
            return Ok(());
        }
        // fchmod(2) refuses such a descriptor; before `listen` no client can connect.
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))
    }

    fn set_owner(&self, user: u32, group: u32) -> io::Result<()> {
        let (file, _) = self.open_own()?;
        let (user, group) = (Uid::from_raw(user), Gid::from_raw(group));
        Ok(chownat(file, "", Some(user), Some(group), AtFlags::EMPTY_PATH)?)
    }

    fn remove(&self) {
        if Self::at(&self.path).is_ok_and(|now| now.inode == self.inode) {
            // If it can't be removed, the next start replaces it as a stale one.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Removes the socket file of a server that ended without doing so.
fn remove_stale(path: &Path, name: &SocketAddrUnix) -> io::Result<()> {
    match std::fs::symlink_metadata(path) {
        Ok(data) if !data.file_type().is_socket() => {
            return Err(io::Error::new(ErrorKind::AlreadyExists, "a file that is no socket"));
        }
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    }
    let probe = socket_with(AddressFamily::UNIX, SocketType::STREAM, FLAGS, None)?;
    match connect(&probe, name) {
        Err(rustix::io::Errno::CONNREFUSED) => std::fs::remove_file(path),
        Err(rustix::io::Errno::NOENT) => Ok(()),
        // A full backlog, or a refusal by the file's permissions, shows that a server listens.
        _ => Err(io::Error::new(ErrorKind::AddrInUse, "another server answers there")),
    }
}

/// Options of a datagram socket.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DatagramOptions {
    /// Other sockets may share the address (`SO_REUSEADDR`): multicasts and broadcasts reach all
    /// of them, other datagrams one.
    pub shares_address: bool,
    /// Datagrams may be sent to broadcast addresses.
    pub may_broadcast: bool,
    /// The multicast groups to join, each on the interface that has this address.
    pub groups: Vec<(Ipv4Addr, Ipv4Addr)>,
    /// Multicasts are sent over the interface that has this address, with TTL 1, and reach this
    /// host's own sockets.
    pub multicast_interface: Option<Ipv4Addr>,
}

impl DatagramOptions {
    fn set(&self, socket: &OwnedFd) -> io::Result<()> {
        if self.may_broadcast {
            sockopt::set_socket_broadcast(socket, true)?;
        }
        for (group, interface) in &self.groups {
            sockopt::set_ip_add_membership(socket, group, interface)?;
        }
        if let Some(interface) = &self.multicast_interface {
            sockopt::set_ip_multicast_if(socket, interface)?;
            sockopt::set_ip_multicast_loop(socket, true)?;
            sockopt::set_ip_multicast_ttl(socket, 1)?;
        }
        Ok(())
    }
}

/// A bound UDP address: one socket per thread, among which the kernel distributes the senders.
#[derive(Debug)]
pub struct DatagramListener {
    pub(crate) sockets: Vec<OwnedFd>,
    address: Address,
}

impl DatagramListener {
    /// Binds one socket for each of `threads`.
    ///
    /// # Errors
    /// When the address is in use, not permitted, or a Unix socket's; the error names it.
    pub fn bind(address: &Address, threads: usize) -> io::Result<Self> {
        Self::bind_with(address, threads, &DatagramOptions::default())
    }

    /// Binds one socket with these options for each of `threads`.
    ///
    /// # Errors
    /// When the address is in use, not permitted, or a Unix socket's, or an option is refused; the
    /// error names the address.
    pub fn bind_with(
        address: &Address,
        threads: usize,
        options: &DatagramOptions,
    ) -> io::Result<Self> {
        let Address::Internet(internet) = address else {
            let error = io::Error::new(ErrorKind::Unsupported, "not an internet address");
            return Err(named(&error, "cannot receive datagrams on", address));
        };
        Self::bind_internet(*internet, threads, options)
            .map_err(|error| named(&error, "cannot receive datagrams on", address))
    }

    /// The bound address, with the actual port.
    pub fn address(&self) -> &Address {
        &self.address
    }

    fn bind_internet(
        mut address: SocketAddr,
        threads: usize,
        options: &DatagramOptions,
    ) -> io::Result<Self> {
        if threads > 1 && address.port() != 0 && !options.shares_address {
            // SO_REUSEPORT also shares the address with another process of the same user. One
            // socket bound without it, and closed again, detects that the address is in use.
            bind(socket_with(family(&address), SocketType::DGRAM, FLAGS, None)?, &address)?;
        }
        let mut sockets = Vec::new();
        for _ in 0..threads.max(1) {
            let socket = socket_with(family(&address), SocketType::DGRAM, FLAGS, None)?;
            if threads > 1 {
                sockopt::set_socket_reuseport(&socket, true)?;
            }
            if options.shares_address {
                sockopt::set_socket_reuseaddr(&socket, true)?;
            }
            bind(&socket, &address)?;
            options.set(&socket)?;
            address = getsockname(&socket)?.try_into()?;
            sockets.push(socket);
        }
        Ok(Self { sockets, address: Address::Internet(address) })
    }
}

fn named(error: &io::Error, what: &str, address: &Address) -> io::Error {
    io::Error::new(error.kind(), format!("{what} {address}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::{Address, DatagramListener, ListenOptions, Listener};
    use std::io::ErrorKind;
    use std::os::unix::fs::PermissionsExt;
    use std::path::PathBuf;

    /// A temporary directory, removed when dropped.
    struct Directory(PathBuf);

    impl Directory {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("wire-{}-{name}", std::process::id()));
            std::fs::create_dir_all(&path).expect("a directory");
            Self(path)
        }

        fn socket(&self) -> Address {
            Address::Unix(self.0.join("socket"))
        }
    }

    impl Drop for Directory {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn loopback() -> Address {
        "127.0.0.1:0".parse().expect("an address")
    }

    #[test]
    fn any_port_is_reported_back_and_then_in_use() {
        let options = ListenOptions::default();
        let first = Listener::bind(&loopback(), &options).expect("bind");
        assert_ne!(first.address(), &loopback());
        let error = Listener::bind(first.address(), &options).expect_err("in use");
        assert_eq!(error.kind(), ErrorKind::AddrInUse);
        assert!(error.to_string().contains(&first.address().to_string()), "{error}");
        let address = first.address().clone();
        drop(first);
        Listener::bind(&address, &options).expect("free again");
    }

    #[test]
    fn a_stale_unix_socket_is_replaced_and_a_live_one_is_not() {
        let directory = Directory::new("stale");
        let Address::Unix(path) = directory.socket() else { unreachable!("a Unix address") };
        drop(std::os::unix::net::UnixListener::bind(&path).expect("bind"));
        assert!(path.exists(), "it was left behind");
        // More than the usual umask leaves.
        let options = ListenOptions { unix_mode: Some(0o770), ..ListenOptions::default() };
        let live = Listener::bind(&directory.socket(), &options).expect("replaced");
        let mode = std::fs::metadata(&path).expect("metadata").permissions().mode();
        assert_eq!(mode & 0o777, 0o770);
        let error = Listener::bind(&directory.socket(), &options).expect_err("live");
        assert_eq!(error.kind(), ErrorKind::AddrInUse);
        drop(live);
        assert!(!path.exists(), "removed with its listener");
        std::fs::write(&path, "notes").expect("write");
        let error = Listener::bind(&directory.socket(), &options).expect_err("no socket");
        assert_eq!(error.kind(), ErrorKind::AlreadyExists);
    }

    #[test]
    fn anothers_unix_socket_is_left_alone() {
        let directory = Directory::new("another");
        let Address::Unix(path) = directory.socket() else { unreachable!("a Unix address") };
        let first = Listener::bind(&directory.socket(), &ListenOptions::default()).expect("bind");
        let mode = std::fs::metadata(&path).expect("metadata").permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        std::fs::remove_file(&path).expect("remove");
        let _second = std::os::unix::net::UnixListener::bind(&path).expect("bind");
        let error = first.set_owner(0, 0).expect_err("another's");
        assert!(error.to_string().contains("took its place"), "{error}");
        drop(first);
        assert!(path.exists());
    }

    #[test]
    fn datagram_sockets_share_one_port_between_threads_but_not_between_servers() {
        for threads in [1, 3] {
            let first = DatagramListener::bind(&loopback(), threads).expect("bind");
            assert_eq!(first.sockets.len(), threads);
            let error = DatagramListener::bind(first.address(), threads).expect_err("in use");
            assert_eq!(error.kind(), ErrorKind::AddrInUse);
        }
    }
}
