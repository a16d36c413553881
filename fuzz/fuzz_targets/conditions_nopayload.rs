//! Any bytes as a body, a query and a key of NoPayloadDB's interface, and as an entry of the
//! journal: each is refused, or is a change that the model refuses or makes, whatever was made
//! before.
#![no_main]

use conditions::model::{Change as ServiceChange, Entry};
use conditions::nopayload::model::{Change, Moment, Nopayload};
use conditions::nopayload::protocol::{
    Fields, PageParams, Pairs, Query, bulk, check_key, paged, write_rows,
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let mut state = Nopayload::default();
    for name in ["unlocked", "locked", "frozen"] {
        state.apply(&Change::CreateStatus(name.to_owned()), 1, 0);
    }
    for (place, part) in data.split(|byte| *byte == 0xff).enumerate() {
        let revision = place as u64 + 2;
        for change in changes(part) {
            if state.check(&change).is_ok() {
                state.apply(&change, revision, -1);
            }
        }
        let pair = |pair: &[u8]| {
            let text = String::from_utf8_lossy(pair);
            let (name, value) = text.split_once('=').unwrap_or((&*text, ""));
            (name.to_owned(), value.to_owned())
        };
        let pairs = Pairs(part.split(|byte| *byte == b'&').map(pair).collect());
        if let Some(page) = PageParams::read(&pairs) {
            paged(state.types(), &page, |(id, _)| id);
        }
        if let Ok(asked) = Query::read(&pairs)
            && let Some((_, tag)) = state.tag_named(&asked.tag)
        {
            let at = asked.at.unwrap_or(Moment::OPEN);
            let mut out = Vec::new();
            write_rows(state.latest(tag, at), asked.shape, &mut out);
            assert!(out.starts_with(b"[") && out.ends_with(b"]"));
        }
        if let Ok(key) = std::str::from_utf8(part)
            && check_key(key).is_ok()
        {
            assert!(!key.starts_with('/') && !key.split('/').any(|name| name == ".."));
        }
    }
});

/// What bytes may mean.
fn changes(bytes: &[u8]) -> Vec<Change> {
    let mut changes = Vec::new();
    if let Ok(Entry { change: ServiceChange::Nopayload(change), .. }) = Entry::decode(bytes) {
        changes.push(change);
    }
    changes.extend(bulk(bytes).ok().map(Change::AddIovs));
    if let Ok(mut fields) = Fields::read(bytes) {
        let (name, list, tag) =
            (fields.text("name"), fields.text("payload_list"), fields.text("global_tag"));
        let (payload_type, status) = (fields.text("payload_type"), fields.text("status"));
        let (url, checksum) = (fields.text("payload_url"), fields.text("checksum"));
        let (interval, iov) = (fields.interval(), fields.number("piov_id") as u32);
        let author = fields.optional_text("author");
        changes.push(Change::CreateType(name.clone()));
        changes.push(Change::CreateTag { name: name.clone(), author, status: status.clone() });
        changes.push(Change::CreateList(payload_type.clone()));
        changes.push(Change::AttachList { list: list.clone(), tag: tag.clone() });
        changes.push(Change::CreateIov { url, checksum, interval });
        changes.push(Change::AttachIov { list, iov });
        changes.push(Change::SetStatus { tag: tag.clone(), status });
        changes.push(Change::DeleteIov { tag: tag.clone(), payload_type, interval });
        changes.push(Change::CloneTag { from: tag, to: name });
    }
    changes
}
