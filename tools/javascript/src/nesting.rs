//! Source that is too deep to be parsed. Deep brackets, and long flat source such as a sum of 5,000 numbers, become a tree of
//! that depth, and walking the tree exhausts the stack of the guest. This scan bounds the depth of the tree before the parser
//! sees the source: it counts, for every open bracket, the words and operators since the last separator.

/// Maximum depth of the source: its words and operators, without those in brackets that are closed and those before a comma,
/// and its open brackets. The stack of a guest holds somewhat more.
const MAX_DEPTH: usize = 320;
/// Depth of an open bracket, for which the parser needs more of the stack than for an operator.
const BRACKET: usize = 8;

/// Returns a message if the source is nested too deeply.
pub(crate) fn problem(source: &str) -> Option<String> {
    Scan::new(source).run()
}

/// Kind of the last word or operator.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Last {
    /// End of an operand: a name, a literal or a closed bracket.
    Operand,
    /// Anything that needs more.
    Operator,
    /// `)` of `if (...)`, `for (...)`, `while (...)` and `with (...)`: a statement follows.
    Head,
    /// `}`: the end of an operand or of a block.
    Block,
}

struct Scan<'s> {
    bytes: &'s [u8],
    at: usize,
    /// Words since the last separator, for each open bracket and the source itself, and `true` if the bracket is a head.
    open: Vec<(usize, bool)>,
    /// Brackets at whose end a template goes on.
    templates: Vec<usize>,
    sum: usize,
    last: Last,
    /// `true` if the last word is `if`, `for`, `while` or `with`.
    head: bool,
    /// `true` if a line ended since the last word.
    newline: bool,
}

impl<'s> Scan<'s> {
    fn new(source: &'s str) -> Self {
        Self {
            bytes: source.as_bytes(),
            at: 0,
            open: vec![(0, false)],
            templates: Vec::new(),
            sum: 0,
            last: Last::Operator,
            head: false,
            newline: false,
        }
    }

    fn peek(&self, ahead: usize) -> u8 {
        self.bytes.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn run(mut self) -> Option<String> {
        while self.at < self.bytes.len() {
            match self.peek(0) {
                b'\n' | b'\r' => {
                    self.newline = true;
                    self.at += 1;
                }
                byte if byte.is_ascii_whitespace() => self.at += 1,
                b'/' if self.peek(1) == b'/' => self.skip_until(|bytes| bytes[0] == b'\n'),
                b'/' if self.peek(1) == b'*' => self.skip_until(|bytes| bytes.starts_with(b"*/")),
                b'/' if !matches!(self.last, Last::Operand | Last::Block) => {
                    self.regular_expression();
                    self.word(Last::Operand, true);
                }
                quote @ (b'"' | b'\'') => {
                    self.quoted(quote);
                    self.word(Last::Operand, true);
                }
                b'`' => {
                    self.word(Last::Operand, false);
                    self.at += 1;
                    self.template();
                }
                b'(' | b'[' | b'{' => {
                    let head = self.head;
                    self.starts(self.last == Last::Block && self.peek(0) == b'{');
                    self.open(head);
                    self.at += 1;
                }
                b'}' if self.templates.last() == Some(&self.open.len()) => {
                    self.templates.pop();
                    self.close();
                    self.at += 1;
                    self.template();
                }
                b')' | b']' => self.closed(Last::Operand),
                b'}' => self.closed(Last::Block),
                b',' | b';' => {
                    self.separate();
                    self.last = Last::Operator;
                    self.at += 1;
                }
                byte if is_name(byte) => self.name(),
                sign @ (b'+' | b'-') if self.peek(1) == sign && self.last == Last::Operand && !self.newline => {
                    self.word(Last::Operand, false);
                    self.at += 2;
                }
                _ => {
                    self.word(Last::Operator, false);
                    self.at += 1;
                }
            }
            if self.sum + BRACKET * (self.open.len() - 1) > MAX_DEPTH {
                return Some("the program is nested too deeply, or one expression is too long: split it".to_owned());
            }
        }
        None
    }

    /// Counts a word or operator. `starts` says whether it can start a statement.
    fn word(&mut self, last: Last, starts: bool) {
        self.starts(starts);
        if let Some((words, _)) = self.open.last_mut() {
            *words += 1;
            self.sum += 1;
        }
        self.last = last;
        self.head = false;
    }

    /// Separates statements where no semicolon does: an operand follows another one in a new line, or a block.
    fn starts(&mut self, starts: bool) {
        if starts && (self.last == Last::Block || self.last == Last::Operand && self.newline) {
            self.separate();
        }
        self.newline = false;
    }

    fn separate(&mut self) {
        if let Some((words, _)) = self.open.last_mut() {
            self.sum -= std::mem::take(words);
        }
    }

    fn open(&mut self, head: bool) {
        self.open.push((0, head));
        self.last = Last::Operator;
        self.head = false;
    }

    fn close(&mut self) -> bool {
        if self.open.len() == 1 {
            return false;
        }
        self.open.pop().is_some_and(|(words, head)| {
            self.sum -= words;
            head
        })
    }

    fn closed(&mut self, last: Last) {
        let head = self.close();
        self.newline = false;
        self.word(if head { Last::Head } else { last }, false);
        self.at += 1;
    }

    fn name(&mut self) {
        let start = self.at;
        while is_name(self.peek(0)) || self.peek(0) == b'.' && self.bytes[start].is_ascii_digit() {
            self.at += 1;
        }
        match &self.bytes[start..self.at] {
            b"if" | b"for" | b"while" | b"with" => {
                self.word(Last::Operator, true);
                self.head = true;
            }
            b"else" | b"catch" | b"finally" | b"in" | b"of" | b"instanceof" => self.word(Last::Operator, false),
            b"await" | b"case" | b"class" | b"const" | b"delete" | b"do" | b"extends" | b"let" | b"new" | b"return"
            | b"throw" | b"try" | b"typeof" | b"var" | b"void" | b"yield" => self.word(Last::Operator, true),
            _ => self.word(Last::Operand, true),
        }
    }

    fn skip_until(&mut self, end: impl Fn(&[u8]) -> bool) {
        while self.at < self.bytes.len() && !end(&self.bytes[self.at..]) {
            self.at += 1;
        }
        if self.bytes[self.at..].starts_with(b"*/") {
            self.at += 2;
        }
    }

    fn quoted(&mut self, quote: u8) {
        self.at += 1;
        while self.at < self.bytes.len() && self.peek(0) != quote && self.peek(0) != b'\n' {
            self.at += if self.peek(0) == b'\\' { 2 } else { 1 };
        }
        self.at += 1;
    }

    fn regular_expression(&mut self) {
        self.at += 1;
        let mut class = false;
        while self.at < self.bytes.len() && self.peek(0) != b'\n' && (class || self.peek(0) != b'/') {
            match self.peek(0) {
                b'\\' => self.at += 1,
                b'[' => class = true,
                b']' => class = false,
                _ => {}
            }
            self.at += 1;
        }
        self.at += 1;
    }

    /// Text of a template, up to its end or to an expression in it.
    fn template(&mut self) {
        while self.at < self.bytes.len() {
            match self.peek(0) {
                b'`' => {
                    self.at += 1;
                    self.last = Last::Operand;
                    return;
                }
                b'$' if self.peek(1) == b'{' => {
                    self.at += 2;
                    self.open(false);
                    self.templates.push(self.open.len());
                    return;
                }
                b'\\' => self.at += 2,
                _ => self.at += 1,
            }
        }
    }
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte == b'#' || byte >= 0x80
}

#[cfg(test)]
mod tests {
    use super::problem;

