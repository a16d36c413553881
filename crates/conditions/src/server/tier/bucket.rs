//! A place in an object store: an S3 bucket, or a directory. Control plane.

use std::fs::File;
use std::io::{self, Read, Write};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use object_store::aws::AmazonS3Builder;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::prefix::PrefixStore;
use object_store::{
    Certificate, ClientOptions, Error, GetOptions, ObjectStore, ObjectStoreExt as _,
    ObjectStoreScheme, RetryConfig, WriteMultipart,
};
use tokio::runtime::Runtime;
use tokio::sync::Semaphore;
use url::Url;

use crate::model::{SEGMENT_HEAD, index_end};
use crate::nopayload::server::storage::{Origin, hex};

/// How long a call is tried again that the store has not answered, or not rightly.
const RETRY_WITHIN: Duration = Duration::from_secs(30);

/// How many objects are fetched or removed at once.
const AT_ONCE: usize = 8;

/// The most bytes of them that are in memory at once, of all that fetch, in KiB. One that is larger
/// by itself is fetched alone.
const FETCHED_KIB: u32 = 64 << 10;

/// The size of the parts in which a large object is sent, and how many are on their way at once.
const PART_BYTES: usize = 8 << 20;
const PARTS_AT_ONCE: usize = 4;

/// What is fetched of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Whole,
    /// Of a segment: what is before its payload.
    Index,
}

/// Objects by name, below one place. Its calls wait: none may come from a thread of connections.
pub(super) struct Bucket {
    store: Arc<dyn ObjectStore>,
    runtime: Option<Runtime>,
    /// Room for what is fetched.
    room: Semaphore,
    /// Room for what is done on threads of its own.
    beside: Arc<Semaphore>,
}

impl Drop for Bucket {
    fn drop(&mut self) {
        // Whoever drops it may be a thread of connections, which must not wait.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Bucket {
    /// Opens `s3://BUCKET/PREFIX`, at the service with this address instead of AWS if one is given,
    /// with the credentials of the environment (AWS_ACCESS_KEY_ID and others), trusting these
    /// authorities (PEM) beside the system's; or `file:///DIRECTORY`, which is made.
    ///
    /// # Errors
    /// When it is neither, or something that the environment has to state is missing.
    pub(super) fn open(
        url: &str,
        endpoint: Option<&str>,
        authorities: Option<&[u8]>,
    ) -> anyhow::Result<Self> {
        let place: Url = url.parse().map_err(|why| anyhow::anyhow!("it is no URL: {why}"))?;
        let (scheme, prefix) = ObjectStoreScheme::parse(&place)?;
        let store: Arc<dyn ObjectStore> = match scheme {
            ObjectStoreScheme::AmazonS3 => {
                // Whether one is there already makes no difference.
                let _ = rustls::crypto::ring::default_provider().install_default();
                let retry = RetryConfig { retry_timeout: RETRY_WITHIN, ..RetryConfig::default() };
                let mut builder = AmazonS3Builder::from_env().with_url(url).with_retry(retry);
                if let Some(endpoint) = endpoint {
                    builder = builder.with_endpoint(endpoint);
                    builder = builder.with_allow_http(endpoint.starts_with("http://"));
                }
                if let Some(authorities) = authorities {
                    let all = Certificate::from_pem_bundle(authorities)?.into_iter();
                    let trust = ClientOptions::with_root_certificate;
                    builder = builder.with_client_options(all.fold(ClientOptions::new(), trust));
                }
                Arc::new(PrefixStore::new(builder.build()?, prefix))
            }
            ObjectStoreScheme::Local => {
                let folder = place.to_file_path();
                let folder = folder.map_err(|()| anyhow::anyhow!("it names no directory"))?;
                std::fs::create_dir_all(&folder)?;
                Arc::new(LocalFileSystem::new_with_prefix(folder)?.with_fsync(true))
            }
            _ => anyhow::bail!("it is neither s3://BUCKET/PREFIX nor file:///DIRECTORY"),
        };
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("objects")
            .enable_all()
            .build()?;
        let room = Semaphore::new(FETCHED_KIB as usize);
        let beside = Arc::new(Semaphore::new(AT_ONCE));
        Ok(Self { store, runtime: Some(runtime), room, beside })
    }

    fn wait<T>(&self, call: impl Future<Output = Result<T, Error>>) -> io::Result<T> {
        let Some(runtime) = &self.runtime else { return Err(io::ErrorKind::NotConnected.into()) };
        runtime.handle().block_on(call).map_err(io::Error::from)
    }

    /// Keeps an object.
    pub(super) fn put(&self, name: &str, bytes: Bytes) -> io::Result<()> {
        self.wait(self.store.put(&Path::from(name), bytes.into())).map(drop)
    }

    /// Keeps an object, however large.
    pub(super) fn put_all(&self, name: &str, from: &mut dyn Read) -> io::Result<()> {
        let upload = self.wait(self.store.put_multipart(&Path::from(name)))?;
        let mut upload = WriteMultipart::new_with_chunk_size(upload, PART_BYTES);
        let mut part = vec![0; PART_BYTES];
        loop {
            match from.read(&mut part)? {
                0 => break,
                read => {
                    self.wait(upload.wait_for_capacity(PARTS_AT_ONCE))?;
                    // Parts are sent by tasks of the runtime.
                    self.wait(async {
                        upload.write(&part[..read]);
                        Ok(())
                    })?;
                }
            }
        }
        self.wait(upload.finish()).map(drop)
    }

    /// An object's bytes, into a file.
    pub(super) fn get(&self, name: &str, into: &mut dyn Write) -> io::Result<()> {
        let path = Path::from(name);
        let mut bytes = self.wait(self.store.get(&path))?.into_stream();
        while let Some(part) = self.wait(bytes.try_next())? {
            into.write_all(&part)?;
        }
        Ok(())
    }

    /// Does work that waits for calls on a thread of its own, and some at once.
    pub(super) fn beside(&self, work: impl FnOnce() + Send + 'static) {
        let Some(runtime) = &self.runtime else { return };
        let turn = Arc::clone(&self.beside);
        drop(runtime.spawn(async move {
            // It is never closed.
            let _turn = turn.acquire().await;
            // What panics has been printed.
            let _ = tokio::task::spawn_blocking(work).await;
        }));
    }

    /// Objects of these sizes, or a part of each, with what each was asked for by, in the order in
    /// which they come; none where there is no such object, or one of another size. What all calls
    /// have in memory together is limited.
    ///
    /// # Errors
    /// `each`'s, and the store's for other reasons than that there is no such object.
    pub(super) fn get_each<K>(
        &self,
        wanted: impl IntoIterator<Item = (K, String, u64)>,
        part: Part,
        mut each: impl FnMut(K, Option<Bytes>) -> io::Result<()>,
    ) -> io::Result<()> {
        let fetch = |(key, name, size): (K, String, u64)| async move {
            let path = Path::from(name);
            let kib = u32::try_from(size.div_ceil(1024)).unwrap_or(u32::MAX).min(FETCHED_KIB);
            // It is never closed.
            let room = self.room.acquire_many(kib).await.ok();
            let head = (part == Part::Index).then(|| (0..(SEGMENT_HEAD as u64).min(size)).into());
            let asked = GetOptions { range: head, ..GetOptions::default() };
            let found = match self.store.get_opts(&path, asked).await {
                Ok(found) if found.meta.size == size => found.bytes().await?,
                Ok(_) | Err(Error::NotFound { .. }) => return Ok((key, None, room)),
                Err(error) => return Err(error),
            };
            if part == Part::Whole {
                return Ok((key, Some(found), room));
            }
            let Some(end) = index_end(&found).filter(|end| *end <= size) else {
                return Ok((key, None, room));
            };
            match self.store.get_range(&path, 0..end).await {
                Ok(index) => Ok((key, Some(index), room)),
                Err(Error::NotFound { .. }) => Ok((key, None, room)),
                Err(error) => Err(error),
            }
        };
        let mut fetched = stream::iter(wanted).map(fetch).buffer_unordered(AT_ONCE).boxed_local();
        while let Some((key, bytes, _room)) = self.wait(fetched.try_next())? {
            each(key, bytes)?;
        }
        Ok(())
    }

    /// The names of all objects below a folder.
    pub(super) fn list(&self, folder: &str) -> io::Result<Vec<String>> {
        let folder = Path::from(folder);
        let listed = self.store.list(Some(&folder));
        let name = |meta: object_store::ObjectMeta| {
            let below = meta.location.prefix_match(&folder);
            below.map(|parts| parts.map(|part| part.as_ref().to_owned()).collect::<Vec<_>>())
        };
        let names = self.wait(listed.map_ok(name).try_collect::<Vec<_>>())?;
        Ok(names.into_iter().flatten().map(|parts| parts.join("/")).collect())
    }

    /// Removes objects.
    pub(super) fn remove(&self, names: &[String]) -> io::Result<()> {
        let paths: Vec<_> = names.iter().map(|name| Ok(Path::from(name.as_str()))).collect();
        let removed = self.store.delete_stream(stream::iter(paths).boxed());
        self.wait(removed.try_for_each(|_| async { Ok(()) }))
    }
}

/// Where the files of NoPayloadDB's interface are.
const FILES: &str = "files";

/// The name of a stored file's object.
pub(super) fn file(sha256: &[u8]) -> String {
    format!("{FILES}/{}", hex(sha256))
}

impl Origin for Bucket {
    fn put(&self, name: &str, file: &mut File) -> io::Result<()> {
        self.put_all(&format!("{FILES}/{name}"), file)
    }

