//! Places of running calls and the queue for them, shared fairly among conversations. While several have calls, each can have an
//! equal share of the places, and more only while it runs fewer calls than there are free places, so that one that comes later finds
//! a place. Conversations that wait take turns, and a full queue drops the latest call of the conversation with most of them.

use std::cmp::Reverse;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use tokio::sync::oneshot::Sender;

use crate::delegate::MAX_DEPTH;

use super::Memory;

/// Places of running and waiting calls.
pub(super) struct Places {
    /// Places by depth: calls of a delegated agent take none from the agents that wait for it.
    levels: [Level; MAX_DEPTH as usize + 1],
    max_running: usize,
    waiting: usize,
    max_waiting: usize,
    /// Number of the next waiting call.
    next: u64,
}

/// Places for concurrent calls of one tool. The count changes under the lock of all places.
#[derive(Debug)]
pub(crate) struct ToolPlaces {
    running: AtomicUsize,
    max_running: usize,
}

/// Place of a call, whether it runs or waits for it.
#[derive(Debug, Clone)]
pub(super) struct CallPlace {
    depth: usize,
    conversation: ConversationKey,
    tool: Option<Arc<ToolPlaces>>,
}

/// End of the wait for a place.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Admission {
    Admitted,
    /// A conversation with fewer waiting calls has the place in the queue.
    Refused,
}

/// Address of a conversation's memory, which lives as long as its calls.
type ConversationKey = usize;

/// Calls at one depth.
#[derive(Default)]
struct Level {
    running: usize,
    /// Conversations with calls.
    conversations: HashMap<ConversationKey, Conversation>,
    /// Conversations with waiting calls, in the order of their turns.
    turns: VecDeque<ConversationKey>,
}

/// Calls of one conversation at one depth.
#[derive(Default)]
struct Conversation {
    running: usize,
    /// Running calls of each tool, by its address.
    of_tools: Vec<(usize, usize)>,
    waiting: VecDeque<WaitingCall>,
}

struct WaitingCall {
    number: u64,
    place: CallPlace,
    admit: Sender<Admission>,
}

impl ToolPlaces {
    /// Creates places for concurrent calls of a tool.
    pub(crate) fn new(max_running: usize) -> Arc<Self> {
        Arc::new(Self { running: AtomicUsize::new(0), max_running })
    }

    fn free(&self) -> usize {
        self.max_running.saturating_sub(self.running.load(Relaxed))
    }

    fn key(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }
}

/// Returns `true` if a conversation with `running` calls has a further place among `max`, `free` of them free, beside others.
fn is_within_share(running: usize, free: usize, max: usize, conversations: usize) -> bool {
    free > 0 && (running < free || running < max / conversations.max(1))
}

impl CallPlace {
    /// Creates a call's place at a depth, in the conversation with this memory. Below the first depth a call needs no place of
    /// its tool.
    pub(super) fn new(depth: u32, memory: &Memory, tool: Option<&Arc<ToolPlaces>>) -> Self {
        let tool = tool.filter(|_| depth == 0).cloned();
        let depth = (depth as usize).min(MAX_DEPTH as usize);
        Self { depth, conversation: std::ptr::from_ref(memory).addr(), tool }
    }

    pub(super) fn depth(&self) -> usize {
        self.depth
    }
}

impl Conversation {
    /// Counts the running calls of a tool.
    fn running_of(&self, tool: &ToolPlaces) -> usize {
        self.of_tools.iter().find(|(key, _)| *key == tool.key()).map_or(0, |(_, running)| *running)
    }

    fn is_empty(&self) -> bool {
        self.running == 0 && self.waiting.is_empty()
    }
}

impl Level {
    /// Returns `true` if a call has a place now, among `max` in all.
    fn has_place(&self, place: &CallPlace, max: usize) -> bool {
        let own = self.conversations.get(&place.conversation);
        let conversations = self.conversations.len() + usize::from(own.is_none());
        let is_within = |running: usize, free: usize, max: usize| match conversations {
            1 => free > 0,
            _ => is_within_share(running, free, max, conversations),
        };
        let of_tool = |tool: &Arc<ToolPlaces>| own.map_or(0, |own| own.running_of(tool));
        let tool = place.tool.as_ref();
        is_within(own.map_or(0, |own| own.running), max - self.running, max)
            && tool.is_none_or(|tool| is_within(of_tool(tool), tool.free(), tool.max_running))
    }

    fn start(&mut self, place: &CallPlace) {
        self.running += 1;
        let own = self.conversations.entry(place.conversation).or_default();
        own.running += 1;
        if let Some(tool) = &place.tool {
            tool.running.fetch_add(1, Relaxed);
            match own.of_tools.iter_mut().find(|(key, _)| *key == tool.key()) {
                Some((_, running)) => *running += 1,
                None => own.of_tools.push((tool.key(), 1)),
            }
        }
    }

