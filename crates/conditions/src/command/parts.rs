//! Objects on their way to the server, in parts that are each inserted whole or not at all.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use service::out;

use super::context::BadInput;
use super::way::{Stand, Way};
use crate::client::{Client, ClientError};
use crate::model::{BATCH, ColumnSpec, Object};
use crate::protocol::{Bulk, ErrorObject, MAX_CHANGE_BYTES, decode_insert, encode_insert};
use base::many;

/// A part is sent once it has this many bytes, and never with more than a change may have.
const ENOUGH_BYTES: usize = 12 << 20;
const MOST_BYTES: usize = MAX_CHANGE_BYTES - 4_096;

/// How often progress is shown.
pub(super) const SAY_EVERY: Duration = Duration::from_secs(1);

/// Where objects belong: the folder, the tag of users, and whether only that shows them.
pub(super) type Place = (String, Option<String>, bool);

/// What was inserted.
#[derive(Clone, Debug, Default)]
pub(super) struct Sent {
    pub(super) objects: u64,
    pub(super) parts: u64,
    pub(super) revision: Option<u64>,
    /// The tags of users that objects of the file have, each with its folder.
    pub(super) tags: BTreeSet<(String, String)>,
}

/// How objects of a file are sent.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sending {
    /// The most objects of a part.
    pub(super) most_objects: Option<u32>,
    /// How many objects at the beginning of the file are left out.
    pub(super) skip: u64,
    /// Whether the file has objects without lines.
    pub(super) is_binary: bool,
    /// Whether nothing is sent: what is read is only counted.
    pub(super) is_dry: bool,
}

/// Objects of one place, and where each was read.
struct Filled {
    bulk: Bulk,
    /// Lines, or in a binary file the objects' own numbers, both from 1.
    from: Vec<u64>,
}

impl Filled {
    fn split_off(&mut self, objects: usize) -> Self {
        Self { from: self.from.split_off(objects), bulk: self.bulk.split_off(objects) }
    }
}

/// What is sent at once.
#[derive(Debug)]
struct Part {
    bytes: Vec<u8>,
    objects: u64,
    /// Where the objects of each batch were read.
    from: Vec<Vec<u64>>,
}

impl Part {
    /// Where its last object was read.
    fn last(&self) -> u64 {
        self.from.iter().flatten().copied().max().unwrap_or(0)
    }

    /// Where the object was read that is refused.
    fn refused(&self, object: &ErrorObject) -> Option<u64> {
        let bulks = decode_insert(&self.bytes).ok()?;
        let mut all = bulks.iter().zip(&self.from);
        all.find_map(|(Bulk { batch, .. }, from)| {
            let own = batch.objects.get(object.place)?;
            let is_it = batch.folder == object.folder
                && (own.channel, own.since, own.until)
                    == (object.channel, object.since, object.until);
            from.get(object.place).copied().filter(|_| is_it)
        })
    }
}

/// Objects that wait for the part that they are sent with.
pub(super) struct Parts {
    most_objects: usize,
    /// How many objects are still left out.
    skip: u64,
    /// How many were read.
    read: u64,
    /// Those of each place, with their bytes.
    open: Vec<(Place, Filled, usize)>,
    /// Those that came together.
    whole: Vec<Filled>,
    objects: usize,
    bytes: usize,
    tags: BTreeSet<(String, String)>,
    sender: SyncSender<Part>,
}

/// The server is not sent any more: the thread that sends knows why.
#[derive(Debug, thiserror::Error)]
#[error("a part is refused")]
struct Ended;

impl Parts {
    /// Whether the next object is left out.
    pub(super) fn skips(&mut self) -> bool {
        let is_left_out = self.skip > 0;
        self.skip -= u64::from(is_left_out);
        self.read += u64::from(is_left_out);
        is_left_out
    }

    /// Where objects of a place are added; `columns` are its folder's.
    pub(super) fn place(
        &mut self,
        place: &Place,
        columns: impl FnOnce() -> anyhow::Result<Vec<ColumnSpec>>,
    ) -> anyhow::Result<usize> {
        if let Some(known) = self.open.iter().position(|(known, ..)| known == place) {
            return Ok(known);
        }
        let (folder, tag, only_tag) = place.clone();
        self.tags.extend(tag.clone().map(|tag| (folder.clone(), tag)));
        let bulk = Bulk::new(&folder, tag, only_tag, columns()?);
        let bytes = bulk.most_bytes();
        self.bytes += bytes;
        self.open.push((place.clone(), Filled { bulk, from: Vec::new() }, bytes));
        Ok(self.open.len() - 1)
    }

