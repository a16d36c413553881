//! Objects on their way to the server, in parts that are each inserted whole or not at all.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use service::out;

use super::context::many;
use crate::client::Client;
use crate::model::{BATCH, ColumnSpec, Object};
use crate::protocol::{Bulk, MAX_CHANGE_BYTES, encode_insert};

/// A part is sent once it has this many bytes, and never with more than a change may have.
const ENOUGH_BYTES: usize = 12 << 20;
const MOST_BYTES: usize = MAX_CHANGE_BYTES - 4_096;

/// How often progress is shown.
pub(super) const SAY_EVERY: Duration = Duration::from_secs(1);

/// Where objects belong: the folder, the tag of users, and whether only that shows them.
pub(super) type Place = (String, Option<String>, bool);

/// What was inserted.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sent {
    pub(super) objects: u64,
    pub(super) parts: u64,
    pub(super) revision: Option<u64>,
}

/// Objects that wait for the part that they are sent with.
pub(super) struct Parts {
    most_objects: usize,
    /// Those of each place, with their bytes.
    open: Vec<(Place, Bulk, usize)>,
    /// Those that came together.
    whole: Vec<Bulk>,
    objects: usize,
    bytes: usize,
    sender: SyncSender<(Vec<u8>, usize)>,
}

/// The server is not sent any more: the thread that sends knows why.
#[derive(Debug, thiserror::Error)]
#[error("a part is refused")]
struct Ended;

impl Parts {
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
        let bulk = Bulk::new(&folder, tag, only_tag, columns()?);
        let bytes = bulk.most_bytes();
        self.bytes += bytes;
        self.open.push((place.clone(), bulk, bytes));
        Ok(self.open.len() - 1)
    }

    /// Adds an object, whose records are put behind those of its place.
    pub(super) fn add<E: Into<anyhow::Error>>(
        &mut self,
        place: usize,
        object: impl FnOnce(&mut Bulk) -> Result<Object, E>,
    ) -> anyhow::Result<()> {
        let (_, bulk, before) = &mut self.open[place];
        let object = object(bulk).map_err(Into::into)?;
        bulk.batch.objects.push(object);
        let bytes = bulk.most_bytes();
        self.bytes += bytes - *before;
        *before = bytes;
        self.objects += 1;
        if self.bytes > MOST_BYTES && self.objects > 1 {
            let last = bulk.split_off(bulk.batch.objects.len() - 1);
            self.objects -= 1;
            self.send()?;
            let (_, bulk, before) = &mut self.open[place];
            let bytes = last.most_bytes();
            self.bytes += bytes - *before;
            (*bulk, *before, self.objects) = (last, bytes, 1);
        }
        match self.bytes > ENOUGH_BYTES || self.objects >= self.most_objects {
            true => self.send(),
            false => Ok(()),
        }
    }

    /// Adds objects that came together, in halves where they are too many.
    pub(super) fn add_bulk(&mut self, bulk: Bulk) -> anyhow::Result<()> {
        // The next one is last.
        let mut rest = vec![bulk];
        while let Some(mut bulk) = rest.pop() {
            let (bytes, objects) = (bulk.most_bytes(), bulk.batch.objects.len());
            if objects > 1 && (bytes > MOST_BYTES || objects > self.most_objects) {
                rest.push(bulk.split_off(objects / 2));
                rest.push(bulk);
                continue;
            }
            if self.bytes + bytes > MOST_BYTES || self.objects + objects > self.most_objects {
                self.send()?;
            }
            self.bytes += bytes;
            self.objects += objects;
            self.whole.push(bulk);
        }
        Ok(())
    }

    fn send(&mut self) -> anyhow::Result<()> {
        if self.objects == 0 {
            return Ok(());
        }
        let open = self.open.iter().map(|(_, bulk, _)| bulk);
        let filled: Vec<&Bulk> =
            open.filter(|bulk| !bulk.batch.objects.is_empty()).chain(&self.whole).collect();
        let part = encode_insert(filled.into_iter());
        let objects = std::mem::take(&mut self.objects);
        self.whole.clear();
        self.bytes = 0;
        for (_, bulk, bytes) in &mut self.open {
            bulk.batch.objects.clear();
            drop(bulk.batch.payload.split_off(0));
            *bytes = bulk.most_bytes();
            self.bytes += *bytes;
        }
        Ok(self.sender.send((part, objects)).map_err(|_| Ended)?)
    }
}