    fn end(&mut self, place: &CallPlace) {
        self.running -= 1;
        if let Some(tool) = &place.tool {
            tool.running.fetch_sub(1, Relaxed);
        }
        let Some(own) = self.conversations.get_mut(&place.conversation) else { return };
        own.running -= 1;
        if let Some(tool) = &place.tool {
            let key = tool.key();
            own.of_tools.iter_mut().filter(|(other, _)| *other == key).for_each(|(_, running)| *running -= 1);
            own.of_tools.retain(|(_, running)| *running > 0);
        }
        if own.is_empty() {
            self.conversations.remove(&place.conversation);
        }
    }

    /// Takes a waiting call out of the queue.
    fn remove(&mut self, conversation: ConversationKey, at: usize) -> Option<WaitingCall> {
        let own = self.conversations.get_mut(&conversation)?;
        let removed = own.waiting.remove(at);
        if own.waiting.is_empty() {
            self.turns.retain(|turn| *turn != conversation);
            if own.is_empty() {
                self.conversations.remove(&conversation);
            }
        }
        removed
    }

    fn waiting_of(&self, conversation: ConversationKey) -> usize {
        self.conversations.get(&conversation).map_or(0, |own| own.waiting.len())
    }
}

impl Places {
    /// Creates places for `max_running` calls at each depth, and a queue for `max_waiting` calls in all.
    pub(super) fn new(max_running: usize, max_waiting: usize) -> Self {
        Self { levels: std::array::from_fn(|_| Level::default()), max_running, waiting: 0, max_waiting, next: 0 }
    }

    /// Starts a call if it has a place now.
    pub(super) fn start(&mut self, place: &CallPlace) -> bool {
        let level = &mut self.levels[place.depth];
        let has_place = level.has_place(place, self.max_running);
        if has_place {
            level.start(place);
        }
        has_place
    }

    /// Ends a running call.
    pub(super) fn end(&mut self, place: &CallPlace) {
        self.levels[place.depth].end(place);
    }

    /// Adds a call to the queue, and returns its number. If the queue is full, the call has the place of the latest call in the
    /// conversation with most waiting calls, which is returned to be refused; `None` if that is the call's own conversation.
    pub(super) fn enqueue(
        &mut self,
        place: &CallPlace,
        admit: Sender<Admission>,
    ) -> Option<(u64, Option<Sender<Admission>>)> {
        let displaced = if self.waiting >= self.max_waiting { Some(self.displace(place)?) } else { None };
        let number = self.next;
        self.next += 1;
        let level = &mut self.levels[place.depth];
        let own = level.conversations.entry(place.conversation).or_default();
        if own.waiting.is_empty() {
            level.turns.push_back(place.conversation);
        }
        own.waiting.push_back(WaitingCall { number, place: place.clone(), admit });
        self.waiting += 1;
        Some((number, displaced))
    }

    /// Removes the latest call of the conversation with most waiting calls, if it has at least two more than the one at `place`.
    fn displace(&mut self, place: &CallPlace) -> Option<Sender<Admission>> {
        let own = self.levels[place.depth].waiting_of(place.conversation);
        let all = self.levels.iter().enumerate().flat_map(|(depth, level)| {
            // Of equal queues one that is less deep: a deeper call has callers, which fail with it.
            level.conversations.iter().map(move |(key, own)| (own.waiting.len(), Reverse(depth), *key))
        });
        let (most, Reverse(depth), key) = all.max()?;
        if most < own + 2 {
            return None;
        }
        self.waiting -= 1;
        self.levels[depth].remove(key, most - 1).map(|call| call.admit)
    }

    /// Removes a call from the queue; `false` if it is not there any more.
    pub(super) fn withdraw(&mut self, place: &CallPlace, number: u64) -> bool {
        let level = &mut self.levels[place.depth];
        let own = level.conversations.get(&place.conversation);
        let at = own.and_then(|own| own.waiting.iter().position(|call| call.number == number));
        let removed = at.and_then(|at| level.remove(place.conversation, at));
        self.waiting -= usize::from(removed.is_some());
        removed.is_some()
    }

