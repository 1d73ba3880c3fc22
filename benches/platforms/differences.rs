//! Differences between platforms that are right, each with its reason. A difference is as narrow as it can be named: one
//! platform, one group, the cases whose names begin with a text, and one part.

/// Named difference; without a platform it holds for all of them.
pub(crate) struct Difference {
    pub(crate) platform: &'static str,
    pub(crate) group: &'static str,
    /// Start of the names of the cases.
    pub(crate) case: &'static str,
    /// Start of the names of the parts.
    pub(crate) part: &'static str,
    pub(crate) reason: &'static str,
}

const fn emulated(group: &'static str, case: &'static str, part: &'static str, reason: &'static str) -> Difference {
    Difference { platform: "aarch64", group, case, part, reason }
}

const fn windows(group: &'static str, case: &'static str, part: &'static str, reason: &'static str) -> Difference {
    Difference { platform: "windows", group, case, part, reason }
}

pub(crate) const NAMED: &[Difference] = &[
    Difference {
        platform: "",
        group: "commands",
        case: "the demonstration",
        part: "run: standard error",
        reason: "a summary is cut by its width, and the folders of the platforms have names of other lengths",
    },
    emulated(
        "hostile",
        "time-outs that drop a call midway",
        "record",
        "the emulator has not begun the program when its 2 ms are over",
    ),
    emulated(
        "hostile",
        "module: time-outs that drop a call midway",
        "record",
        "the emulator has not begun the program when its 2 ms are over",
    ),
    emulated(
        "shipped tools",
        "calculate: \"a_result_over_10000_characters_is_refused\"",
        "",
        "the tool stops itself after two seconds, in which the emulator does not get as far",
    ),
    Difference {
        platform: "",
        group: "shipped tools",
        case: "calculate: \"an_endless_power_is_stopped\"",
        part: "receipt",
        reason: "the tool stops itself after two seconds, with the memory that it has by then",
    },
    windows(
        "hostile",
        "opening a FIFO",
        "",
        "Windows has no FIFO in a folder, and Wine cannot open one of this machine",
    ),
    windows(
        "hostile",
        "module: opening a FIFO",
        "",
        "Windows has no FIFO in a folder, and Wine cannot open one of this machine",
    ),
    windows("hostile", "absurd durations and timestamps", "", "NTFS stores times of another range"),
    windows(
        "hostile",
        "module: folders without end",
        "",
        "Wine creates folders too slowly to reach the quota before the deadline",
    ),
    windows("shipped tools", "fs_stat: \"describes_", "content", "folders of NTFS have no size"),
    windows(
        "markdown",
        "a script without end",
        "record",
        "more fuel is used before the loop there, so that the last growth of the memory does not happen; why is not known",
    ),
    windows("refusals", "fs_write_file", "call: standard error", "hints are quoted for the shells of Windows"),
];

/// Returns the entry for a difference.
pub(crate) fn find(platform: &str, group: &str, case: &str, part: &str) -> Option<usize> {
    NAMED.iter().position(|named| {
        (named.platform.is_empty() || named.platform == platform)
            && named.group == group
            && case.starts_with(named.case)
            && part.starts_with(named.part)
    })
}