    #[test]
    fn deep_source_is_refused() {
        for (part, rest) in [
            ("(", ""),
            ("[", ""),
            ("{", ""),
            ("`${", ""),
            ("!", "1"),
            ("- ", "1"),
            ("typeof ", "1"),
            ("new ", "A"),
            ("await ", "1"),
            ("a => ", "1"),
            ("a ? b : ", "c"),
            ("a = ", "1"),
            ("a ** ", "1"),
            ("1 + ", "1"),
            ("a: ", "1"),
            ("a.", "b"),
            ("a().", "b"),
            ("a?.b.", "c"),
            ("if (a) ", "b"),
            ("if (a)\n", "b"),
            ("for (;;)\n", "b"),
            ("if (a) {} else ", "b"),
            ("if (a) {}\nelse ", "b"),
            ("do ", "b"),
            ("try {", "b"),
            ("async () => ", "1"),
            ("`a` + ", "1"),
            ("class extends ", "A"),
        ] {
            let source = format!("x = 1\n{}{rest}", part.repeat(1_000));
            assert!(problem(&source).is_some(), "{part}");
        }
    }

    #[test]
    fn long_source_is_not_refused() {
        for line in [
            "x = 1 + 1\n",
            "foo(a, b)\n",
            "const a = () => { return [1, 2] }\n",
            "if (a) { b() } else { c() }\n",
            "if (a)\n  b()\n",
            "for (const a of b) c.push(a)\n",
            "function f(a) { return a / 2 }",
            "// (((((((((((( ' \" `\n",
            "/* [[[[[[[[[[[[[[ */",
            "x = /[(/'\"`]+\\//g\n",
            "x = a / b / c\n",
            "s = '((((((((((((' + \"[[[[[[[[[[\\\"[\"\n",
            "s = `(((((((((${a + `b${c}`}((((((((`\n",
            "while (a) b++\n",
            "await tools.add({ a: 1, b: 2 })\n",
            "x.a.b.c\n",
            "class A { a() { return 1 } b() { return 2 } }\n",
            "try { a() } catch (e) { b() } finally { c() }\n",
        ] {
            assert_eq!(problem(&line.repeat(2_000)), None, "{line}");
        }
        assert_eq!(problem(&format!("x = [{}]", "{a: 'b', c: -1 + 2},\n".repeat(5_000))), None);
    }
}
