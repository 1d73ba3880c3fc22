//! The schedule of a step follows its rule, which is written here over all slots, and wakes no call that has to go on
//! waiting.

use std::pin::Pin;
use std::sync::atomic::AtomicBool;
use std::task::{Context, Poll, Wake, Waker};

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

/// Counts the wakes of a future, and remembers the last until the future is polled.
#[derive(Default)]
struct Woken {
    pending: AtomicBool,
    count: AtomicUsize,
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.pending.store(true, Relaxed);
        self.count.fetch_add(1, Relaxed);
    }
}

/// A future that is polled only after a wake, as an executor does.
struct Waiting {
    future: Pin<Box<dyn Future<Output = String>>>,
    woken: Arc<Woken>,
}

impl Waiting {
    fn new(future: impl Future<Output = String> + 'static) -> Self {
        let woken = Arc::new(Woken { pending: AtomicBool::new(true), count: AtomicUsize::new(0) });
        Self { future: Box::pin(future), woken }
    }

    fn poll(&mut self) -> Option<String> {
        if !self.woken.pending.swap(false, Relaxed) {
            return None;
        }
        let waker = Waker::from(self.woken.clone());
        match self.future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(end) => Some(end),
            Poll::Pending => None,
        }
    }
}

/// Futures that a call may wait in.
const BEGIN: usize = 0;
const DECISIONS: usize = 1;
const CANCELLED: usize = 2;

fn waiting(turn: &Arc<Turn>, kind: usize) -> Waiting {
    let turn = turn.clone();
    Waiting::new(async move {
        match kind {
            BEGIN => turn.begin().await.map_or_else(|error| error.message, |()| "begun".to_owned()),
            DECISIONS => {
                turn.await_decisions().await;
                "decided".to_owned()
            }
            _ => turn.cancelled().await.message,
        }
    })
}

fn slot((exclusive, interruptible, failure): (bool, bool, SiblingFailure), at: usize) -> Slot {
    Slot { label: format!("`call` ({at})"), exclusive, interruptible, failure, decided: false, state: SlotState::Waits }
}

fn slots(of: &[(bool, bool, SiblingFailure)]) -> Vec<Slot> {
    of.iter().enumerate().map(|(at, of)| slot(*of, at)).collect()
}

/// The rule, over all slots at each question.
struct Rule(Vec<Slot>);

impl Rule {
    /// End of a call's future, if it ends now.
    fn end_of(&mut self, at: usize, kind: usize) -> Option<String> {
        let earlier = &self.0[..at];
        match (&self.0[at].state, kind) {
            (SlotState::Cancelled(why), BEGIN | CANCELLED) => Some(why.clone()),
            (_, BEGIN) => {
                let alone = self.0[at].exclusive;
                let free = earlier.iter().all(|slot| slot.state == SlotState::Ended || !(alone || slot.exclusive));
                free.then(|| {
                    self.0[at].state = SlotState::Runs;
                    "begun".to_owned()
                })
            }
            (_, DECISIONS) => {
                let is_decided = |slot: &Slot| slot.decided || slot.state == SlotState::Ended;
                earlier.iter().all(is_decided).then(|| "decided".to_owned())
            }
            _ => None,
        }
    }

    fn end(&mut self, at: usize, failed: bool) {
        let slots = &mut self.0;
        if failed && slots[at].state != SlotState::Ended {
            let (label, policy) = (slots[at].label.clone(), slots[at].failure);
            let mut gone = vec![false; slots.len()];
            gone[at] = true;
            for other in 0..slots.len() {
                let (hit, why) = match policy {
                    SiblingFailure::Ignore => (false, ""),
                    SiblingFailure::CancelSiblings => (other != at, "is of the same step"),
                    SiblingFailure::CancelDependent => {
                        let waited = |one: usize| gone[one] && (slots[one].exclusive || slots[other].exclusive);
                        ((0..other).any(waited), "had to wait for it")
                    }
                };
                if hit && matches!(slots[other].state, SlotState::Waits | SlotState::Runs) {
                    gone[other] = true;
                    slots[other].state =
                        SlotState::Cancelled(format!("cancelled: {label} failed, and this call {why}"));
                }
            }
        }
        slots[at].state = SlotState::Ended;
    }

