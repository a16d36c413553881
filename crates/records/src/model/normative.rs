//! The normative types that records have: `Normative-Types-Specification.rst`, with the fields in
//! the order of pvxs' `src/nt.cpp`.

use std::sync::Arc;

use crate::protocol::{Chosen, Field, Scalar, Structure, Type, Union, Value};

/// Which of its optional parts a normative type has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    /// What the value means: limits, description, format, units.
    pub display: bool,
    /// Between which limits it may be set.
    pub control: bool,
    /// At which limits it is alarming.
    pub value_alarm: bool,
}

fn structure(id: &str, fields: impl IntoIterator<Item = Field>) -> Type {
    Type::Structure(Structure::new(id, fields))
}

/// `alarm_t`.
pub fn alarm() -> Type {
    let fields = [("severity", Scalar::Int), ("status", Scalar::Int), ("message", Scalar::String)];
    structure("alarm_t", fields.map(|(name, kind)| Field::new(name, kind)))
}

/// `time_t`.
pub fn time() -> Type {
    structure(
        "time_t",
        [
            Field::new("secondsPastEpoch", Scalar::Long),
            Field::new("nanoseconds", Scalar::Int),
            Field::new("userTag", Scalar::Int),
        ],
    )
}

/// `enum_t`.
pub fn choice() -> Type {
    let choices = Field::new("choices", Type::array(Scalar::String));
    structure("enum_t", [Field::new("index", Scalar::Int), choices])
}

fn display(of: Scalar) -> Type {
    let texts = ["description", "format", "units"].map(|name| Field::new(name, Scalar::String));
    let limits = ["limitLow", "limitHigh"].map(|name| Field::new(name, of));
    // A string has no limits.
    structure("", limits.into_iter().filter(|_| of != Scalar::String).chain(texts))
}

fn control(of: Scalar) -> Type {
    structure("", ["limitLow", "limitHigh", "minStep"].map(|name| Field::new(name, of)))
}

fn value_alarm(of: Scalar) -> Type {
    let limits = ["lowAlarmLimit", "lowWarningLimit", "highWarningLimit", "highAlarmLimit"]
        .map(|name| Field::new(name, of));
    let severities =
        ["lowAlarmSeverity", "lowWarningSeverity", "highWarningSeverity", "highAlarmSeverity"]
            .map(|name| Field::new(name, Scalar::Int));
    let first = Field::new("active", Scalar::Boolean);
    let last = Field::new("hysteresis", Scalar::Double);
    structure("", [first].into_iter().chain(limits).chain(severities).chain([last]))
}

fn with_parts(id: &str, value: Type, of: Scalar, parts: Parts) -> Type {
    let mut fields = vec![Field::new("value", value)];
    fields.extend([Field::new("alarm", alarm()), Field::new("timeStamp", time())]);
    if parts.display {
        fields.push(Field::new("display", display(of)));
    }
    if parts.control && is_number(of) {
        fields.push(Field::new("control", control(of)));
    }
    if parts.value_alarm && is_number(of) {
        fields.push(Field::new("valueAlarm", value_alarm(of)));
    }
    structure(id, fields)
}

fn is_number(scalar: Scalar) -> bool {
    !matches!(scalar, Scalar::String | Scalar::Boolean)
}

/// `NTScalar`.
pub fn scalar(of: Scalar, parts: Parts) -> Type {
    with_parts("epics:nt/NTScalar:1.0", Type::Scalar(of), of, parts)
}

/// `NTScalarArray`.
pub fn scalar_array(of: Scalar, parts: Parts) -> Type {
    with_parts("epics:nt/NTScalarArray:1.0", Type::array(of), of, parts)
}

/// `NTEnum`.
pub fn enumeration(parts: Parts) -> Type {
    let mut fields = vec![Field::new("value", choice())];
    fields.extend([Field::new("alarm", alarm()), Field::new("timeStamp", time())]);
    if parts.display {
        let description = [Field::new("description", Scalar::String)];
        fields.push(Field::new("display", structure("", description)));
    }
    structure("epics:nt/NTEnum:1.0", fields)
}