    fn get(&self, name: &str, into: &mut dyn Write) -> io::Result<()> {
        Self::get(self, &format!("{FILES}/{name}"), into)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_kept_found_and_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        let url = format!("file://{}/new", folder.path().display());
        let bucket = Bucket::open(&url, None, None).expect("a bucket");
        bucket.put("a/1", Bytes::from_static(b"one")).expect("kept");
        let large: Vec<u8> = (0..2_500_000_u32).flat_map(u32::to_le_bytes).collect();
        bucket.put_all("a/2", &mut large.as_slice()).expect("kept");
        let mut read = Vec::new();
        bucket.get("a/2", &mut read).expect("there");
        assert!(read == large);
        let mut found = Vec::new();
        let wanted = [(1, "a/1", 3), (2, "a/1", 4), (3, "a/3", 3)];
        let wanted = wanted.map(|(key, name, size)| (key, name.to_owned(), size));
        let each = |key, bytes| {
            found.push((key, bytes));
            Ok(())
        };
        bucket.get_each(wanted, Part::Whole, each).expect("fetched");
        found.sort();
        assert_eq!(found, [(1, Some(Bytes::from_static(b"one"))), (2, None), (3, None)]);
        let mut names = bucket.list("a").expect("listed");
        names.sort();
        assert_eq!(names, ["1", "2"]);
        bucket.remove(&["a/1".to_owned()]).expect("removed");
        assert_eq!(bucket.list("a").expect("listed"), ["2"]);
        let error = bucket.get("a/1", &mut read).expect_err("gone");
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn what_names_no_store_is_refused() {
        for url in ["segments", "https://host/x", "memory:///"] {
            assert!(Bucket::open(url, None, None).is_err(), "{url}");
        }
    }
}
