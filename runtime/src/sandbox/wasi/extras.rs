//! Host data of a call for `wasi:config` and `wasi:keyvalue`.

use std::sync::Arc;

use crate::call::Denial;
use crate::store::keyvalue::Store;

/// Host data for `wasi:config` and `wasi:keyvalue`. The default contains nothing and grants nothing.
#[derive(Clone)]
pub(crate) struct WasiExtras {
    /// Tool settings, or a description of their error.
    pub(crate) settings: Settings,
    /// Store of the tool; or the denial to record, if there is one.
    pub(crate) store: Option<Result<Store, Denial>>,
}

impl Default for WasiExtras {
    fn default() -> Self {
        Self { settings: Ok(Arc::default()), store: None }
    }
}

/// Settings by key, in the order of the configuration.
pub(crate) type Settings = Result<Arc<[(String, String)]>, String>;