/// `NTTable`, with the names and types of its columns.
pub fn table<'a>(columns: impl IntoIterator<Item = (&'a str, Scalar)>) -> Type {
    let columns = columns.into_iter().map(|(name, of)| Field::new(name, Type::array(of)));
    structure(
        "epics:nt/NTTable:1.0",
        [
            Field::new("labels", Type::array(Scalar::String)),
            Field::new("value", structure("", columns)),
            Field::new("descriptor", Scalar::String),
            Field::new("alarm", alarm()),
            Field::new("timeStamp", time()),
        ],
    )
}

/// `NTNameValue`.
pub fn name_value(of: Scalar) -> Type {
    structure(
        "epics:nt/NTNameValue:1.0",
        [
            Field::new("name", Type::array(Scalar::String)),
            Field::new("value", Type::array(of)),
            Field::new("descriptor", Scalar::String),
            Field::new("alarm", alarm()),
            Field::new("timeStamp", time()),
        ],
    )
}

/// `NTURI`, with the names of what is asked.
pub fn uri<'a>(query: impl IntoIterator<Item = &'a str>) -> Type {
    let query = query.into_iter().map(|name| Field::new(name, Scalar::String));
    let texts = ["scheme", "authority", "path"].map(|name| Field::new(name, Scalar::String));
    let query = Field::new("query", structure("", query));
    structure("epics:nt/NTURI:1.0", texts.into_iter().chain([query]))
}

/// What an NTNDArray holds before it was given anything: no unsigned bytes. A client of pvxs that
/// reads a union without a member, before it puts one, gets stuck.
pub fn no_pixels() -> Value {
    let kinds = Scalar::ALL.into_iter().filter(|scalar| *scalar != Scalar::String);
    let member = kinds.take_while(|scalar| *scalar != Scalar::UByte).count();
    let nodes = [Value::array(Scalar::UByte, Vec::new())].into();
    let member = u32::try_from(member).unwrap_or_default();
    Value::Union(Some(Arc::new(Chosen { member, nodes })))
}

/// `NTNDArray`: an image or other array of several dimensions.
pub fn nd_array() -> Type {
    let kinds = Scalar::ALL.into_iter().filter(|scalar| *scalar != Scalar::String);
    let value =
        Union::new("", kinds.map(|of| Field::new(&format!("{}Value", of.name()), Type::array(of))));
    let codec = structure(
        "codec_t",
        [Field::new("name", Scalar::String), Field::new("parameters", Type::Any)],
    );
    let sizes = ["size", "offset", "fullSize", "binning"].map(|name| Field::new(name, Scalar::Int));
    let reverse = Field::new("reverse", Scalar::Boolean);
    let dimension = Structure::new("dimension_t", sizes.into_iter().chain([reverse]));
    let attribute = Structure::new(
        "epics:nt/NTAttribute:1.0",
        [
            Field::new("name", Scalar::String),
            Field::new("value", Type::Any),
            Field::new("tags", Type::array(Scalar::String)),
            Field::new("descriptor", Scalar::String),
            Field::new("alarm", alarm()),
            Field::new("timeStamp", time()),
            Field::new("sourceType", Scalar::Int),
            Field::new("source", Scalar::String),
        ],
    );
    structure(
        "epics:nt/NTNDArray:1.0",
        [
            Field::new("value", Type::Union(value)),
            Field::new("codec", codec),
            Field::new("compressedSize", Scalar::Long),
            Field::new("uncompressedSize", Scalar::Long),
            Field::new("uniqueId", Scalar::Int),
            Field::new("dataTimeStamp", time()),
            Field::new("alarm", alarm()),
            Field::new("timeStamp", time()),
            Field::new("dimension", Type::Structures(dimension)),
            Field::new("attribute", Type::Structures(attribute)),
        ],
    )
}

#[cfg(test)]
mod tests {
    use super::{Parts, scalar};
    use crate::protocol::Scalar;

    #[test]
    fn a_scalar_has_the_bits_that_pvxs_gives_it() {
        let all = Parts { display: true, control: true, value_alarm: true };
        let kind = scalar(Scalar::Double, all);
        for (path, bit) in [
            ("value", 1),
            ("alarm.severity", 3),
            ("timeStamp.secondsPastEpoch", 7),
            ("display.units", 15),
            ("control.minStep", 19),
            ("valueAlarm.hysteresis", 30),
        ] {
            assert_eq!(kind.field(path).map(|found| found.0), Some(bit), "{path}");
        }
        assert_eq!(kind.width(), 31);
    }
}
