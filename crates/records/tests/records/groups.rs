//! Groups of records: puts are taken by all of them or by none, and each is one event.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use records::model::{Filters, Notify, PutError, Record, Time, declare};
use records::protocol::{Bits, Request, Value};
use records::server::{AddError, Limits, Service};

const RECORDS: &str = r#"
    [[record]]
    name = "x"
    type = "long"
    control = { low = 0, high = 1000000 }

    [[record]]
    name = "y"
    type = "long"

    [[record]]
    name = "wave"
    type = "long[]"
    value = [1, 2, 3]

    [[group]]
    name = "both"
    records = { x = "x", y = "y" }

    [[group]]
    name = "all"
    records = { x = "x", y = "y", w = "wave" }
"#;

fn service() -> Arc<Service> {
    let service = Service::new(Limits::default());
    assert_eq!(service.declare(declare(RECORDS).unwrap()), Ok(5));
    service
}

/// Puts values into fields, through the filters that a request asks for.
fn put(record: &Record, values: &[(&str, Value)], request: &str) -> Result<Vec<Value>, PutError> {
    let mut nodes = vec![Value::Structure; record.kind().width()];
    let mut fields = Bits::new();
    for (path, value) in values {
        let (bit, _) = record.kind().field(path).unwrap();
        nodes[bit] = value.clone();
        fields.insert(bit);
    }
    let request = Request::parse(request).unwrap();
    let filters = Filters::of(request.field.as_ref(), record.kind()).unwrap();
    record.put(Time::default(), &fields, &mut nodes, &filters, <[Value]>::to_vec)
}

fn long(record: &Record, path: &str) -> i64 {
    match record.item().get(path) {
        Some(Value::Long(number)) => *number,
        other => panic!("{path} is {other:?}"),
    }
}

#[derive(Default)]
struct Rung(AtomicBool);

impl Notify for Rung {
    fn notify(&self) {
        self.0.store(true, SeqCst);
    }
}

#[test]
fn a_put_is_taken_by_all_records_or_by_none() {
    let service = service();
    let find = |name: &str| service.find(name).unwrap();
    let (both, x, y) = (find("both"), find("x"), find("y"));
    let said = put(&both, &[("x.value", 7_i64.into()), ("y.value", 8_i64.into())], "").unwrap();
    assert_eq!(said, find("both").item().into_nodes(), "what is read at once is what was put");
    assert_eq!((long(&x, "value"), long(&y, "value")), (7, 8));
    assert_eq!((long(&both, "x.value"), long(&find("all"), "y.value")), (7, 8));
    let refused = put(&both, &[("x.value", (-1_i64).into()), ("y.value", 9_i64.into())], "");
    assert!(matches!(refused, Err(PutError::OutOfLimits { .. })), "{refused:?}");
    let refused = put(&both, &[("y.value", 9_i64.into()), ("x.value", 1_000_001_i64.into())], "");
    assert!(refused.is_err());
    assert_eq!((long(&x, "value"), long(&y, "value"), long(&both, "y.value")), (7, 8, 8));
}

#[test]
fn a_put_is_one_event_and_groups_follow_their_records() {
    let service = service();
    let find = |name: &str| service.find(name).unwrap();
    let rung = Arc::new(Rung::default());
    let all = find("all");
    let wanted: Bits = (1..all.kind().width()).collect();
    let mut monitor = all.subscribe(10, Arc::clone(&rung) as _);
    let mut next = || {
        let bits = |update: &records::model::Update, _: &[Value]| {
            let paths = update.changed.iter().filter_map(|bit| all.kind().path(bit));
            let paths: Vec<_> = paths.map(|(path, _)| path).collect();
            paths.into_iter().filter(|path| path.ends_with(".value")).collect::<Vec<_>>()
        };
        rung.0.swap(false, SeqCst).then(|| monitor.next(&wanted, bits)).flatten()
    };
    rung.notify();
    assert_eq!(next().unwrap().len(), 3, "everything at first");
    put(&find("both"), &[("x.value", 1_i64.into()), ("y.value", 2_i64.into())], "").unwrap();
    assert_eq!(next().unwrap(), ["x.value", "y.value"], "through another group");
    assert_eq!(next(), None);
    find("wave").update(Time { seconds: 5, nanoseconds: 0 }, |draft| {
        draft.set(1, Value::array(records::protocol::Scalar::Long, vec![9; 16]));
    });
    assert_eq!(next().unwrap(), ["w.value"]);
    assert_eq!(long(&all, "w.timeStamp.secondsPastEpoch"), 5);
    all.process(Time { seconds: 6, nanoseconds: 0 });
    assert!(next().unwrap().is_empty(), "only the times");
    assert_eq!(long(&find("y"), "timeStamp.secondsPastEpoch"), 6);
    let part = [("w.value", Value::array(records::protocol::Scalar::Long, vec![0; 8]))];
    put(&all, &part, "field(w.value[array=1:1])").unwrap();
    assert_eq!(next().unwrap(), ["w.value"]);
    let array = find("wave").item().get("value").unwrap().to_string();
    assert_eq!(array, "[651061555542690057, 0]");
}

#[test]
fn nobody_sees_a_group_half_changed() {
    let service = service();
    let both = service.find("both").unwrap();
    std::thread::scope(|scope| {
        let ends: Vec<_> = (0..3)
            .map(|thread| {
                let (service, both) = (&service, &both);
                scope.spawn(move || {
                    for number in 0..300 {
                        let number = Value::Long(thread * 1000 + number);
                        let values = [("x.value", number.clone()), ("y.value", number)];
                        put(both, &values, "").unwrap();
                        // Its own records' other changes come between, and groups come anew.
                        service.find("x").unwrap().process(Time::default());
                        let name = format!("made{thread}");
                        let text = format!("[[group]]\nname={name:?}\nrecords={{a=\"x\"}}");
                        service.declare(declare(&text).unwrap()).unwrap();
                        service.destroy(&name);
                    }
                })
            })
            .collect();
        while !ends.iter().all(|end| end.is_finished()) {
            let item = both.item();
            assert_eq!(item.get("x.value"), item.get("y.value"));
        }
    });
    let all = service.find("all").unwrap();
    for name in ["x", "y"] {
        let held = long(&service.find(name).unwrap(), "value");
        assert_eq!(held, long(&both, &format!("{name}.value")));
        assert_eq!(held, long(&all, &format!("{name}.value")));
    }
    assert_eq!(service.find("x").unwrap().groups().len(), 2, "those made between have gone");
}

#[test]
fn a_group_ends_with_its_records_and_has_no_groups() {
    let service = service();
    let add = |text: &str| service.declare(declare(text).unwrap());
    let nested = "[[record]]\nname='z'\ntype='int'\n[[group]]\nname='g'\nrecords={b='both',z='z'}";
    let error = add(nested).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the group \"g\" can't be: both is a group itself: name its records"
    );
    assert!(service.find("z").is_none(), "all or none are made");
    let missing = add("[[group]]\nname='g'\nrecords={a='nothing'}").unwrap_err();
    assert!(matches!(missing, AddError::Missing { .. }), "{missing}");
    assert!(service.destroy("y"));
    let names = service.names();
    assert_eq!(names.iter().map(|name| &**name).collect::<Vec<_>>(), ["wave", "x"]);
}
