//! A connection against frames written by hand.

use proptest::prelude::*;

use super::*;

/// What a stream has brought.
#[derive(Debug, PartialEq)]
enum Heard {
    Headers(u32, Vec<u8>, bool),
    Data(u32, Vec<u8>, bool),
    Reset(u32, u32),
}

#[derive(Default)]
struct Notes(Vec<Heard>);

impl Streams for Notes {
    fn headers(&mut self, tag: u32, block: &[u8], ends: bool) {
        self.0.push(Heard::Headers(tag, block.to_vec(), ends));
    }

    /// However many pieces it comes in.
    fn data(&mut self, tag: u32, bytes: &[u8], ends: bool) {
        if let Some(Heard::Data(last, all, ended @ false)) = self.0.last_mut()
            && *last == tag
        {
            all.extend_from_slice(bytes);
            *ended = ends;
            return;
        }
        self.0.push(Heard::Data(tag, bytes.to_vec(), ends));
    }

    fn reset(&mut self, tag: u32, code: u32) {
        self.0.push(Heard::Reset(tag, code));
    }
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let head = Head { len: payload.len(), kind, flags, stream };
    [&head.bytes()[..], payload].concat()
}

fn settings(of: &[(u16, u32)]) -> Vec<u8> {
    let one = |(name, value): &(u16, u32)| [&name.to_be_bytes()[..], &value.to_be_bytes()].concat();
    frame(kind::SETTINGS, 0, 0, &of.iter().flat_map(one).collect::<Vec<u8>>())
}

fn hear(client: &mut Client, bytes: &[u8], out: &mut Output) -> Result<Vec<Heard>, String> {
    let mut notes = Notes::default();
    let heard = client.receive(&mut Input::of(bytes), &mut notes, out);
    heard.map(|()| notes.0).map_err(|fault| fault.to_string())
}

/// A connection whose server has these settings, and where its bytes go.
fn ready(of: &[(u16, u32)]) -> (Client, Output) {
    let (mut client, mut out) =
        (Client::new(&Asks::of("localhost"), &[Path::of("/a.B/C")]), Output::new(1 << 20));
    client.open(&mut out);
    assert!(!client.may_begin());
    hear(&mut client, &settings(of), &mut out).expect("settings");
    assert!(out.take().ends_with(&frame(kind::SETTINGS, flag::ACK, 0, &[])));
    (client, out)
}

#[test]
fn a_call_is_sent_and_its_answer_is_handed_on_by_its_tag() {
    let (mut client, mut out) = ready(&[]);
    client.begin(7, 0, &mut out);
    assert_eq!(client.room(7), MAX_FRAME_BYTES);
    client.data(7, 5, true, &mut out);
    out.put(&[0; 5]);
    let sent = out.take();
    let head = Head::read(*sent.first_chunk().unwrap());
    assert_eq!((head.kind, head.flags, head.stream), (kind::HEADERS, flag::END_HEADERS, 1));
    assert!(sent.ends_with(&frame(kind::DATA, flag::END_STREAM, 1, &[0; 5])));
    let padded = frame(kind::DATA, flag::PADDED, 1, &[2, b'a', b'b', 0, 0]);
    let trailers = [
        frame(kind::HEADERS, flag::END_STREAM | flag::PRIORITY, 1, &[0, 0, 0, 0, 0, 1]),
        frame(kind::CONTINUATION, flag::END_HEADERS, 1, &[2, 3]),
    ];
    let pings = frame(kind::PING, 0, 0, b"12345678");
    let bytes = [
        frame(kind::HEADERS, flag::END_HEADERS, 1, &[0x88]),
        pings,
        padded,
        frame(99, 255, 1, b"unknown"),
        trailers.concat(),
    ];
    let heard = hear(&mut client, &bytes.concat(), &mut out).unwrap();
    let expected = [
        Heard::Headers(7, vec![0x88], false),
        Heard::Data(7, b"ab".to_vec(), false),
        Heard::Headers(7, vec![1, 2, 3], true),
    ];
    assert_eq!(heard, expected);
    assert_eq!(out.take(), frame(kind::PING, flag::ACK, 0, b"12345678"));
    assert_eq!(client.room(7), 0, "it is over");
}

