//! The interface over HTTP as bytes and types: what the server answers and the client reads.
//! README.md lists requests and answers.

mod body;
mod cell;
mod params;
mod slice;
mod view;

pub use body::{
    BatchBody, ChannelBody, CloneBody, ColumnBody, DeleteBody, FolderBody, InsertBody, LockBody,
    ObjectBody, RenameBody, SetBody, TagBody, TruncateBody,
};
pub use cell::{Rejected, cell_from_json, cell_from_text, cell_json, cell_text};
pub use params::{Format, Params, numbers, percent_encode, time, time_us};
pub use slice::{BadSlice, MAGIC, SliceHead, decode_slice, encode_slice};
pub use view::{AnswerView, ErrorBody, FolderView, MadeBody, SliceView, TagView, ValuesView};

/// The path that all requests begin with.
pub const BASE: &str = "/api/v1";

/// The header with the revision that an answer was made at.
pub const REVISION: &str = "conditions-revision";

/// The type of the binary form of a slice.
pub const SLICE_TYPE: &str = "application/vnd.loadline.conditions-slice";

/// What a request's body may have at most.
pub const MAX_BODY_BYTES: usize = 64 << 20;
