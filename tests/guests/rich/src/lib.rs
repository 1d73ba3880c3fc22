//! Unusual rich tools in one component: each covers one case that a host must handle.

mod answers;
mod host;
mod steps;

toolcrib_guest::tools!(
    answers::echo,
    answers::add,
    answers::picture,
    answers::blocks,
    answers::native,
    answers::fails,
    answers::trap,
    host::stream,
    host::flood,
    host::asks,
    host::calls,
    host::remember,
    steps::raw,
    steps::checked,
    steps::prepared,
    steps::worded,
    steps::part_after_end,
    steps::spin_preview,
);

#[cfg(test)]
mod tests;