#[test]
fn both_windows_hold_back_what_is_sent_and_grants_are_told() {
    let (mut client, mut out) = ready(&[(setting::INITIAL_WINDOW_SIZE, 10)]);
    client.begin(0, 0, &mut out);
    assert_eq!(client.room(0), 10);
    client.data(0, 10, false, &mut out);
    assert_eq!(client.room(0), 0);
    client.take_has_room();
    let grant = |id: u32, more: u32| frame(kind::WINDOW_UPDATE, 0, id, &more.to_be_bytes());
    hear(&mut client, &grant(1, 1), &mut out).unwrap();
    assert_eq!((client.room(0), client.take_has_room(), client.take_has_room()), (1, true, false));
    hear(&mut client, &settings(&[(setting::INITIAL_WINDOW_SIZE, 5)]), &mut out).unwrap();
    assert_eq!(client.room(0), 0, "five less than none");
    hear(&mut client, &settings(&[(setting::INITIAL_WINDOW_SIZE, 100_000)]), &mut out).unwrap();
    for _ in 0..3 {
        client.data(0, MAX_FRAME_BYTES, false, &mut out);
    }
    assert_eq!(client.room(0), 65_535 - 10 - 3 * MAX_FRAME_BYTES, "the connection's");
    assert!(hear(&mut client, &grant(0, u32::MAX), &mut out).unwrap_err().contains("2^31"));
    assert!(hear(&mut client, &grant(0, 0), &mut out).unwrap_err().contains("no bytes"));
}

#[test]
fn what_is_read_is_granted_again_by_halves() {
    let (mut client, mut out) = ready(&[]);
    client.begin(0, 0, &mut out);
    out.take();
    let data = frame(kind::DATA, 0, 1, &[0; MAX_FRAME_BYTES]);
    let mut granted = Vec::new();
    for _ in 0..CONNECTION_WINDOW as usize / MAX_FRAME_BYTES {
        hear(&mut client, &data, &mut out).unwrap();
        granted.extend(out.take());
    }
    let all: Vec<(u32, u32)> = granted
        .chunks(HEAD_BYTES + 4)
        .map(|frame| {
            (Head::read(*frame.first_chunk().unwrap()).stream, number(&frame[9..]).unwrap())
        })
        .collect();
    let of = |id| all.iter().filter(|one| one.0 == id).map(|one| one.1).sum::<u32>();
    assert_eq!([of(0), of(1)], [CONNECTION_WINDOW; 2]);
}

#[test]
fn streams_end_in_each_way() {
    let (mut client, mut out) = ready(&[(setting::MAX_CONCURRENT_STREAMS, 2)]);
    client.begin(0, 0, &mut out);
    client.begin(1, 0, &mut out);
    assert!(!client.may_begin(), "two at once");
    client.leave(0);
    assert!(client.may_begin());
    out.take();
    client.begin(0, 0, &mut out);
    assert!(out.take().starts_with(&frame(kind::RST_STREAM, 0, 1, &code::CANCEL.to_be_bytes())));
    let late = frame(kind::DATA, flag::END_STREAM, 1, b"late");
    assert_eq!(hear(&mut client, &late, &mut out).unwrap(), []);
    let reset = frame(kind::RST_STREAM, 0, 3, &2_u32.to_be_bytes());
    assert_eq!(hear(&mut client, &reset, &mut out).unwrap(), [Heard::Reset(1, 2)]);
    let early = frame(kind::HEADERS, flag::END_STREAM | flag::END_HEADERS, 5, &[]);
    let heard = hear(&mut client, &early, &mut out).unwrap();
    assert_eq!(heard, [Heard::Headers(0, vec![], true)]);
    let cancel = frame(kind::RST_STREAM, 0, 5, &code::CANCEL.to_be_bytes());
    assert_eq!(out.take(), cancel, "it had more to say");
}