    /// Adds an object, whose records are put behind those of its place, and its line.
    pub(super) fn add<E: Into<anyhow::Error>>(
        &mut self,
        place: usize,
        object: impl FnOnce(&mut Bulk) -> Result<(Object, u64), E>,
    ) -> anyhow::Result<()> {
        let (_, filled, before) = &mut self.open[place];
        let (object, line) = object(&mut filled.bulk).map_err(Into::into)?;
        filled.bulk.batch.objects.push(object);
        filled.from.push(line);
        let bytes = filled.bulk.most_bytes();
        self.bytes += bytes - *before;
        *before = bytes;
        self.objects += 1;
        self.read += 1;
        if self.bytes > MOST_BYTES && self.objects > 1 {
            let last = filled.split_off(filled.from.len() - 1);
            self.objects -= 1;
            self.send()?;
            let (_, filled, before) = &mut self.open[place];
            let bytes = last.bulk.most_bytes();
            self.bytes += bytes - *before;
            (*filled, *before, self.objects) = (last, bytes, 1);
        }
        match self.bytes > ENOUGH_BYTES || self.objects >= self.most_objects {
            true => self.send(),
            false => Ok(()),
        }
    }

    /// Adds objects that came together, in halves where they are too many.
    pub(super) fn add_bulk(&mut self, bulk: Bulk) -> anyhow::Result<()> {
        let tag = bulk.batch.tag.clone();
        self.tags.extend(tag.map(|tag| (bulk.batch.folder.clone(), tag)));
        let first = self.read + 1;
        let count = bulk.batch.objects.len();
        self.read += count as u64;
        let mut all = Filled { bulk, from: (first..=self.read).collect() };
        let skipped = usize::try_from(self.skip).unwrap_or(usize::MAX).min(count);
        self.skip -= skipped as u64;
        if skipped > 0 {
            all = all.split_off(skipped);
        }
        if all.from.is_empty() {
            return Ok(());
        }
        // The next one is last.
        let mut rest = vec![all];
        while let Some(mut filled) = rest.pop() {
            let (bytes, objects) = (filled.bulk.most_bytes(), filled.from.len());
            if objects > 1 && (bytes > MOST_BYTES || objects > self.most_objects) {
                rest.push(filled.split_off(objects / 2));
                rest.push(filled);
                continue;
            }
            if self.bytes + bytes > MOST_BYTES || self.objects + objects > self.most_objects {
                self.send()?;
            }
            self.bytes += bytes;
            self.objects += objects;
            self.whole.push(filled);
        }
        Ok(())
    }

    fn send(&mut self) -> anyhow::Result<()> {
        if self.objects == 0 {
            return Ok(());
        }
        let open = self.open.iter_mut().map(|(_, filled, _)| filled);
        let filled = open.filter(|filled| !filled.from.is_empty()).chain(&mut self.whole);
        let filled: Vec<&mut Filled> = filled.collect();
        let bytes = encode_insert(filled.iter().map(|filled| &filled.bulk));
        let from = filled.into_iter().map(|filled| std::mem::take(&mut filled.from)).collect();
        let objects = std::mem::take(&mut self.objects) as u64;
        self.whole.clear();
        self.bytes = 0;
        for (_, Filled { bulk, .. }, bytes) in &mut self.open {
            bulk.batch.objects.clear();
            drop(bulk.batch.payload.split_off(0));
            *bytes = bulk.most_bytes();
            self.bytes += *bytes;
        }
        Ok(self.sender.send(Part { bytes, objects, from }).map_err(|_| Ended)?)
    }

    /// Sends what still waits, behind the end of the file.
    fn finish(&mut self) -> anyhow::Result<()> {
        if self.skip > 0 {
            let (read, skip) = (many(self.read, "object"), self.read + self.skip);
            let why = format!("the file has {read}, so that --skip {skip} leaves nothing");
            return Err(BadInput(why).into());
        }
        self.send()
    }
}

