//! Open MPI's C interface, opened at run time: this program is built and starts without it. The
//! only `unsafe` code of MPI: a dozen functions and three objects of the library, and buffers that
//! are the library's while a message is on its way.
//!
//! Open MPI's handles are addresses of objects that it exports; those of MPICH are numbers, so
//! that a call with the other one's would be a fault. A library without these objects is refused.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::fmt;
use std::io;
use std::ptr::{self, NonNull};

use libloading::os::unix::{Library as File, RTLD_GLOBAL, RTLD_NOW};

/// The library's file: that of Open MPI 4 and 5.
const OPEN_MPI: &str = "libmpi.so.40";

/// MPICH's, whose handles are of another kind.
const MPICH: [&str; 2] = ["libmpich.so.12", "libmpi.so.12"];

/// What brings Open MPI.
const INSTALL: &str = "install it by `apt-get install openmpi-bin`, or as your cluster does";

/// Any thread may call, one at a time.
const SERIALIZED: c_int = 2;

/// Each connection is alone between its two ranks.
const TAG: c_int = 1;

type Handle = *mut c_void;

/// What the library writes of a message: 24 bytes in Open MPI, here with room for more.
type Arrived = [u64; 16];

type Init = unsafe extern "C" fn(*mut c_int, *mut c_void, c_int, *mut c_int) -> c_int;
type SetHandler = unsafe extern "C" fn(Handle, Handle) -> c_int;
type Number = unsafe extern "C" fn(Handle, *mut c_int) -> c_int;
type Start =
    unsafe extern "C" fn(*mut c_void, c_int, Handle, c_int, c_int, Handle, *mut Handle) -> c_int;
type Test = unsafe extern "C" fn(*mut Handle, *mut c_int, *mut Arrived) -> c_int;
type Count = unsafe extern "C" fn(*const Arrived, Handle, *mut c_int) -> c_int;
type Cancel = unsafe extern "C" fn(*mut Handle) -> c_int;
type Words = unsafe extern "C" fn(c_int, *mut c_char, *mut c_int) -> c_int;
type End = unsafe extern "C" fn() -> c_int;

/// The library. It is never closed: what it has started may run until the process ends.
pub(super) struct Library {
    world: Handle,
    byte: Handle,
    returns_errors: Handle,
    init: Init,
    set_handler: SetHandler,
    rank: Number,
    size: Number,
    send: Start,
    receive: Start,
    test: Test,
    count: Count,
    cancel: Cancel,
    words: Words,
    end: End,
}

// SAFETY: the handles are addresses of objects that the library exports for as long as it is open,
// which is for ever, and it is begun with leave to be called by any thread, one at a time.
#[allow(unsafe_code)]
unsafe impl Send for Library {}
#[allow(unsafe_code)]
// SAFETY: as above; one `Link` at a time has the buffers by which it is called.
unsafe impl Sync for Library {}

/// A function of the library.
///
/// # Safety
/// `T` has to be the type of the function of this name.
#[allow(unsafe_code)]
unsafe fn function<T: Copy>(file: &File, name: &CStr) -> Result<T, String> {
    // SAFETY: the caller's; the function stays where it is, as the library is never closed.
    let symbol = unsafe { file.get::<T>(name.to_bytes_with_nul()) };
    symbol.map(|symbol| *symbol).map_err(|_| missing(name))
}

/// The address of an object of the library.
#[allow(unsafe_code)]
fn object(file: &File, name: &CStr) -> Result<Handle, String> {
    // SAFETY: nothing is read there: the address is the handle.
    let symbol = unsafe { file.get::<Handle>(name.to_bytes_with_nul()) };
    symbol.map(|symbol| symbol.as_raw_ptr()).map_err(|_| missing(name))
}

fn missing(name: &CStr) -> String {
    format!(
        "{OPEN_MPI} is there, but isn't Open MPI's (it has no {}): {INSTALL}",
        name.to_string_lossy()
    )
}

/// Opens a library for all that it loads itself.
#[allow(unsafe_code)]
fn open(name: &str) -> Result<File, libloading::Error> {
    // SAFETY: opening runs what the library has to set up, which for MPI is little: the rest is
    // begun by `MPI_Init_thread`.
    unsafe { File::open(Some(name), RTLD_NOW | RTLD_GLOBAL) }
}

