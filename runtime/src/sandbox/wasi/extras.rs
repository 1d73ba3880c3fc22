//! Host data of a call for `wasi:config` and `wasi:keyvalue`.

use std::sync::Arc;

use crate::call::Denial;
use crate::keyvalue::Store;

/// What a call gives to such a component; the default gives nothing, where nothing is granted.
#[derive(Clone)]
pub(crate) struct WasiExtras {
    /// The tool's settings; or what is wrong with them.
    pub(crate) settings: Settings,
    /// What the tool keeps; or why it may keep nothing, where anybody is to be told.
    pub(crate) store: Option<Result<Store, Denial>>,
}

impl Default for WasiExtras {
    fn default() -> Self {
        Self { settings: Ok(Arc::default()), store: None }
    }
}

/// Settings by their keys, in the order in which they stand.
pub(crate) type Settings = Result<Arc<[(String, String)]>, String>;