#[test]
fn a_server_that_goes_refuses_what_it_has_not_begun_and_keeps_the_rest() {
    let (mut client, mut out) = ready(&[]);
    client.begin(0, 0, &mut out);
    client.begin(1, 0, &mut out);
    let goes = frame(kind::GOAWAY, 0, 0, &[0, 0, 0, 1, 0, 0, 0, 0]);
    let heard = hear(&mut client, &goes, &mut out).unwrap();
    assert_eq!(heard, [Heard::Reset(1, code::REFUSED_STREAM)]);
    assert!(!client.may_begin() && !client.is_over());
    let end = frame(kind::HEADERS, flag::END_STREAM | flag::END_HEADERS, 1, &[]);
    hear(&mut client, &end, &mut out).unwrap();
    assert!(client.is_over());
    let calm = frame(kind::GOAWAY, 0, 0, b"\0\0\0\x01\0\0\0\x0btoo_many_pings");
    let fault = hear(&mut client, &calm, &mut out).unwrap_err();
    assert!(fault.ends_with("ENHANCE_YOUR_CALM \"too_many_pings\""), "{fault}");
}

#[test]
fn what_breaks_the_protocol_says_how() {
    let (mut fresh, mut out) =
        (Client::new(&Asks::of("localhost"), &[Path::of("/a.B/C")]), Output::new(1 << 20));
    let fault = hear(&mut fresh, b"HTTP/1.1 400 Bad Request\r\n", &mut out).unwrap_err();
    assert!(fault.contains("begins with \"HTTP/1.1 400 Bad\""), "{fault}");
    let fault = hear(&mut fresh, &[21, 3, 3, 0, 2, 2, 80], &mut out).unwrap_err();
    assert!(fault.contains("speaks TLS"), "{fault}");
    let fault = |bytes: &[u8]| {
        let (mut client, mut out) = ready(&[]);
        client.begin(0, 0, &mut out);
        hear(&mut client, bytes, &mut out).unwrap_err()
    };
    assert!(fault(&frame(kind::DATA, 0, 3, &[])).contains("stream 3"));
    assert!(fault(&frame(kind::DATA, 0, 2, &[])).contains("stream 2"));
    assert!(fault(&frame(kind::HEADERS, flag::END_HEADERS, 0, &[])).contains("stream 0"));
    assert!(fault(&frame(kind::PUSH_PROMISE, 0, 1, &[])).contains("pushes"));
    assert!(fault(&frame(kind::DATA, flag::PADDED, 1, &[3, 0])).contains("padding"));
    assert!(fault(&frame(kind::CONTINUATION, 0, 1, &[])).contains("not begun"));
    assert!(fault(&frame(kind::SETTINGS, 0, 0, &[0; 5])).contains("odd length"));
    assert!(fault(&frame(kind::DATA, 0, 1, &[0; MAX_FRAME_BYTES + 1])).contains("16384"));
    let begun = frame(kind::HEADERS, 0, 1, &[]);
    assert!(fault(&[&begun[..], &frame(kind::PING, 0, 0, &[0; 8])].concat()).contains("within"));
    let more = frame(kind::CONTINUATION, 0, 1, &[]).repeat(MAX_CONTINUATIONS as usize + 1);
    assert!(fault(&[&begun[..], &more].concat()).contains("32 frames"));
    let pings = frame(kind::PING, 0, 0, &[0; 8]).repeat(MAX_OWED_BYTES / 17 + 1);
    assert!(fault(&pings).contains("takes none"));
}

proptest! {
    #[test]
    fn any_bytes_do_no_harm_and_pieces_change_nothing(
        frames in prop::collection::vec(
            (0_u8..11, any::<u8>(), 0_u32..6, prop::collection::vec(any::<u8>(), 0..40)),
            0..12,
        ),
        cut in 1_usize..30,
    ) {
        let bytes: Vec<u8> = frames.iter().flat_map(|(kind, flags, stream, payload)| {
            frame(*kind, *flags, *stream, payload)
        }).collect();
        let listen = |pieces: usize| {
            let (mut client, mut out) = ready(&[]);
            client.begin(3, 0, &mut out);
            client.begin(4, 0, &mut out);
            let (mut input, mut notes) = (Input::new(), Notes::default());
            for piece in bytes.chunks(pieces) {
                input.append(piece);
                if let Err(fault) = client.receive(&mut input, &mut notes, &mut out) {
                    return (notes.0, Some(fault), Vec::new());
                }
            }
            (notes.0, None, out.take())
        };
        prop_assert_eq!(listen(cut), listen(bytes.len().max(1)));
    }
}
