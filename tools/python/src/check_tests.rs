//! Tests of the check: which programs have problems and where, that no correct program has one, and that what the messages
//! recommend runs.

use super::check;
use crate::session::{Limits, Session, Step};
use code_guest::testing::tools;

fn messages(source: &str) -> Vec<String> {
    check(source, &tools(), None)
        .into_iter()
        .map(|problem| format!("{}:{} {}", problem.line, problem.column, problem.message))
        .collect()
}

/// Asserts that a program has one problem, which starts with a place and message.
fn found(source: &str, start: &str) {
    let messages = messages(source);
    assert_eq!(messages.len(), 1, "{source}: {messages:?}");
    assert!(messages[0].starts_with(start), "{source}: {messages:?}");
}

fn run(source: &str) -> Step {
    let limits = Limits { memory: None, recursion: 100, printed: 1_000, value: 1_000, calls: 10 };
    Session::new().run(source, tools(), limits)
}

#[test]
fn correct_programs_have_no_problem() {
    for source in [
        "tools.fs_search('x', include=['a'], mode='text')",
        "await tools.fs_search(pattern=p, **more)",
        "tools.add(a=1, b=-2.5)",
        "tools.any(x=1)",
        "tools.fs_search({'pattern': 'x'})",
        "import json, math\nfrom datetime import date",
    ] {
        assert_eq!(messages(source), Vec::<String>::new(), "{source}");
    }
}

#[test]
fn mistakes_in_calls_are_found_where_they_are() {
    found("x = 1\ntools.fs_serach('x')", "2:7 there is no tool `fs_serach`: did you mean `fs_search`?");
    found("é = tools.fs_search(**{}, patern=1)", "1:27 tools.fs_search has no argument `patern`");
    found("tools.fs_search('x', inclde=[])", "1:22 tools.fs_search has no argument `inclde`: did you mean `include`?");
    found("tools.fs_search('x', limit='3')", "1:28 `limit` of tools.fs_search must be an integer, not a string");
    found(
        "tools.fs_search('x', include=['a', 1])",
        "1:36 `include` of tools.fs_search must be a string, not an integer",
    );
    found("tools.fs_search('x', mode='glob')", "1:27 `mode` of tools.fs_search must be one of \"text\", \"regex\"");
    found("tools.add(1)", "1:1 tools.add needs the argument `a`");
    found("tools = 3\ntools.x()", "1:1 the name `tools` is taken");
}

#[test]
fn absent_features_are_found_where_they_are() {
    for (source, start) in [
        ("x = (", "1:"),
        ("def f():\n    yield 1", "2:5 there is no `yield`"),
        ("d = {1: 2}\ndel d[1]", "2:1 there is no `del`: use `d.pop(key)`"),
        ("match 1:\n    case 1: pass", "1:1 there is no `match`"),
        ("class A(dict): pass", "1:1 there is no inheritance of classes: keep the value"),
        ("@f\nclass MyError(Exception):\n    pass", "2:1 there is no inheritance of classes: raise a built-in"),
        ("class A:\n    @property\n    def x(self): return 1", "2:5 there is no `property`"),
        ("class A:\n    for i in x: pass", "2:5 the body of a class"),
        ("async def f():\n    async for x in y: pass", "2:5 there is no `async for`"),
        ("async def f():\n    async with x: pass", "2:5 there is no `async with`"),
        ("async def f():\n    return [x async for x in y]", "2:15 there is no `async for`"),
        ("a = [1, 2]\na[0], a[1] = a[1], a[0]", "2:1 an item or attribute"),
        ("for i, a[0] in x: pass", "1:8 an item or attribute"),
        ("x = [1 for (i, a.b) in y]", "1:16 an item or attribute"),
        ("a = [1]\na[:1] = [2]", "2:1 a slice cannot be assigned"),
        ("x = 'a %s' % 1", "1:5 there is no `%` on strings"),
        ("x = {1: 2} | y", "1:5 there is no `|` on dicts"),
        ("n = 0\nn += 2 > 1", "2:6 there is no arithmetic with bool"),
        ("sum(x > 1 for x in [2])", "1:5 there is no arithmetic with bool"),
        ("from math import *", "1:1 there is no `import *`"),
        ("x = 1j", "1:5 there are no complex numbers"),
        ("import requests", "1:8 there is no module `requests`: use a tool; programs can import asyncio, base64"),
        ("import os.path", "1:8 there is no module `os.path`"),
        ("from itertools import chain, groupby", "1:30 `itertools` has no `groupby` here: collect"),
        ("import math as m\nm.prod([1])", "2:3 `math` has no `prod` here"),
        ("from itertools import chain\nchain.from_iterable([[1]])", "2:7 `chain` has no `from_iterable`"),
        ("asyncio.sleep(1)", "1:9 asyncio.sleep does not exist here"),
        ("from asyncio import sleep", "1:21 asyncio.sleep does not exist here"),
        ("format(1, 'x')", "1:1 there is no `format`: use an f-string"),
        ("print(1, file=x)", "1:10 `print` has no argument `file` here"),
        ("sorted(['a'], key=str.lower)", "1:23 `str.lower` is no function: use `lambda x: x.lower()`"),
        ("d = {1: 2}\nmax(d, key=d.get)", "2:12 a method cannot be passed as a function: use `lambda x: d.get(x)`"),
        (
            "x = {1: 2}\nmax(x, key=x.get)",
            "2:12 a method cannot be passed as a function: use `lambda item: x.get(item)`",
        ),
        ("list(map(lambda x: tools.any(x=x), [1]))", "1:10 a tool cannot be called in `map`"),
        ("list(map(tools.any, [1]))", "1:10 a tool cannot be called in `map`"),
        ("def f(x): return tools.any(x=x)\nsorted([1], key=f)", "2:17 a tool cannot be called in the key of `sorted`"),
        ("x = [1]\nx.sort(key=lambda i: tools.any(x=i))", "2:12 a tool cannot be called in the key of `sort`"),
    ] {
        found(source, start);
        assert!(!matches!(run(source), Step::Finished(..)), "{source} runs");
        assert!(messages(source)[0].chars().count() <= 300, "{source}: a host may cut the message");
    }
}