impl Library {
    /// Opens it, and finds what is called of it.
    ///
    /// # Errors
    /// When it isn't there, in words that say what brings it.
    #[allow(unsafe_code)]
    pub(super) fn open() -> Result<Self, String> {
        if cfg!(target_feature = "crt-static") {
            return Err("mpi: this loadline is linked statically, and can't open libraries".into());
        }
        let file = open(OPEN_MPI).map_err(|error| {
            let words = format!("mpi: cannot open {OPEN_MPI}, Open MPI's library ({error})");
            match MPICH.iter().any(|name| open(name).is_ok()) {
                true => format!("{words}; MPICH is there, which isn't spoken: {INSTALL}"),
                false => format!("{words}: {INSTALL}"),
            }
        })?;
        let world = object(&file, c"ompi_mpi_comm_world")?;
        let byte = object(&file, c"ompi_mpi_byte")?;
        let returns_errors = object(&file, c"ompi_mpi_errors_return")?;
        // SAFETY: the types are those of the MPI standard, with Open MPI's handles.
        let library = unsafe {
            Self {
                world,
                byte,
                returns_errors,
                init: function(&file, c"MPI_Init_thread")?,
                set_handler: function(&file, c"MPI_Comm_set_errhandler")?,
                rank: function(&file, c"MPI_Comm_rank")?,
                size: function(&file, c"MPI_Comm_size")?,
                send: function(&file, c"MPI_Isend")?,
                receive: function(&file, c"MPI_Irecv")?,
                test: function(&file, c"MPI_Test")?,
                count: function(&file, c"MPI_Get_count")?,
                cancel: function(&file, c"MPI_Cancel")?,
                words: function(&file, c"MPI_Error_string")?,
                end: function(&file, c"MPI_Finalize")?,
            }
        };
        std::mem::forget(file);
        Ok(library)
    }

    /// Begins MPI; returns this process's rank, and how many there are.
    #[allow(unsafe_code)]
    pub(super) fn begin(&self) -> io::Result<(usize, usize)> {
        let (mut granted, mut rank, mut size) = (0, 0, 0);
        // SAFETY: no arguments are given, and the numbers are written to.
        self.check(unsafe {
            (self.init)(ptr::null_mut(), ptr::null_mut(), SERIALIZED, &mut granted)
        })?;
        if granted < SERIALIZED {
            let words = "mpi: this Open MPI is built for one thread only";
            return Err(io::Error::new(io::ErrorKind::Unsupported, words));
        }
        // SAFETY: MPI has begun; the handles are the library's own, and the numbers are written to.
        self.check(unsafe { (self.set_handler)(self.world, self.returns_errors) })?;
        // SAFETY: as above.
        self.check(unsafe { (self.rank)(self.world, &mut rank) })?;
        // SAFETY: as above.
        self.check(unsafe { (self.size)(self.world, &mut size) })?;
        Ok((rank as usize, size as usize))
    }

    /// Ends MPI: nothing may be called afterwards. It waits for all ranks.
    #[allow(unsafe_code)]
    pub(super) fn end(&self) -> io::Result<()> {
        // SAFETY: it has no arguments; buffers that are still the library's stay allocated.
        self.check(unsafe { (self.end)() })
    }

    /// What the library returned, as an error in its words.
    #[allow(unsafe_code)]
    fn check(&self, code: c_int) -> io::Result<()> {
        if code == 0 {
            return Ok(());
        }
        let (mut text, mut length) = ([0_u8; 1 << 10], 0);
        // SAFETY: the text has room for any of the library's, which are 256 bytes at most.
        unsafe { (self.words)(code, text.as_mut_ptr().cast(), &mut length) };
        let text = text.get(..length.max(0) as usize).unwrap_or_default();
        Err(io::Error::other(format!("mpi: {}", String::from_utf8_lossy(text))))
    }
}

impl fmt::Debug for Library {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(OPEN_MPI)
    }
}

/// A buffer: this program's or, while a message is on its way, the library's.
#[derive(Debug)]
pub(super) struct Buffer {
    library: &'static Library,
    memory: NonNull<[u8]>,
    /// The library's, while it has the memory.
    request: Option<NonNull<c_void>>,
    receives: bool,
    /// Its last message has failed: there is no other one.
    has_failed: bool,
}

// SAFETY: the memory is this value's alone or the library's, which any thread may call.
#[allow(unsafe_code)]
unsafe impl Send for Buffer {}

impl Buffer {
    pub(super) fn new(library: &'static Library, bytes: usize) -> Self {
        let memory = Box::leak(vec![0; bytes].into_boxed_slice()).into();
        Self { library, memory, request: None, receives: false, has_failed: false }
    }

    /// Its bytes; none while the library has them.
    #[allow(unsafe_code)]
    pub(super) fn bytes(&mut self) -> &mut [u8] {
        match self.request {
            Some(_) => &mut [],
            // SAFETY: the memory was a box's, and nothing else refers to it.
            None => unsafe { self.memory.as_mut() },
        }
    }

    /// Begins to send its first bytes to a rank, or to receive from it.
    #[allow(unsafe_code)]
    fn start(&mut self, start: Start, count: usize, rank: usize) -> io::Result<()> {
        if self.request.is_some() {
            return Err(io::ErrorKind::ResourceBusy.into());
        }
        let count = count.min(self.memory.len()) as c_int;
        let (Library { world, byte, .. }, mut request) = (self.library, ptr::null_mut());
        let memory = self.memory.as_ptr().cast();
        // SAFETY: the memory has `count` bytes, and isn't touched or freed until the request that
        // is written here is done (`take`) or for ever (`drop`).
        let code = unsafe { start(memory, count, *byte, rank as c_int, TAG, *world, &mut request) };
        self.library.check(code)?;
        self.request = NonNull::new(request);
        Ok(())
    }

    pub(super) fn send(&mut self, count: usize, to: usize) -> io::Result<()> {
        self.receives = false;
        self.start(self.library.send, count, to)
    }