    fn interrupt(&mut self, all: bool) {
        for slot in &mut self.0 {
            let runs = slot.state == SlotState::Runs && (slot.interruptible || all);
            if runs || slot.state == SlotState::Waits {
                slot.state = SlotState::Cancelled("interrupted before the call ended".to_owned());
            }
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum Change {
    Wait(usize),
    /// Drops a future, perhaps after its wake.
    Leave(usize),
    Decide,
    End(bool),
    Drop,
    Interrupt(bool),
    /// Polls what was woken, and compares.
    Settle,
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        6 => (0..3usize).prop_map(Change::Wait),
        1 => (0..3usize).prop_map(Change::Leave),
        3 => Just(Change::Decide),
        3 => any::<bool>().prop_map(Change::End),
        1 => Just(Change::Drop),
        1 => any::<bool>().prop_map(Change::Interrupt),
        4 => Just(Change::Settle),
    ]
}

fn call() -> impl Strategy<Value = (bool, bool, SiblingFailure)> {
    let failure = prop_oneof![
        2 => Just(SiblingFailure::Ignore),
        1 => Just(SiblingFailure::CancelSiblings),
        1 => Just(SiblingFailure::CancelDependent),
    ];
    (any::<bool>(), any::<bool>(), failure)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4096, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_call_goes_on_when_the_rule_lets_it_and_not_before(
        of in vec(call(), 1..9),
        changes in vec((any::<usize>(), change()), 0..80),
    ) {
        let schedule = StepSchedule::new(slots(&of), &Scheduler::default());
        let mut rule = Rule(slots(&of));
        let mut turns: Vec<_> = (0..of.len()).map(|at| Some(Arc::new(Turn::new(schedule.clone(), at)))).collect();
        let mut futures: Vec<[Option<Waiting>; 3]> = of.iter().map(|_| [None, None, None]).collect();
        for (at, change) in changes.into_iter().chain([(0, Change::Settle)]) {
            let at = at % of.len();
            match (change, &turns[at]) {
                (Change::Settle, _) => {
                    for (at, kinds) in futures.iter_mut().enumerate() {
                        for (kind, future) in kinds.iter_mut().enumerate().filter(|(_, future)| future.is_some()) {
                            let end = future.as_mut().and_then(Waiting::poll);
                            prop_assert_eq!(&end, &rule.end_of(at, kind), "call {} in {}", at, kind);
                            future.take_if(|_| end.is_some());
                        }
                    }
                }
                (Change::Interrupt(all), _) => {
                    schedule.interrupt(all);
                    rule.interrupt(all);
                }
                (_, None) => {}
                (Change::Wait(kind), Some(turn)) => futures[at][kind] = Some(waiting(turn, kind)),
                (Change::Leave(kind), Some(_)) => futures[at][kind] = None,
                (Change::Decide, Some(turn)) => {
                    turn.decide();
                    rule.0[at].decided = true;
                }
                (Change::End(_) | Change::Drop, Some(turn)) => {
                    let failed = matches!(change, Change::End(true));
                    if let Change::End(failed) = change {
                        turn.end(failed);
                    }
                    futures[at] = [None, None, None];
                    turns[at] = None;
                    rule.end(at, failed);
                }
            }
        }
    }
}

#[test]
fn the_end_of_a_call_wakes_only_the_calls_that_begin_then() {
    const CALLS: usize = 500;
    // All alone; all together after the first; every tenth alone.
    for exclusive in [|_: usize| true, |at: usize| at == 0, |at: usize| at.is_multiple_of(10)] {
        let of: Vec<_> = (0..CALLS).map(|at| (exclusive(at), false, SiblingFailure::Ignore)).collect();
        let schedule = StepSchedule::new(slots(&of), &Scheduler::default());
        let turns: Vec<_> = (0..CALLS).map(|at| Arc::new(Turn::new(schedule.clone(), at))).collect();
        let wait = |kind: usize| turns.iter().map(|turn| waiting(turn, kind)).collect::<Vec<_>>();
        // Polls all that were woken, as an executor does before the next change, and returns the calls that went on.
        let poll = |futures: &mut [Waiting]| {
            let ends = futures.iter_mut().enumerate().filter_map(|(at, future)| future.poll().map(|_| at));
            ends.collect::<Vec<_>>()
        };
        let woken = |futures: &[Waiting]| futures.iter().map(|one| one.woken.count.load(Relaxed)).sum::<usize>();
        let mut decisions = wait(DECISIONS);
        assert_eq!(poll(&mut decisions), [0], "the others have to wait");
        for (at, turn) in turns.iter().enumerate() {
            turn.decide();
            assert_eq!(poll(&mut decisions), (at + 1..CALLS).take(1).collect::<Vec<_>>());
        }
        assert_eq!(woken(&decisions), CALLS - 1);
        let (mut begins, mut begun) = (wait(BEGIN), 0);
        for (at, turn) in turns.iter().enumerate() {
            begun += poll(&mut begins).len();
            assert!(begun > at, "the call has begun");
            turn.end(false);
        }
        assert_eq!((begun, woken(&begins)), (CALLS, CALLS - 1));
    }
}
