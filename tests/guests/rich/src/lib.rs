//! Odd rich tools, all in one component: each shows one thing that a host has to cope with.

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
