//! What the channel `server` can be called for: pvlist and pvxs' clients ask it for the channels
//! that there are, and records are made and destroyed by it.

use std::sync::Arc;

use super::channel::Channel;
use super::service::Service;
use crate::model::{declare, normative};
use crate::protocol::{Field, Item, Scalar, Structure, Type, Value};

/// The version in the answer to a client that asks what serves it.
const VERSION: &str = concat!("loadline-", env!("CARGO_PKG_VERSION"));

const HELP: &str = "\
Call me with op =
  help      this text
  channels  the names of all channels
  info      what is served, and what was counted
  create    make records and groups; `toml` declares them as in a file
  destroy   end the record `name`";

/// Answers a call: the question is an NTURI whose query has `op`, or a structure that has it.
pub(super) fn answer(
    service: &Arc<Service>,
    channel: &Channel,
    item: Option<&Item>,
) -> Result<Item, String> {
    let argument = |name: &str| {
        let item = item?;
        item.text(&format!("query.{name}")).or_else(|| item.text(name))
    };
    let wanted = |name: &str| argument(name).ok_or_else(|| format!("{name} is missing; {HELP}"));
    let has_op =
        item.is_some_and(|item| ["query.op", "op"].iter().any(|at| item.get(at).is_some()));
    let op = match argument("op") {
        None if has_op => return Err(format!("op has to be a string. {HELP}")),
        op => op.unwrap_or("help"),
    };
    match op {
        "channels" => {
            let kind = normative::scalar_array(Scalar::String, normative::Parts::default());
            Ok(dated(Item::new(kind).with("value", Value::texts(service.names()))))
        }
        "info" => Ok(info(service)),
        "help" => {
            let kind = normative::scalar(Scalar::String, normative::Parts::default());
            Ok(dated(Item::new(kind).with("value", HELP)))
        }
        "create" | "destroy" if !channel.may_put => Err("you may not change records".to_owned()),
        "create" => {
            let made = create(service, wanted("toml")?)?;
            Ok(number(i64::try_from(made).unwrap_or(i64::MAX)))
        }
        "destroy" => match service.destroy(wanted("name")?) {
            true => Ok(number(1)),
            false => Err(format!("there is no record {:?}", wanted("name")?)),
        },
        other => Err(format!("{other:?} is nothing that I do. {HELP}")),
    }
}

/// Makes the records that a text declares; all of them or, when one can't be made, none.
fn create(service: &Service, text: &str) -> Result<usize, String> {
    let declared = declare(text).map_err(|error| error.to_string())?;
    if !declared.access.0.is_empty() {
        return Err("rules of access have no place here, only records and groups".to_owned());
    }
    service.declare(declared).map_err(|error| error.to_string())
}

fn number(value: i64) -> Item {
    let kind = normative::scalar(Scalar::Long, normative::Parts::default());
    dated(Item::new(kind).with("value", value))
}

/// Of this moment.
fn dated(item: Item) -> Item {
    let now = Service::now();
    item.with("timeStamp.secondsPastEpoch", now.seconds)
        .with("timeStamp.nanoseconds", now.nanoseconds)
}

fn info(service: &Service) -> Item {
    let counters = service.counters();
    let sizes =
        [("records", service.names().len() as u64), ("connections", service.connections() as u64)];
    let numbers: Vec<_> = sizes.into_iter().chain(counters).collect();
    let texts = ["implLang", "version"].map(|name| Field::new(name, Scalar::String));
    let fields = numbers.iter().map(|(name, _)| Field::new(name, Scalar::ULong));
    let kind = Type::Structure(Structure::new("", texts.into_iter().chain(fields)));
    let mut item = Item::new(kind).with("implLang", "rust").with("version", VERSION);
    for (name, number) in numbers {
        item.set(name, number);
    }
    item
}
