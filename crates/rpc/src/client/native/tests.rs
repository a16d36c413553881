//! A server that sends messages without end.

use std::io::IoSlice;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use bytes::BytesMut;

use super::*;
use crate::protocol::native::frame::{HEADER_BYTES, Header, Kind};
use crate::protocol::native::greeting::{Method, ServerGreeting};

/// Its only method.
pub(crate) const METHOD: &str = "/a.B/Stream";

/// Greets, and then has an empty message of the first call whenever it is read from.
#[derive(Debug)]
pub(crate) struct Endless {
    has_greeted: bool,
    /// Frames that were sent to it, but for those that give credit.
    sent: Arc<AtomicUsize>,
}

impl Endless {
    /// With its count of frames.
    pub(crate) fn new() -> (Self, Arc<AtomicUsize>) {
        let sent = Arc::<AtomicUsize>::default();
        (Self { has_greeted: false, sent: Arc::clone(&sent) }, sent)
    }
}

impl Carrier for Endless {
    fn send(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        let bytes = pieces.iter().flat_map(|piece| piece.iter().copied()).collect::<Vec<_>>();
        // No frame that it is sent has a payload.
        let frames = bytes.chunks(HEADER_BYTES).filter_map(|frame| frame.try_into().ok());
        let frames = frames.map(|frame| Header::decode(frame).expect("a frame"));
        let frames = frames.filter(|frame| frame.kind != Kind::Credit);
        self.sent.fetch_add(if self.has_greeted { frames.count() } else { 0 }, Relaxed);
        Ok(bytes.len())
    }

    fn receive(&mut self, space: &mut [u8], _: Option<Instant>) -> io::Result<usize> {
        let mut bytes = BytesMut::new();
        if std::mem::replace(&mut self.has_greeted, true) {
            bytes.extend_from_slice(&Header::of(Kind::Message, 1).encode());
        } else {
            let method =
                Method { name: METHOD.to_owned(), client_streams: true, server_streams: true };
            ServerGreeting { max_message: 9, max_calls: 9, methods: vec![method] }
                .encode(&mut bytes);
        }
        space[..bytes.len()].copy_from_slice(&bytes);
        Ok(bytes.len())
    }

    fn wait_for_room(&mut self, _: Option<Instant>) -> io::Result<bool> {
        Ok(false)
    }
}

#[test]
fn a_call_whose_server_sends_without_end_is_given_up_at_its_deadline() {
    let (carrier, _) = Endless::new();
    let client = NativeClient::connect(Box::new(carrier), &NativeOptions::default());
    let mut client = client.expect("a greeting");
    let method = client.any_method(METHOD).expect("a method");
    let how = Begin::within(Some(Duration::from_millis(20)), Instant::now);
    let id = client.open(method, &how).expect("a call");
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        let event = client.event_now().expect("a connection").expect("there is always one");
        match event.what {
            What::Ended(Ended { status, .. }) => {
                assert_eq!((event.id, status.code), (id, Code::DeadlineExceeded));
                return;
            }
            _ => assert!(Instant::now() < until, "it isn't given up"),
        }
    }
}