    pub(super) fn receive(&mut self, from: usize) -> io::Result<()> {
        self.receives = true;
        self.start(self.library.receive, self.memory.len(), from)
    }

    /// Whether the memory is this program's, or just has become it: with the count of bytes that
    /// have come, where it received. Once that has failed it goes on to fail: a message that failed
    /// is not one without bytes.
    pub(super) fn take(&mut self) -> io::Result<Option<usize>> {
        if self.has_failed {
            return Err(io::Error::other("mpi: a message before has failed"));
        }
        let taken = self.test();
        self.has_failed = taken.is_err();
        taken
    }

    #[allow(unsafe_code)]
    fn test(&mut self) -> io::Result<Option<usize>> {
        let Some(request) = self.request else { return Ok(Some(0)) };
        let (mut request, mut is_done, mut arrived) = (request.as_ptr(), 0, [0; 16]);
        // SAFETY: the request is one that is under way; what is written has room.
        let code = unsafe { (self.library.test)(&mut request, &mut is_done, &mut arrived) };
        // With an error, too, the library may have freed it, and has written the handle of none.
        self.request = NonNull::new(request);
        self.library.check(code)?;
        if is_done == 0 {
            return Ok(None);
        }
        self.request = None;
        let mut count = 0;
        if !self.receives {
            return Ok(Some(0));
        }
        // SAFETY: a message has arrived, of which this is what the library has written.
        self.library
            .check(unsafe { (self.library.count)(&arrived, self.library.byte, &mut count) })?;
        Ok(Some(usize::try_from(count).unwrap_or(0).min(self.memory.len())))
    }

    /// Gives up what is under way, if nothing has come of it.
    #[allow(unsafe_code)]
    pub(super) fn cancel(&mut self) {
        if let Some(request) = self.request {
            let mut request = request.as_ptr();
            // SAFETY: the request is one that is under way; it ends by `take`.
            unsafe { (self.library.cancel)(&mut request) };
        }
    }
}

impl Drop for Buffer {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        // What the library may still write to is never freed.
        if self.request.is_none() {
            // SAFETY: the memory was a box's, and is this value's alone.
            drop(unsafe { Box::from_raw(self.memory.as_ptr()) });
        }
    }
}

/// A library whose messages all fail, for tests of what becomes of them.
#[cfg(test)]
#[allow(unsafe_code)]
pub(super) mod failing {
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

    use super::*;

    /// How often MPI was ended.
    pub(in crate::mpi) static ENDS: AtomicUsize = AtomicUsize::new(0);

    /// Two handles, which are compared only: a request under way, and none.
    static HANDLES: [u8; 2] = [0; 2];

    fn handle(number: usize) -> Handle {
        ptr::from_ref(&HANDLES[number]).cast_mut().cast()
    }

    unsafe extern "C" fn init(_: *mut c_int, _: *mut c_void, _: c_int, _: *mut c_int) -> c_int {
        0
    }

    unsafe extern "C" fn set_handler(_: Handle, _: Handle) -> c_int {
        0
    }

    unsafe extern "C" fn number(_: Handle, _: *mut c_int) -> c_int {
        0
    }

    unsafe extern "C" fn start(
        _: *mut c_void,
        _: c_int,
        _: Handle,
        _: c_int,
        _: c_int,
        _: Handle,
        request: *mut Handle,
    ) -> c_int {
        // SAFETY: the test's.
        unsafe { *request = handle(0) };
        0
    }

    /// A request under way fails, and is freed; none is done.
    unsafe extern "C" fn test(request: *mut Handle, is_done: *mut c_int, _: *mut Arrived) -> c_int {
        // SAFETY: the test's.
        unsafe {
            let is_under_way = *request == handle(0);
            *request = handle(1);
            *is_done = 1;
            c_int::from(is_under_way)
        }
    }

    unsafe extern "C" fn count(_: *const Arrived, _: Handle, _: *mut c_int) -> c_int {
        0
    }

    unsafe extern "C" fn cancel(_: *mut Handle) -> c_int {
        0
    }

    unsafe extern "C" fn words(_: c_int, _: *mut c_char, _: *mut c_int) -> c_int {
        0
    }

    unsafe extern "C" fn end() -> c_int {
        ENDS.fetch_add(1, SeqCst);
        0
    }

    /// The library.
    pub(in crate::mpi) fn library() -> Library {
        let none = ptr::null_mut();
        Library {
            world: none,
            byte: none,
            returns_errors: none,
            init,
            set_handler,
            rank: number,
            size: number,
            send: start,
            receive: start,
            test,
            count,
            cancel,
            words,
            end,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_that_has_failed_is_not_asked_for_again_and_stays_failed() {
        let mut buffer = Buffer::new(Box::leak(Box::new(failing::library())), 8);
        buffer.receive(1).expect("it begins");
        let first = buffer.take().expect_err("it fails").to_string();
        // Its handle is the library's no more: this error is the buffer's own.
        assert_ne!(buffer.take().expect_err("it has failed").to_string(), first);
        assert!(buffer.take().is_err());
    }
}
