//! The interface over HTTP as bytes and types: what the server answers and the client reads.
//! README.md lists requests and answers.

#[cfg(feature = "arrow")]
mod arrow;
mod body;
mod bulk;
mod cell;
mod columnar;
mod condition;
mod csv;
#[cfg(any(feature = "arrow", feature = "parquet"))]
mod flat;
mod incoming;
mod params;
mod slice;
mod view;

#[cfg(feature = "arrow")]
pub use arrow::encode_arrow;
pub use body::{
    BatchBody, ChannelBody, CloneBody, ColumnBody, DeleteBody, FolderBody, InsertBody, LockBody,
    ObjectBody, PickBody, RenameBody, SetBody, TagBody, TruncateBody,
};
pub use bulk::{Bulk, INSERT_MAGIC, decode_insert, encode_insert, split_insert};
pub use cell::{Rejected, cell_from_json, cell_from_text, cell_json, cell_text};
pub use columnar::Malformed;
pub use condition::condition;
pub use csv::{CSV_BEGIN, CsvField, CsvRecord, csv_header, csv_lines};
#[cfg(any(feature = "arrow", feature = "parquet"))]
pub use flat::{FLAT_BEGIN, flat_names};
pub use incoming::{Incoming, IncomingBatch, MAX_COLUMN_BYTES};
pub(crate) use incoming::{end as json_end, time as json_time};
pub(crate) use params::path;
pub use params::{Format, Params, numbers, percent_encode, time, time_us};
pub use slice::{MAGIC, SliceHead, decode_slice, encode_shown, encode_slice};
pub use view::{
    AnswerView, ChannelView, ChannelsView, CompactBody, CompactedBody, DiffView, ErrorBody,
    ErrorObject, ExplainView, FolderView, LineView, MadeBody, ShownView, SliceView, TagView,
    ValuesView,
};

/// The path that all requests begin with.
pub const BASE: &str = "/api/v1";

/// The header with the revision that an answer was made at.
pub const REVISION: &str = "conditions-revision";

/// The header of a slice that was asked for by a time: until when, at its revision, all times lead
/// to the same answer. 2^63 - 1 where it has no end.
pub const VALID_UNTIL: &str = "conditions-valid-until";

/// The type of the binary form of a slice.
pub const SLICE_TYPE: &str = "application/vnd.loadline.conditions-slice";

/// The type of a slice in the streaming format of Arrow IPC.
pub const ARROW_TYPE: &str = "application/vnd.apache.arrow.stream";

/// The type of the binary form of an insertion.
pub const INSERT_TYPE: &str = "application/vnd.loadline.conditions-insert";

/// The questions that are also asked with their parameters in a body, below [`BASE`].
pub const ASKED_BY_POST: [&str; 6] = ["/find", "/browse", "/count", "/diff", "/explain", "/export"];

/// The type of a question's parameters in a body (WHATWG URL, 5).
pub const FORM_TYPE: &str = "application/x-www-form-urlencoded";

/// What a change may have at most, as the server keeps it: more is inserted in parts.
pub const MAX_CHANGE_BYTES: usize = 16 << 20;

/// What a request's body may have at most.
pub const MAX_BODY_BYTES: usize = 64 << 20;
