//! `loadline records put`: once, or again and again as `longArrayPutMain` does.

use std::process::ExitCode;

use crate::client::{Operation, OperationKind};
use crate::protocol::{Bits, Item, Number, Pool, Request, Scalar, Type, Value};
use crate::server::available_bytes;
use anyhow::{Context as _, bail};

use super::again::{Again, Repeated};
use super::context::{CommandContext, begin};
use super::report::Tally;
use super::typed::{ARRAY_CHANNEL, request};
use super::{show, values};
use service::Failure;

/// Arguments of `loadline records put`.
#[derive(Debug, clap::Args)]
pub(crate) struct PutArgs {
    /// The channel
    #[arg(default_value = ARRAY_CHANNEL)]
    name: String,

    /// A value, the elements of an array (or all of them as `[1,2]`; `[]` is none), a choice, or
    /// FIELD=VALUE for several fields
    #[arg(value_name = "VALUE", allow_negative_numbers = true)]
    values: Vec<String>,

    /// Options of the put, such as record[process=true]
    #[arg(long, value_name = "REQUEST", default_value = "field()", value_parser = request)]
    request: Request,

    /// Put and read what it is then in one step, with an operation that some servers don't have
    #[arg(long, conflicts_with_all = ["size", "repeat"])]
    put_get: bool,

    /// Put arrays of this many elements, which count up from one put to the next
    #[arg(long, value_name = "ELEMENTS", conflicts_with = "values")]
    size: Option<usize>,

    #[command(flatten)]
    again: Again,

    /// Begin the put anew after this many times; 0 is never [default: 0]
    #[arg(long, value_name = "TIMES")]
    recreate_put_every: Option<u64>,
}

/// What fits into a message beside the little that goes around an array: its length has 32 bits.
const MAX_BYTES: usize = u32::MAX as usize - 4096;

/// How many elements are put by default.
const USUAL_SIZE: usize = 10;

pub(crate) fn run(context: &CommandContext, args: &PutArgs) -> Result<ExitCode, Failure> {
    let is_repeated =
        args.again.is_asked() || args.size.is_some() || args.recreate_put_every.is_some();
    if args.values.is_empty() != is_repeated {
        let message = "write either the value to put, or --size to put arrays again and again";
        return Err(Failure::Usage(message.to_owned()));
    }
    if is_repeated {
        return Ok(repeat(context, args)?);
    }
    let name = &args.name;
    let mut client = context.connect(name)?;
    let (what, request) = match args.put_get {
        true => (OperationKind::PutGet, of_both_parts(&args.request)),
        false => (OperationKind::Put, args.request.clone()),
    };
    let (_, mut operation) = begin(&mut client, name, what, &request)?;
    // What is there is looked at first: an enum's choices aren't part of its type.
    client.get(&mut operation).with_context(|| name.clone())?;
    let mut item = operation.item().context("a channel's value")?.clone();
    if args.put_get {
        // What is put may have another type than what is read; fields of one name are alike.
        let kind = operation.put_kind().context("the channel's type")?;
        let mut item = of_kind(kind, &item);
        let fields = fill(name, &mut item, &args.values)?;
        client.put_get(&mut operation, &fields, &item).with_context(|| name.clone())?;
    } else {
        let fields = fill(name, &mut item, &args.values)?;
        client.put(&operation, &fields, &item).with_context(|| name.clone())?;
        client.get(&mut operation)?;
    }
    let item = operation.item().context("a channel's value")?;
    context.print_record(name, &show::asked(&args.request, item))?;
    Ok(ExitCode::SUCCESS)
}

/// What is asked of all fields holds for both parts of a put-get.
fn of_both_parts(request: &Request) -> Request {
    let mut request = request.clone();
    let both = request.field.take().unwrap_or_default();
    request.put_field.get_or_insert_with(|| both.clone());
    request.get_field.get_or_insert(both);
    request
}

/// Values that were typed for a channel of another type are a usage error.
fn fill(name: &str, item: &mut Item, words: &[String]) -> Result<Bits, Failure> {
    values::fill(item, words).with_context(|| name.to_owned()).map_err(Failure::usage)
}

/// An item of type `kind` with those fields that `held` has, too.
fn of_kind(kind: &Type, held: &Item) -> Item {
    let mut item = Item::new(kind.clone());
    for (bit, value) in held.nodes().iter().enumerate() {
        if let Some((path, _)) = held.kind().path(bit) {
            item.set(&path, value.clone());
        }
    }
    item
}

fn repeat(context: &CommandContext, args: &PutArgs) -> anyhow::Result<ExitCode> {
    let size = args.size.unwrap_or(USUAL_SIZE);
    // What one put has left is warm for the next.
    let pool = Pool::new(1);
    let repeated = Repeated {
        context,
        again: &args.again,
        name: &args.name,
        what: OperationKind::Put,
        request: &args.request,
        recreate_every: args.recreate_put_every.unwrap_or(0),
    };
    repeated.run(Tally::new("puts"), |client, operation, report, number| {
        let (fields, item) = array(operation, &pool, size, number)?;
        client.put(operation, &fields, &item)?;
        report.add(show::array(&item));
        Ok(())
    })
}

/// A value whose array has `size` elements, all of them `number`, in memory of `pool`.
fn array(
    operation: &Operation,
    pool: &Pool,
    size: usize,
    number: u64,
) -> anyhow::Result<(Bits, Item)> {
    let kind = operation.kind().context("the channel has no type")?;
    let (bit, scalar) = match kind.field("value") {
        Some((bit, Type::Array(scalar, _))) if *scalar != Scalar::String => (bit, *scalar),
        _ => bail!("the channel holds no array of numbers"),
    };
    // A narrow type counts as far as it goes, and then anew.
    let most: i128 = match scalar {
        Scalar::Boolean => 2,
        Scalar::Byte | Scalar::UByte => 128,
        Scalar::Short | Scalar::UShort => 1 << 15,
        _ => 1 << 24,
    };
    let is_first = number == 0;
    let number = Number::Whole(i128::from(number) % most);
    let number = Value::of_number(scalar, number).context("a number of that type")?;
    let mut one = Vec::new();
    number.put_le(&mut one);
    let mut item = Item::new(kind.clone());
    let bytes = one.len().saturating_mul(size);
    if bytes > MAX_BYTES {
        bail!("an array of {size} elements takes {bytes} bytes; a message has at most {MAX_BYTES}");
    }
    // Looked at once: what was there for the first is there for the next.
    let available = available_bytes().filter(|_| is_first);
    if let Some(available) = available.filter(|available| bytes as u64 > *available) {
        bail!(
            "an array of {size} elements takes {bytes} bytes and the host has {available} \
             available: use a smaller --size"
        );
    }
    let mut buffer = pool.take(bytes);
    match <[u8; 8]>::try_from(one.as_slice()) {
        Ok(one) => buffer.as_mut().as_chunks_mut::<8>().0.fill(one),
        Err(_) => {
            buffer.as_mut().chunks_exact_mut(one.len()).for_each(|it| it.copy_from_slice(&one))
        }
    }
    item.put(bit, Value::array(scalar, buffer.freeze()));
    Ok(([bit].into_iter().collect(), item))
}
