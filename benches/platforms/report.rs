//! Report: each difference, the table of platforms by group, and `doctor` of each platform.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::atomic::Ordering;

use crate::Answers;
use crate::answer::Answer;
use crate::differences::{NAMED, find};
use crate::platform::Platform;

/// Maximum characters of a text that a difference shows.
const MAX_SHOWN: usize = 300;

/// Counts of a group on a platform.
#[derive(Default)]
struct Count {
    equal: usize,
    named: usize,
    left_out: usize,
    different: usize,
}

/// Prints each difference and the table; returns `false` if a difference is not named.
pub(crate) fn table(platforms: &[Platform], answers: &Answers, is_complete: bool) -> bool {
    let mut counts: BTreeMap<(&str, usize), Count> = BTreeMap::new();
    let mut seen = BTreeSet::new();
    let first = answers.iter().filter(|((at, ..), _)| *at == 0);
    for ((_, group, case), expected) in first {
        for (at, platform) in platforms.iter().enumerate() {
            let found = answers.get(&(at, *group, case.clone()));
            let count = counts.entry((*group, at)).or_default();
            if found.is_some_and(Answer::is_left_out) {
                count.left_out += 1;
                continue;
            }
            let parts = found.map_or_else(
                || vec![("case", "", "(did not run)")],
                |found| expected.differences(found, platform.is_windows()),
            );
            let mut named = 0;
            for (part, expected, found) in &parts {
                match find(&platform.name, group, case, part) {
                    Some(entry) => {
                        seen.insert(entry);
                        named += 1;
                    }
                    None => {
                        println!("\n{}: {group}: {case}: {part}", platform.name);
                        show(expected, found, &platforms[0].name, &platform.name);
                    }
                }
            }
            match parts.len() {
                0 => count.equal += 1,
                all if all == named => count.named += 1,
                _ => count.different += 1,
            }
        }
    }
    print(platforms, &counts);
    for named in seen.iter().map(|at| &NAMED[*at]) {
        println!("named: {}, {} {}, {}: {}", named.platform, named.group, named.case, named.part, named.reason);
    }
    let runs = |name: &str| platforms.iter().any(|platform| platform.name == name);
    let stale: Vec<_> =
        NAMED.iter().enumerate().filter(|(at, named)| runs(named.platform) && !seen.contains(at)).collect();
    for (_, named) in stale.iter().filter(|_| is_complete) {
        println!("not found: the named difference {}, {} {}, {}", named.platform, named.group, named.case, named.part);
    }
    counts.values().all(|count| count.different == 0)
}

/// Prints the first line that differs.
fn show(expected: &str, found: &str, first: &str, other: &str) {
    let cut = |text: Option<&str>| text.map_or("(no line)".to_owned(), |text| text.chars().take(MAX_SHOWN).collect());
    let (mut one, mut two) = (expected.lines(), found.lines());
    loop {
        match (one.next(), two.next()) {
            (None, None) => return println!("  the ends of lines differ"),
            (one, two) if one == two => {}
            (one, two) => {
                // Long lines differ somewhere: they are shown from a little before that.
                let same = one
                    .unwrap_or_default()
                    .chars()
                    .zip(two.unwrap_or_default().chars())
                    .take_while(|(one, two)| one == two)
                    .count();
                let from = |text: Option<&str>| {
                    text.map(|text| text.chars().skip(same.saturating_sub(60)).collect::<String>())
                };
                println!("  {first}: {}\n  {other}: {}", cut(from(one).as_deref()), cut(from(two).as_deref()));
                return;
            }
        }
    }
}

fn print(platforms: &[Platform], counts: &BTreeMap<(&str, usize), Count>) {
    print!("\n{:16} {:>6}", "group", "cases");
    platforms.iter().for_each(|platform| print!(" {:>28}", platform.name));
    println!();
    let groups: BTreeSet<_> = counts.keys().map(|(group, _)| *group).collect();
    for group in groups {
        let of = |at: usize| &counts[&(group, at)];
        print!("{group:16} {:>6}", of(0).equal + of(0).named + of(0).different);
        for at in 0..platforms.len() {
            let Count { equal, named, left_out, different } = of(at);
            let mut cell = format!("{equal} equal");
            for (count, word) in [(named, "named"), (left_out, "left out"), (different, "DIFFER")] {
                if *count > 0 {
                    cell += &format!(", {count} {word}");
                }
            }
            print!(" {cell:>28}");
        }
        println!();
    }
    print!("{:23}", "seconds of work");
    for platform in platforms {
        print!(" {:>28.0}", platform.took.lock().expect("no worker panicked").as_secs_f64());
    }
    println!();
    for platform in platforms {
        match platform.repeats.load(Ordering::Relaxed) {
            0 => {}
            1 => println!("{}: Wine failed in one case, which was run again", platform.name),
            count => println!("{}: Wine failed {count} times; each of these cases was run again", platform.name),
        }
    }
}

/// Prints `doctor` of each platform in an empty folder.
pub(crate) fn doctor(platforms: &[Platform]) -> io::Result<()> {
    for platform in platforms {
        let answer = platform.repeat(usize::MAX - 1, |folder| {
            let mut answer = Answer::default();
            platform.run(folder, &["doctor".to_owned()], &mut answer).map(|()| answer)
        })?;
        println!("\n== doctor on {}", platform.name);
        answer.parts().for_each(|(name, text)| println!("({name}) {text}"));
    }
    Ok(())
}