#[test]
fn different_results_are_found_where_they_are() {
    for (source, start) in [
        ("any(tools.any(x=i) for i in [1])", "1:1 `any` does not stop early"),
        ("next(x for x in [1])", "1:1 `next` of a generator"),
        ("next(map(str, [1]))", "1:1 `next` of a generator"),
        ("next((x for x in [1] if x > 2), None)", "1:1 `next` of a generator"),
        ("from itertools import count\nx = (i for i in count())", "2:5 this would not end"),
        ("import itertools\nlist(map(str, itertools.count()))", "2:6 this would not end"),
        ("class A:\n    def __len__(self): return 0", "2:9 `A.__len__` would be ignored"),
        ("class A:\n    def __ne__(self, x): return False", "2:9 `A.__ne__` would be ignored"),
        ("import re\nre.findall(r'\\w', x, re.I | re.ASCII)", "2:29 `re.ASCII` would be ignored"),
        ("import re\nre.split('(-)', 'a-b')", "2:1 `re.split` would drop the text"),
        ("import re\nre.sub('a', r'\\n', 'a')", "2:13 `\\n` would stay two characters"),
        ("import re\nre.sub('a', lambda m: 'b', 'a')", "2:13 `re.sub` takes no function"),
        ("x = d.strptime(t, '%Y-%m-%d %z')", "1:5 `strptime` would drop the offset"),
        ("x = d.strptime(t, '%H:%M')", "1:5 `strptime` needs year, month and day"),
        ("x = d.strftime('%S.%f')", "1:5 `%f` has nine digits"),
        ("x = f'{d:%S.%f}'", "1:7 `%f` has nine digits"),
    ] {
        found(source, start);
    }
}

#[test]
fn all_problems_are_reported_at_once() {
    let source = "import numpy, random\ndef f(a):\n    a[0], a[1] = a[1], a[0]\n    yield 1\n    yield 2\ntools.add(1)";
    let messages = messages(source);
    assert_eq!(messages.len(), 5, "{messages:?}");
    assert!(messages[0].starts_with("1:8 ") && messages[0].ends_with("typing, unicodedata"), "{messages:?}");
    assert!(messages[1].starts_with("1:15 ") && !messages[1].contains("unicodedata"), "{messages:?}");
    assert!(messages[2].starts_with("3:5 an item or attribute"), "{messages:?}");
    assert!(messages[3].starts_with("4:5 ") && messages[3].ends_with(" (also at 5:5)"), "{messages:?}");
    assert!(messages[4].starts_with("6:1 tools.add needs"), "{messages:?}");
    let many: String = (0..200).map(|index| format!("import absent{index}\n")).collect();
    assert_eq!(check(&many, &tools(), None).len(), super::MAX_PROBLEMS);
    let repeated = check(&"del x[1]\n".repeat(200), &tools(), None);
    assert!(repeated.len() == 1 && repeated[0].message.ends_with("5:1, 6:1 and 194 more)"), "{repeated:?}");
}