/// Sends the objects of `file` that `fill` adds, in parts, while more is read.
pub(super) fn send(
    client: &Client,
    file: &Path,
    sending: Sending,
    fill: impl FnOnce(&mut Parts) -> anyhow::Result<()>,
) -> anyhow::Result<Sent> {
    // One that waits, one on its way.
    let (sender, parts) = sync_channel(1);
    let most_objects = sending.most_objects.map_or(BATCH.most, |most| BATCH.most.min(most.into()));
    let mut waiting = Parts {
        most_objects: most_objects as usize,
        skip: sending.skip,
        read: 0,
        open: Vec::new(),
        whole: Vec::new(),
        objects: 0,
        bytes: 0,
        tags: BTreeSet::new(),
        sender,
    };
    let way = Way::of(file, sending.is_binary, sending.skip);
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| match sending.is_dry {
            true => (counted(parts), None),
            false => each(client, &way, parts),
        });
        let filled = fill(&mut waiting).and_then(|()| waiting.finish());
        let tags = std::mem::take(&mut waiting.tags);
        drop(waiting);
        let (sent, refused) = thread.join().unwrap_or_default();
        match refused.or(filled.err()) {
            None => Ok(Sent { tags, ..sent }),
            Some(why) => Err(why).with_context(|| way.said()),
        }
    })
}

/// Counts parts as they come.
fn counted(parts: Receiver<Part>) -> Sent {
    parts.into_iter().fold(Sent::default(), |sent, part| Sent {
        objects: sent.objects + part.objects,
        parts: sent.parts + 1,
        ..sent
    })
}

/// Sends parts as they come, up to the first that is refused or has no answer.
fn each(client: &Client, way: &Way, parts: Receiver<Part>) -> (Sent, Option<anyhow::Error>) {
    let (start, mut sent) = (Instant::now(), Sent::default());
    let mut noted = start;
    for part in parts {
        way.set(|stand| stand.on_way = (part.objects, part.last()));
        match client.insert(&part.bytes) {
            Ok(revision) => sent.revision = Some(revision),
            Err(ClientError::Refused { status: status @ 400..500, mut body }) => {
                way.set(|stand| stand.on_way.0 = 0);
                let line = body.object.as_ref().and_then(|object| part.refused(object));
                if let Some(line) = line {
                    body.error = format!("{}{line}: {}", way.prefix, body.error);
                }
                return (sent, Some(ClientError::Refused { status, body }.into()));
            }
            // Whether it was made is unknown.
            Err(why) => return (sent, Some(why.into())),
        }
        sent.objects += part.objects;
        sent.parts += 1;
        way.set(|stand| {
            *stand =
                Stand { done: stand.done + part.objects, through: part.last(), on_way: (0, 0) };
        });
        if noted.elapsed() >= SAY_EVERY {
            noted = Instant::now();
            let rate = sent.objects as f64 / start.elapsed().as_secs_f64();
            out::note(format!("{} inserted, {rate:.0} a second", many(sent.objects, "object")));
        }
    }
    (sent, None)
}

#[cfg(test)]
mod tests {
    use service::{Face, HttpSettings};

    use super::*;
    use crate::model::{Kind, Value, Versioning};
    use crate::protocol::FolderBody;
    use crate::server::{BoundConditions, ConditionsServer};

    fn columns() -> Vec<ColumnSpec> {
        vec![ColumnSpec { name: "value".to_owned(), kind: Kind::Blob }]
    }

    fn served(data: &std::path::Path) -> (ConditionsServer, Client) {
        let address = ([127, 0, 0, 1], 0).into();
        let settings = HttpSettings { address, takes_names: false, tokens: None, face: Face::Api };
        let bound = BoundConditions::bind(vec![settings]).expect("an address");
        let server = bound.start(data).expect("a server");
        let at = server.addresses()[0].to_string();
        let client = Client::new(&at, None, Duration::from_secs(60));
        let (path, description) = ("/f".to_owned(), String::new());
        let versioning = Versioning::Single;
        let folder = FolderBody { path, description, versioning, columns: columns() };
        client.post("/folders", &folder).expect("a folder");
        (server, client)
    }