/// Sends what `fill` adds, parts of `most_objects` at most, while more is read.
pub(super) fn send(
    client: &Client,
    most_objects: Option<u32>,
    fill: impl FnOnce(&mut Parts) -> anyhow::Result<()>,
) -> anyhow::Result<Sent> {
    // One that waits, one on its way.
    let (sender, parts) = sync_channel(1);
    let most_objects = most_objects.map_or(BATCH.most, |most| BATCH.most.min(most.into())) as usize;
    let (open, whole) = (Vec::new(), Vec::new());
    let mut waiting = Parts { most_objects, open, whole, objects: 0, bytes: 0, sender };
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| each(client, parts));
        let filled = fill(&mut waiting).and_then(|()| waiting.send());
        drop(waiting);
        let (sent, refused) = thread.join().unwrap_or_default();
        let why = refused.map(anyhow::Error::from).or(filled.err());
        match why {
            None => Ok(sent),
            Some(why) if sent.objects == 0 => Err(why).context("nothing is inserted"),
            Some(why) => {
                let (count, parts) = (many(sent.objects, "object"), many(sent.parts, "part"));
                Err(why).with_context(|| format!("the first {count} are inserted, in {parts}"))
            }
        }
    })
}

/// Sends parts as they come, up to the first that is refused.
fn each(
    client: &Client,
    parts: Receiver<(Vec<u8>, usize)>,
) -> (Sent, Option<crate::client::ClientError>) {
    let (start, mut sent) = (Instant::now(), Sent::default());
    let mut said = start;
    for (part, objects) in parts {
        match client.insert(&part) {
            Ok(revision) => sent.revision = Some(revision),
            Err(why) => return (sent, Some(why)),
        }
        sent.objects += objects as u64;
        sent.parts += 1;
        if said.elapsed() >= SAY_EVERY {
            said = Instant::now();
            let rate = sent.objects as f64 / start.elapsed().as_secs_f64();
            out::note(format!("{} inserted, {rate:.0} a second", many(sent.objects, "object")));
        }
    }
    (sent, None)
}

#[cfg(test)]
mod tests {
    use service::{Face, HttpSettings};

    use super::super::input::BadInput;
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
            Ok::<_, BadInput>(Object { channel: 0, since, until: since + 1, records: 1 })
        })
    }

    #[test]
    fn what_is_too_much_for_a_part_goes_in_several_and_a_refusal_says_how_far_it_got() {
        let data = tempfile::tempdir().expect("a folder");
        let (_server, client) = served(data.path());
        let each = |most, times: &[u64], bytes| {
            send(&client, most, |parts| times.iter().try_for_each(|n| add(parts, *n, bytes)))
        };
        let sent = each(Some(3), &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9], 5).expect("inserted");
        assert_eq!((sent.objects, sent.parts), (10, 4));
        // Each has room, and two together have not.
        let sent = each(None, &[10, 12], 9 << 20).expect("inserted");
        assert_eq!((sent.objects, sent.parts), (2, 2));
        let why = each(Some(2), &[13, 14, 15, 5, 16], 5).expect_err("refused");
        let why = format!("{why:#}");
        let said =
            "the first 2 objects are inserted, in 1 part: object 1 [5, 6) of channel 0 meets";
        assert!(why.starts_with(said), "{why}");
        let why = each(None, &[20], 17 << 20).expect_err("refused");
        assert!(format!("{why:#}").starts_with("nothing is inserted: a change of"), "{why:#}");
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
        let sent = send(&client, None, |parts| parts.add_bulk(bulk)).expect("inserted");
        assert_eq!((sent.objects, sent.parts), (6, 2));
        let asked = [("folder", "/f".to_owned()), ("t", "5".to_owned())];
        let found = client.get_json("/find", &asked).expect("an answer");
        let text = found["objects"][0]["records"][0][0].as_str().expect("text").to_owned();
        assert!(text.starts_with("BQUFBQUF"), "{}", &text[..20]);
    }
}