    /// Starts the next waiting call at a depth that has a place now. Conversations take turns.
    pub(super) fn next_admitted(&mut self, depth: usize) -> Option<(CallPlace, Sender<Admission>)> {
        let level = &mut self.levels[depth];
        if level.running == self.max_running {
            return None;
        }
        let (turn, at) = level.turns.iter().enumerate().find_map(|(turn, key)| {
            let waiting = &level.conversations.get(key)?.waiting;
            Some((turn, waiting.iter().position(|call| level.has_place(&call.place, self.max_running))?))
        })?;
        let conversation = level.turns.remove(turn)?;
        level.turns.push_back(conversation);
        let call = level.remove(conversation, at)?;
        self.waiting -= 1;
        level.start(&call.place);
        Some((call.place, call.admit))
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot::{self, Receiver};

    use super::*;

    fn place(conversation: usize, tool: Option<&Arc<ToolPlaces>>) -> CallPlace {
        CallPlace { depth: 0, conversation, tool: tool.cloned() }
    }

    fn started(places: &mut Places, conversation: usize, calls: usize) -> usize {
        (0..calls).filter(|_| places.start(&place(conversation, None))).count()
    }

    fn queued(places: &mut Places, conversation: usize) -> Option<Receiver<Admission>> {
        let (admit, admission) = oneshot::channel();
        let (_, displaced) = places.enqueue(&place(conversation, None), admit)?;
        displaced.into_iter().for_each(|displaced| displaced.send(Admission::Refused).unwrap());
        Some(admission)
    }

    fn admitted(places: &mut Places) -> Vec<usize> {
        std::iter::from_fn(|| places.next_admitted(0)).map(|(place, _)| place.conversation).collect()
    }

    #[test]
    fn one_conversation_has_all_places_and_several_leave_one_free_for_the_next() {
        let mut places = Places::new(32, 0);
        assert_eq!(started(&mut places, 1, 40), 32);
        (0..32).for_each(|_| places.end(&place(1, None)));
        assert!(places.levels[0].conversations.is_empty());
        let busy: Vec<_> = (1..=10).cycle().take(400).map(|busy| started(&mut places, busy, 1)).collect();
        assert_eq!(busy[..10], [1; 10]);
        let running: usize = busy.iter().sum();
        assert!((28..32).contains(&running), "{running} run");
        assert!(places.start(&place(11, None)), "the next conversation finds a place");
        assert_eq!((1..=10).map(|busy| started(&mut places, busy, 1)).sum::<usize>(), 0);
    }

    #[test]
    fn a_tool_has_its_own_places_which_conversations_share_too() {
        let mut places = Places::new(32, 0);
        let (tool, other) = (ToolPlaces::new(16), ToolPlaces::new(16));
        let start = |places: &mut Places, conversation, tool| places.start(&place(conversation, Some(tool)));
        assert_eq!((0..20).filter(|_| start(&mut places, 1, &tool)).count(), 16, "half of all");
        assert!(start(&mut places, 1, &other), "another tool has its own");
        assert!(!start(&mut places, 2, &tool));
        (0..16).for_each(|_| places.end(&place(1, Some(&tool))));
        places.end(&place(1, Some(&other)));
        assert!(start(&mut places, 2, &tool));
        assert_eq!((0..20).filter(|_| start(&mut places, 1, &tool)).count(), 8, "an equal share");
        assert!(start(&mut places, 3, &tool));
    }

    #[test]
    fn conversations_that_wait_take_turns() {
        let mut places = Places::new(2, 100);
        assert_eq!(started(&mut places, 1, 3), 2);
        let waiting: Vec<_> = [1, 1, 1, 2, 2, 3].map(|conversation| queued(&mut places, conversation)).into();
        let mut order = Vec::new();
        let mut running = VecDeque::from([1, 1]);
        while let Some(conversation) = running.pop_front() {
            places.end(&place(conversation, None));
            let next = admitted(&mut places);
            order.extend(&next);
            running.extend(next);
        }
        assert_eq!(order.len(), 6);
        assert!(order[..3].contains(&2) && order[..3].contains(&3), "{order:?}");
        assert!(waiting.into_iter().all(|admission| admission.is_some()));
        assert!(places.levels[0].conversations.is_empty() && places.levels[0].turns.is_empty() && places.waiting == 0);
    }

    #[test]
    fn a_full_queue_refuses_the_conversation_with_most_of_it() {
        let mut places = Places::new(1, 4);
        assert!(places.start(&place(1, None)));
        let mut of_first: Vec<_> = (0..4).map(|_| queued(&mut places, 1).unwrap()).collect();
        assert!(queued(&mut places, 1).is_none(), "its own queue is the longest");
        let _second = queued(&mut places, 2).expect("the place of the latest call of the first");
        assert_eq!(of_first.pop().unwrap().try_recv(), Ok(Admission::Refused));
        assert!(of_first.iter_mut().all(|admission| admission.try_recv().is_err()), "the others wait");
        let _third = queued(&mut places, 3).unwrap();
        assert!(queued(&mut places, 2).is_none() && queued(&mut places, 1).is_none(), "2, 1 and 1 wait");
        assert_eq!(places.waiting, 4);
    }

    #[test]
    fn a_call_that_leaves_the_queue_gives_its_place_back() {
        let mut places = Places::new(1, 4);
        assert!(places.start(&place(1, None)));
        let (admit, _admission) = oneshot::channel();
        let (number, _) = places.enqueue(&place(2, None), admit).unwrap();
        assert!(places.withdraw(&place(2, None), number) && !places.withdraw(&place(2, None), number));
        places.end(&place(1, None));
        assert!(places.next_admitted(0).is_none() && places.waiting == 0 && places.levels[0].turns.is_empty());
    }
}