#[test]
fn names_of_the_program_are_its_own() {
    for source in [
        "def format(x): return x\nformat(1)",
        "vars = [1]\nvars",
        "for dir in ['a']: dir",
        "def f(input): return input\nf(1)",
        "f = lambda compile: compile\nf(1)",
        "[exit for exit in [1]]",
        "try:\n    1 / 0\nexcept ZeroDivisionError as help:\n    x = str(help)",
        "if (super := 1): super",
        "def next(x): return x\nnext(x for x in [1])",
        "def any(x): return x\ndef f(): return any(tools.any(x=i) for i in [1])",
        "def groupby(x): return x\ngroupby([1])",
        "class itertools:\n    groupby = 3\nitertools.groupby",
        "class A:\n    def get(self, x): return x\na = A()\nmax([1, 2], key=a.get)",
        "from collections import namedtuple\nP = namedtuple('P', 'lower, upper')\nmax([1], key=P(lambda x: x, 1).lower)",
        "class A: pass\na = A()\nsetattr(a, 'get', lambda x: x)\nmax([1], key=a.get)",
        "def map(f, x): return x\nmap(lambda x: tools.any(x=x), [1])",
        "def sum(x): return x\nsum(x > 1 for x in [1])",
        "def f(re): return re.split('(-)', 'a-b') if re else 0\nf(0)",
        "class D:\n    def strptime(self, a, b): return b\nD().strptime('', '%z')",
        "import re as r\nr.split('-', 'a-b')",
        "from json import dumps as format\nformat(1)",
    ] {
        assert_eq!(messages(source), Vec::<String>::new(), "{source}");
        assert!(matches!(run(source), Step::Finished(..)), "{source}: {:?}", run(source));
    }
}

#[test]
fn programs_that_can_run_are_not_refused() {
    for source in [
        "try:\n    import numpy\nexcept ImportError:\n    numpy = None",
        "try:\n    from itertools import groupby\nexcept Exception:\n    groupby = None",
        "def f():\n    return eval('1')\ntry:\n    f()\nexcept NameError:\n    x = 1",
        "import math\ntry:\n    math.prod([1])\nexcept AttributeError:\n    x = 1",
        "try:\n    '%d' % 'a'\nexcept TypeError:\n    x = 1",
        "try:\n    1\nexcept (IOError, UnicodeError):\n    2",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from collections.abc import Sequence\n    import numpy",
        "import typing as t\ndef f(x: t.Hashable, y: bytearray) -> complex:\n    z: memoryview = x\n    return z\nf(1, 2)",
        "any(x > 1 for x in [1, 2])",
        "next(iter([1]))",
        "from itertools import count, islice\nlist(islice(count(), 3)) + [i for i, _ in zip(count(), [1])]",
        "class A:\n    def __eq__(self, x): return True\n    def __ne__(self, x): return not self == x\nA() != A()",
        "import re\nre.findall('[a-z]+', 'ab', re.ASCII)",
        "import re\nre.split('(?:-)', 'a-b') + re.split(r'\\(', 'a(b') + re.split('[(]', 'a(b')",
        "import re\nre.sub('(a)', r'\\1\\\\n', 'a') + re.sub('a', '\\n', 'a')",
        "from datetime import datetime\nstr(datetime.strptime('2024-122', '%Y-%j')) + datetime.now().strftime('%Y %%f')",
        "f'{0.5:.1%}' + f'{3:f}'",
        "'a' * (2 > 1) + str(5 * (3 > 2))",
        "{1} | {2} | set(dict([(1, 2)]))",
        "5 % 3 + len('%d')",
        "a, *b = [1, 2]\n(c, d), e = (1, 2), 3",
        "a = [[1]]\na[0][0] = 2\na[0][0] += 1",
        "dict.fromkeys([1]), str.__name__",
        "sorted(['b'], key=len)\nmax({'a': 1}.items(), key=lambda i: i[1])",
        "def f(x): return x if x else tools.any(x=x)\nlist(map(f, [1]))",
        "f = lambda x: x or tools.any(x=x)\nsorted([1], key=f)",
        "import sys\nprint(sys.version_info[0], file=None)",
        "class A:\n    'Text.'\n    x: int = 1\n    y = 2\n    ...\nA().x",
        "from __future__ import annotations\n1",
        "import os\n1",
        "if False:\n    import numpy\nelse:\n    x = 1\neval('1') if 0 else 2",
    ] {
        assert_eq!(messages(source), Vec::<String>::new(), "{source}");
        assert!(matches!(run(source), Step::Finished(..)), "{source}: {:?}", run(source));
    }
    // Functions that return coroutines can be called anywhere.
    let coroutines =
        "import asyncio\ndef f(x): return tools.any(x=x)\nawait asyncio.gather(f(1))\njobs = list(map(f, [1]))";
    assert_eq!(messages(coroutines), Vec::<String>::new());
}

