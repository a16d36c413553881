//! Services whose operations a suite has named.

use std::sync::{Mutex, PoisonError};

use crate::{Kind, Operation, Service};

/// Every service that has been made here.
static MADE: Mutex<Vec<&'static Service>> = Mutex::new(Vec::new());

/// `service` with operations of these names and kinds.
///
/// The row lives as long as the program, like the rows that are written in its code, so that the
/// data plane and findings hand names around without counting references. Each different list of
/// names is made once, however many points of a sweep use it: what is never freed is bounded by
/// the suites that a process reads.
pub(super) fn service(service: &'static Service, operations: &[(&str, Kind)]) -> &'static Service {
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    let is_same = |other: &&&'static Service| {
        let names = other.operations.iter().map(|row| (row.name, row.kind));
        other.name == service.name && names.eq(operations.iter().copied())
    };
    if let Some(known) = made.iter().find(is_same) {
        return known;
    }
    let row = |(name, kind): &(&str, Kind)| Operation {
        name: String::leak((*name).to_owned()),
        kind: *kind,
        doc: "A request of the suite.",
    };
    let operations = Vec::leak(operations.iter().map(row).collect());
    let named = Box::leak(Box::new(Service { operations, ..*service }));
    made.push(named);
    named
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::SERVICE;

    #[test]
    fn the_same_names_are_the_same_row_and_others_another() {
        let one = service(&SERVICE, &[("a", Kind::Read), ("b", Kind::Write)]);
        assert!(std::ptr::eq(one, service(&SERVICE, &[("a", Kind::Read), ("b", Kind::Write)])));
        assert!(!std::ptr::eq(one, service(&SERVICE, &[("a", Kind::Read), ("b", Kind::Read)])));
        assert_eq!((one.operation("b"), one.dialects.len()), (Some(1), 1));
    }
}
