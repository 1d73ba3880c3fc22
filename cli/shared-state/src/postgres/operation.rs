//! Operations with their statements: one function of the schema each, so that each is one exchange.

/// Operation of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StoreOperation {
    /// Creation of an entry.
    Claim,
    /// Change of an entry.
    Change,
    /// Removal of an entry.
    Remove,
    /// Creation of an entry that the owner's oldest ones give way to.
    Put,
    /// Value of an entry.
    Get,
    /// Values of an owner's entries.
    List,
    /// Removal of an entry by its name.
    Forget,
    /// Value of an entry with its version.
    Read,
    /// Change of an entry with an expected version.
    Swap,
    /// Beginnings of an owner's values.
    Beginnings,
    /// Count of a call that begins.
    Admit,
    /// Return of an ended call's place.
    Release,
    /// Server's sign of life.
    Live,
    /// Removal of expired rows.
    Sweep,
}

impl StoreOperation {
    /// All operations, in the order of their values.
    pub const ALL: [Self; 14] = [
        Self::Claim,
        Self::Change,
        Self::Remove,
        Self::Put,
        Self::Get,
        Self::List,
        Self::Forget,
        Self::Read,
        Self::Swap,
        Self::Beginnings,
        Self::Admit,
        Self::Release,
        Self::Live,
        Self::Sweep,
    ];

    /// Name of the operation.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Claim => "claim",
            Self::Change => "change",
            Self::Remove => "remove",
            Self::Put => "put",
            Self::Get => "get",
            Self::List => "list",
            Self::Forget => "forget",
            Self::Read => "read",
            Self::Swap => "swap",
            Self::Beginnings => "beginnings",
            Self::Admit => "admit",
            Self::Release => "release",
            Self::Live => "live",
            Self::Sweep => "sweep",
        }
    }

    /// Statement of the operation.
    pub(super) fn statement(self) -> &'static str {
        match self {
            Self::Claim => "SELECT * FROM toolcrib.claim($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
            Self::Change => "SELECT toolcrib.change($1, $2, $3, $4, $5, $6, $7, $8, $9)",
            Self::Remove => "SELECT toolcrib.remove($1, $2, $3, $4, $5)",
            Self::Put => "SELECT toolcrib.put($1, $2, $3, $4, $5, $6, $7, $8, $9)",
            Self::Get => "SELECT toolcrib.get($1, $2, $3, $4)",
            Self::List => "SELECT toolcrib.list($1, $2, $3, $4)",
            Self::Forget => "SELECT toolcrib.forget($1, $2, $3, $4)",
            Self::Read => "SELECT * FROM toolcrib.read($1, $2, $3, $4, $5)",
            Self::Swap => "SELECT toolcrib.swap($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
            Self::Beginnings => "SELECT toolcrib.beginnings($1, $2, $3, $4, $5)",
            Self::Admit => "SELECT * FROM toolcrib.admit($1, $2, $3, $4, $5, $6, $7, $8, $9)",
            Self::Release => "SELECT toolcrib.release($1, $2, $3)",
            Self::Live => "SELECT toolcrib.live($1, $2)",
            Self::Sweep => "SELECT toolcrib.sweep($1)",
        }
    }
}
