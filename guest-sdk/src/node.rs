//! JSON that is known at compile time: a tree of constants, and its text as an array of bytes. A descriptor made from
//! it needs no code in the program.

/// JSON value in a constant.
#[derive(Debug, Clone, Copy)]
pub enum Node {
    /// JSON text, such as `true` or `1.5`.
    Raw(&'static str),
    /// Integer.
    Number(usize),
    /// String, not yet escaped.
    Text(&'static str),
    /// Array.
    List(&'static [Node]),
    /// Object, in this order.
    Object(&'static [Member]),
    /// Object with members added or replaced.
    With(&'static Node, &'static [Member]),
}

/// Key and value.
pub(crate) type Member = (&'static str, Node);

impl Node {
    /// Length of the JSON text, in bytes.
    pub const fn measure(&self) -> usize {
        let mut text = Text { bytes: [], length: 0 };
        text.value(self);
        text.length
    }

    /// JSON text; `N` is [`measure`](Self::measure).
    pub const fn text<const N: usize>(&self) -> [u8; N] {
        let mut text = Text { bytes: [0; N], length: 0 };
        text.value(self);
        assert!(text.length == N, "the measure of a node is the length of its text");
        text.bytes
    }

    /// Value of a key of an object.
    pub(crate) const fn member(&self, key: &str) -> Option<&Node> {
        match self {
            Self::Object(members) => find(members, key),
            Self::With(base, members) => match find(members, key) {
                Some(node) => Some(node),
                None => base.member(key),
            },
            _ => None,
        }
    }

    /// Schema of the items of an array.
    pub const fn items(&self) -> &Node {
        match self {
            Self::Object(members) | Self::With(_, members) if find(members, "items").is_some() => {
                match find(members, "items") {
                    Some(node) => node,
                    None => panic!(),
                }
            }
            Self::With(base, _) => base.items(),
            _ => panic!("`items` is for lists: take it away, or make the argument a `Vec`"),
        }
    }
}

/// Value of a key.
const fn find<'a>(members: &'a [Member], key: &str) -> Option<&'a Node> {
    let mut at = 0;
    while at < members.len() {
        if same(members[at].0, key) {
            return Some(&members[at].1);
        }
        at += 1;
    }
    None
}

/// Fails the build if two names are the same.
pub const fn distinct(names: &[&str]) {
    let mut at = 0;
    while at < names.len() {
        let mut other = at + 1;
        while other < names.len() {
            assert!(!same(names[at], names[other]), "two tools in `tools!` have the same name: rename one");
            other += 1;
        }
        at += 1;
    }
}

const fn same(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let mut at = 0;
    while at < one.len() && at < other.len() && one[at] == other[at] {
        at += 1;
    }
    at == one.len() && at == other.len()
}

/// Members of enclosing [`Node::With`] levels, which hide members of the same key.
struct Outer<'a> {
    members: &'a [Member],
    next: Option<&'a Outer<'a>>,
}

impl Outer<'_> {
    const fn hides(&self, key: &str) -> bool {
        find(self.members, key).is_some()
            || match self.next {
                Some(next) => next.hides(key),
                None => false,
            }
    }
}

/// JSON text under construction; bytes beyond `N` are only counted.
struct Text<const N: usize> {
    bytes: [u8; N],
    length: usize,
}

impl<const N: usize> Text<N> {
    const fn byte(&mut self, byte: u8) {
        if self.length < N {
            self.bytes[self.length] = byte;
        }
        self.length += 1;
    }

    const fn raw(&mut self, text: &str) {
        let mut at = 0;
        while at < text.len() {
            self.byte(text.as_bytes()[at]);
            at += 1;
        }
    }

    const fn number(&mut self, number: usize) {
        if number >= 10 {
            self.number(number / 10);
        }
        self.byte(b'0' + (number % 10) as u8);
    }

    const fn string(&mut self, text: &str) {
        const HEX: &[u8; 16] = b"0123456789abcdef";
        self.byte(b'"');
        let mut at = 0;
        while at < text.len() {
            match text.as_bytes()[at] {
                b'\n' => self.raw("\\n"),
                byte @ (b'"' | b'\\') => {
                    self.byte(b'\\');
                    self.byte(byte);
                }
                byte @ 0..0x20 => {
                    self.raw("\\u00");
                    self.byte(HEX[(byte >> 4) as usize]);
                    self.byte(HEX[(byte & 15) as usize]);
                }
                byte => self.byte(byte),
            }
            at += 1;
        }
        self.byte(b'"');
    }

    const fn value(&mut self, node: &Node) {
        match node {
            Node::Raw(text) => self.raw(text),
            Node::Number(number) => self.number(*number),
            Node::Text(text) => self.string(text),
            Node::List(nodes) => {
                self.byte(b'[');
                let mut at = 0;
                while at < nodes.len() {
                    if at > 0 {
                        self.byte(b',');
                    }
                    self.value(&nodes[at]);
                    at += 1;
                }
                self.byte(b']');
            }
            Node::Object(_) | Node::With(..) => {
                self.byte(b'{');
                self.members(node, None, true);
                self.byte(b'}');
            }
        }
    }

    /// Writes the members that no outer level hides; returns `true` if the next member is still the first.
    const fn members(&mut self, node: &Node, outer: Option<&Outer<'_>>, first: bool) -> bool {
        let (members, mut first) = match node {
            Node::Object(members) => (*members, first),
            Node::With(base, members) => (*members, self.members(base, Some(&Outer { members, next: outer }), first)),
            _ => panic!("members can be added only to an object"),
        };
        let mut at = 0;
        while at < members.len() {
            let (key, value) = &members[at];
            let hidden = match outer {
                Some(outer) => outer.hides(key),
                None => false,
            };
            if !hidden {
                if !first {
                    self.byte(b',');
                }
                first = false;
                self.string(key);
                self.byte(b':');
                self.value(value);
            }
            at += 1;
        }
        first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TREE: &Node = &Node::Object(&[
        ("a", Node::Text("\"q\" \\ \n\t\u{1f} é")),
        ("b", Node::List(&[Node::Raw("true"), Node::Number(0), Node::Number(120)])),
        ("c", Node::Object(&[])),
    ]);
    const OVER: &Node = &Node::With(
        &Node::With(TREE, &[("c", Node::Number(1)), ("d", Node::Number(2))]),
        &[("d", Node::Number(3)), ("e", Node::Number(4))],
    );

    fn text<const N: usize>(bytes: [u8; N]) -> String {
        String::from_utf8(bytes.to_vec()).expect("text")
    }

    #[test]
    fn a_tree_becomes_json() {
        const LENGTH: usize = TREE.measure();
        assert_eq!(text(TREE.text::<LENGTH>()), r#"{"a":"\"q\" \\ \n\u0009\u001f é","b":[true,0,120],"c":{}}"#);
    }

    #[test]
    fn what_stands_further_out_hides_the_same_key() {
        const LENGTH: usize = OVER.measure();
        let value: serde_json::Value = serde_json::from_slice(&OVER.text::<LENGTH>()).expect("JSON");
        assert_eq!((&value["c"], &value["d"], &value["e"]), (&1.into(), &3.into(), &4.into()));
        assert_eq!(text(OVER.text::<LENGTH>()).matches("\"d\"").count(), 1);
    }

    #[test]
    #[should_panic(expected = "have the same name")]
    fn two_names_differ() {
        distinct(&["a", "ab", "b"]);
        distinct(&["a", "b", "a"]);
    }
}