#[test]
fn variables_of_earlier_programs_are_unknown() {
    let messages = |source: &str, earlier: &[&str]| check(source, &tools(), Some(earlier)).len();
    assert_eq!(messages("format(1)", &[]), 0);
    assert_eq!(messages("max([1], key=cache.get)", &[]), 0);
    assert_eq!(messages("next(x for x in [1])", &[]), 1);
    assert_eq!(messages("next(x for x in [1])", &["next"]), 0);
}

#[test]
fn recommended_programs_run() {
    for (source, value) in [
        ("a = [1, 2]\nx = a[0]; a[0] = a[1]; a[1] = x\na", "[2,1]"),
        ("a = [1, 2, 3]\na = a[:1] + [9] + a[2:]\na", "[1,9,3]"),
        ("d = {'k': 1}\nd.pop('k')\nd", "{}"),
        ("a = {'x': 1}\nb = {'y': 2}\n{**a, **b}", r#"{"x":1,"y":2}"#),
        ("n = 0\nn += int(2 > 1)\nn + sum(int(x > 1) for x in [1, 2])", "2"),
        ("[x for x in [1, 2] if x > 1][:1]", "[2]"),
        ("d = {'a': 1, 'b': 2}\nmax(d, key=lambda x: d.get(x))", r#""b""#),
        ("sorted(['b', 'A'], key=lambda x: x.lower())", r#"["A","b"]"#),
        ("d = {}\nfor x in ['a', 'b']: d.setdefault(len(x), []).append(x)\nd", r#"{"1":["a","b"]}"#),
        ("import functools\nxs = [2, 3]\nfunctools.reduce(lambda a, b: a * b, xs, 1)", "6"),
        ("from itertools import chain\nlists = [[1], [2]]\nlist(chain(*lists))", "[1,2]"),
        ("import json\njson.loads(json.dumps({'a': [1]}))", r#"{"a":[1]}"#),
        ("import re\nre.findall('-|[^-]+', 'a-b')", r#"["a","-","b"]"#),
        ("import re\n''.join(m.group() for m in re.finditer('a', 'aba'))", r#""aa""#),
        ("import re\nre.findall('[A-Za-z0-9_]', 'é_')", r#"["_"]"#),
        ("from datetime import datetime\nd = datetime(2024, 1, 2, 3, 4, 5, 6)\nf'{d.microsecond:06}'", r#""000006""#),
        (
            "from datetime import datetime\nstr(datetime.fromisoformat('2024-01-02T10:00+02:00'))",
            r#""2024-01-02 10:00:00+02:00""#,
        ),
        (
            "from datetime import datetime, timezone, timedelta\nstr(timezone.utc) + str(timezone(timedelta(hours=2)))",
            r#""UTCUTC+02:00""#,
        ),
        ("class Color:\n    RED = 1\nColor.RED", "1"),
        ("from pathlib import Path\nPath('a/b').name", r#""b""#),
        ("int(b'\\x01\\x02'.hex(), 16) + len(bin(abs(5))) - 2", "261"),
        ("str(bytes.fromhex(f'{5:04x}'))", r#""b'\\x00\\x05'""#),
        ("table = {'a': 'b'}\ns = 'abc'\n''.join(table.get(c, c) for c in s)", r#""bbc""#),
        ("import math\nx = 3\ny = 4\nmath.sqrt(x * x + y * y)", "5.0"),
        ("xs = [1, 2]\nsum(a * b for a, b in zip(xs, xs)) + sum(1 for x in xs if x < 2)", "6"),
        ("{1, 2}.issubset({1, 2, 3})", "true"),
        ("numbers = [1, 2]\nbytes.fromhex(''.join(f'{n:02x}' for n in numbers)).hex()", r#""0102""#),
        ("x = 1234.5\nf'{x:,.2f}'", r#""1,234.50""#),
    ] {
        assert_eq!(messages(source), Vec::<String>::new(), "{source}");
        match run(source) {
            Step::Finished(found, _) => assert_eq!(found, value, "{source}"),
            other => panic!("{source}: {other:?}"),
        }
    }
}

#[test]
fn deep_and_long_programs_are_checked() {
    let deep = |depth: usize| {
        let inner = format!("{}tools.any(){}", "[".repeat(depth), "]".repeat(depth));
        let problems = check(&format!("any({inner} for x in [1])"), &tools(), None);
        problems.iter().any(|problem| problem.message.contains("does not stop early"))
    };
    assert!(deep(10) && !deep(60));
    // The interpreter refuses this depth itself.
    assert!(check(&format!("x = {}1{}", "any(".repeat(600), ")".repeat(600)), &tools(), None).len() == 1);
    let nested: String =
        (0..90).map(|depth| format!("{}if x:\n", " ".repeat(depth))).collect::<String>() + &" ".repeat(90) + "del x";
    assert!(!check(&nested, &tools(), None).is_empty());
}