    /// Adds an object over `[since, since + 1)`, of this many bytes.
    fn add(parts: &mut Parts, since: u64, bytes: usize) -> anyhow::Result<()> {
        let place = parts.place(&("/f".to_owned(), None, false), || Ok(columns()))?;
        parts.add(place, |bulk| {
            let cells = &mut bulk.batch.payload.columns[0];
            cells.push(&Value::Bytes(vec![7; bytes])).expect("a blob");
            bulk.batch.payload.rows += 1;
            let object = Object { channel: 0, since, until: since + 1, records: 1 };
            Ok::<_, BadInput>((object, since + 2))
        })
    }

    #[test]
    fn what_is_too_much_for_a_part_goes_in_several_and_a_refusal_says_how_far_it_got() {
        let data = tempfile::tempdir().expect("a folder");
        let (_server, client) = served(data.path());
        let each = |most, times: &[u64], bytes| {
            let sending = Sending { most_objects: most, ..Sending::default() };
            let fill = |parts: &mut Parts| times.iter().try_for_each(|n| add(parts, *n, bytes));
            send(&client, Path::new("f.csv"), sending, fill)
        };
        let sent = each(Some(3), &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9], 5).expect("inserted");
        assert_eq!((sent.objects, sent.parts), (10, 4));
        // Each has room, and two together have not.
        let sent = each(None, &[10, 12], 9 << 20).expect("inserted");
        assert_eq!((sent.objects, sent.parts), (2, 2));
        let why = each(Some(2), &[13, 14, 15, 5, 16], 5).expect_err("refused");
        let why = format!("{why:#}");
        let said = "the first 2 objects, through line 16, are inserted: go on behind them with \
                    --skip 2: f.csv:7: object [5, 6) of channel 0 meets";
        assert!(why.starts_with(said), "{why}");
        let why = each(None, &[20], 17 << 20).expect_err("refused");
        assert!(format!("{why:#}").starts_with("nothing is inserted: a change of"), "{why:#}");
    }

    #[test]
    fn what_is_only_read_has_the_tags_of_all_its_objects() {
        let client = Client::new("127.0.0.1:1", None, Duration::from_secs(1));
        let sending = Sending { is_dry: true, ..Sending::default() };
        let sent = send(&client, Path::new("f.jsonl"), sending, |parts| {
            for tag in [Some("a"), None, Some("b"), Some("a")] {
                parts.place(&("/f".to_owned(), tag.map(str::to_owned), false), || Ok(columns()))?;
            }
            parts.add_bulk(Bulk::new("/g", Some("c".to_owned()), true, columns()))
        });
        let tags = sent.expect("read").tags;
        let expected = [("/f", "a"), ("/f", "b"), ("/g", "c")];
        assert!(tags.iter().map(|(folder, tag)| (folder.as_str(), tag.as_str())).eq(expected));
    }

    #[test]
    fn what_came_together_is_halved_until_it_has_room() {
        let data = tempfile::tempdir().expect("a folder");
        let (_server, client) = served(data.path());
        let mut bulk = Bulk::new("/f", None, false, columns());
        for since in 0..6 {
            bulk.batch.objects.push(Object { channel: 0, since, until: since + 1, records: 1 });
            let cell = Value::Bytes(vec![since as u8; 3 << 20]);
            bulk.batch.payload.columns[0].push(&cell).expect("a blob");
            bulk.batch.payload.rows += 1;
        }
        let path = Path::new("f.bin");
        let sending = Sending { is_binary: true, ..Sending::default() };
        let sent = send(&client, path, sending, |parts| parts.add_bulk(bulk.clone()));
        let sent = sent.expect("inserted");
        assert_eq!((sent.objects, sent.parts), (6, 2));
        let again =
            send(&client, path, Sending { skip: 2, ..sending }, |parts| parts.add_bulk(bulk));
        let why = format!("{:#}", again.expect_err("refused"));
        let said = "none behind the first 2 objects, which were skipped, is inserted: f.bin: \
                    object 3: object [2, 3)";
        assert!(why.starts_with(said), "{why}");
        let asked = [("folder", "/f".to_owned()), ("t", "5".to_owned())];
        let found = client.get_json("/find", &asked).expect("an answer");
        let text = found["objects"][0]["records"][0][0].as_str().expect("text").to_owned();
        assert!(text.starts_with("BQUFBQUF"), "{}", &text[..20]);
    }
}
