//! The layout as people see it, its widths, and documents that are made to break it.

use super::layout::{MAX_COLUMNS, MAX_DEPTH};
use super::pieces::MAX_BLOCK;
use super::spans::width;
use super::*;

const PLAIN: Screen = Screen { width: 80, colors: false };
const COLORED: Screen = Screen { width: 80, colors: true };

fn shown(text: &str) -> String {
    laid_out(text, PLAIN)
}

#[test]
fn each_construct_keeps_its_structure_without_colors() {
    for (text, wanted) in [
        ("# Title\ntext", "# Title\n\ntext\n"),
        ("Sub\n---\ntext", "## Sub\n\ntext\n"),
        ("**b** *i* ***x*** `c` ~~s~~", "**b** *i* ***x*** `c` ~~s~~\n"),
        ("one\ntwo  \nthree\\\nfour", "one two\nthree\nfour\n"),
        ("```rust\nfn  a() {}\n\n  b\n```\nend", "```rust\nfn  a() {}\n\n  b\n```\n\nend\n"),
        ("- a\n  - b\n    continued\n    1. c\n- d", "• a\n  • b continued\n    1. c\n• d\n"),
        ("3. a\n3. b\n\n   more\n4. c", "3. a\n4. b\n\n   more\n5. c\n"),
        ("- [x] done\n- [ ] open", "• [x] done\n• [ ] open\n"),
        ("- a\n\n- b", "• a\n\n• b\n"),
        ("- a\n\n  ```\n  code\n  ```", "• a\n\n  ```\n  code\n  ```\n"),
        ("> a\n>\n> - b\n> > c", "│ a\n│\n│ • b\n│\n│ │ c\n"),
        ("a\n\n---\n\nb", "a\n\n────────────────────────────────────────\n\nb\n"),
        ("[text](https://a.example/x) <https://b.example>", "text (https://a.example/x) https://b.example\n"),
        ("![alt](https://a.example/x.png)", "image: alt (https://a.example/x.png)\n"),
        ("see [a][b]\n\n[b]: https://b.example 'T'", "see [a][b]\n\n[b]: https://b.example 'T'\n"),
        ("[a]: b\n[a]: c\ntext", "[a]: b\n[a]: c\ntext\n"),
        ("> [a]: b", "[a]: b\n"),
        ("<b>bold</b> a<br>b\n\n<div>\nx\n</div>", "<b>bold</b> a\nb\n\n<div>\nx\n</div>\n"),
        ("a &lt; b &amp; c \\* d", "a < b & c * d\n"),
        ("", ""),
    ] {
        assert_eq!(shown(text), wanted, "{text}");
    }
}

#[test]
fn colors_take_the_place_of_the_marks() {
    assert_eq!(
        laid_out("# T\n**b** and `c`\n```\nx\n```", COLORED),
        "\u{1b}[1mT\u{1b}[0m\n\n\u{1b}[1mb\u{1b}[0m and \u{1b}[36mc\u{1b}[0m\n\n\u{1b}[2m```\u{1b}[0m\n\u{1b}[36mx\u{1b}[0m\n\u{1b}[2m```\u{1b}[0m\n"
    );
}

#[test]
fn no_text_of_a_model_sends_a_sequence() {
    let places = [
        "X",
        "# X",
        "**X**",
        "`X`",
        "```X\nX\n```",
        "- X",
        "> X",
        "[X](X)",
        "![X](<X>)",
        "<X>",
        "<b X>",
        "|X|\n|-|\n|X|",
        "[X]: X",
    ];
    for sequence in [
        "\u{1b}[2J",
        "&#27;[2J",
        "&#x1b;[2J",
        "\u{9b}2J",
        "&#155;2J",
        "\u{1b}]8;;https://x\u{7}",
        "\u{202e}",
        "&#8238;",
        "\r",
        "&#13;",
    ] {
        for place in places {
            let text = place.replace('X', sequence);
            let lines = shown(&text);
            let is_unsafe = |c: char| (c.is_control() && c != '\n' && c != '\t') || c == '\u{202e}';
            assert!(!lines.contains(is_unsafe), "{text:?}: {lines:?}");
            // With colors, each sequence is one of ours.
            let colored = laid_out(&text, COLORED);
            let is_ours = |rest: &str| {
                rest.starts_with('[')
                    && rest[1..].trim_start_matches(|c: char| c.is_ascii_digit() || c == ';').starts_with('m')
            };
            assert!(colored.split('\u{1b}').skip(1).all(is_ours), "{text:?}: {colored:?}");
        }
    }
}

#[test]
fn a_table_fits_every_terminal() {
    let table = "| Name | What it does | Cost |\n|:--|:-:|--:|\n| `fs_read_file` | reads **one** file of the granted folders, whole or in part | 1 |\n| 漢字 | x | 1,000,000 |\n";
    for columns in [40, 80, 200] {
        let lines = laid_out(table, Screen { width: columns, colors: false });
        assert!(lines.lines().all(|line| width(line) <= columns), "{columns}: {lines}");
        assert!(lines.contains("─┼─") && lines.contains(" │ "), "{lines}");
        let words: String = lines.split(|c: char| c.is_whitespace() || matches!(c, '│' | '─' | '┼')).collect();
        assert!(words.contains("1,000,000"), "a right cell is whole: {lines}");
    }
    assert_eq!(laid_out("|a|b|\n|-|-:|\n|x|10|\n|long|1|", PLAIN), "a    │  b\n─────┼───\nx    │ 10\nlong │  1\n");
    // A table that does not fit at all is a list of its cells.
    let many = format!("|{}\n|{}\n|{}\n", "head|".repeat(9), "-|".repeat(9), "cell|".repeat(9));
    assert_eq!(laid_out(&many, Screen { width: 40, colors: false }), "head: cell\n".repeat(9));
}

#[test]
fn prose_fits_every_terminal() {
    let text = format!("- {}\n  > {}\n\n{}", "word ".repeat(60), "quoted ".repeat(40), "漢字".repeat(70));
    for columns in [40, 80, 200] {
        let lines = laid_out(&text, Screen { width: columns, colors: false });
        let longest = lines.lines().map(width).max().unwrap();
        assert!(longest <= columns.min(MAX_PROSE) && longest > columns.min(MAX_PROSE) - 10, "{columns}: {longest}");
    }
}

#[test]
fn a_text_that_breaks_off_is_shown_whole() {
    let text = "# A\n\nb **c\n\n- d\n  - e `f\n\n| g |\n|-|\n| h |\n\n```\ni\nj";
    for end in 0..=text.len() {
        let mut stream = MarkdownStream::new(PLAIN);
        let lines =
            text[..end].chars().map(|c| stream.push(c.encode_utf8(&mut [0; 4]))).collect::<String>() + &stream.finish();
        assert_eq!(lines, laid_out(&text[..end], PLAIN), "the parts change nothing");
        let letters = |text: &str| text.chars().filter(char::is_ascii_alphabetic).collect::<String>();
        assert_eq!(letters(&lines), letters(&text[..end]), "at {end}");
    }
}

#[test]
fn a_block_is_shown_before_the_next_one_ends() {
    let mut stream = MarkdownStream::new(PLAIN);
    assert_eq!(stream.push("# A\nb"), "# A\n");
    assert_eq!(stream.push("c\n"), "");
    assert_eq!(stream.push("\n"), "\nbc\n");
    assert_eq!(stream.push("```\nline\nnext"), "\n```\nline\n");
    assert_eq!(stream.finish(), "next\n");
}

#[test]
fn nesting_and_columns_beyond_their_bounds_are_shown_as_written() {
    for mark in ["> ", "- ", "1) "] {
        let deep = |depth| format!("{}x", mark.repeat(depth));
        assert_ne!(shown(&deep(MAX_DEPTH)), format!("{}\n", deep(MAX_DEPTH)), "at the bound");
        assert_eq!(shown(&deep(MAX_DEPTH + 1)), format!("{}\n", deep(MAX_DEPTH + 1)));
    }
    let table = |columns| format!("|{}\n|{}\n|1|\n", "a|".repeat(columns), "-|".repeat(columns));
    assert_ne!(shown(&table(MAX_COLUMNS)), table(MAX_COLUMNS), "at the bound");
    assert_eq!(shown(&table(MAX_COLUMNS + 1)), table(MAX_COLUMNS + 1));
}

#[test]
fn a_megabyte_of_marks_takes_no_more_than_its_size() {
    for mark in [
        "[", "*", ">", "> ", "- ", "`", "_", "![", "<", "|", "&", "#", "~", "\\", "[a](", "*a_", "- a\n", "a|b\n",
        "1. ", " ", "\t", "x\n", "[a](b) ", "![a](b)", "**a**", "`a` ", "<b>", "[a]: b\n", "|a",
    ] {
        let whole = mark.repeat((1 << 20) / mark.len());
        // Blocks as long as the parser gets them, one after the other.
        let block = mark.repeat(MAX_BLOCK / mark.len() - 1);
        let blocks = vec![block; 16].join("\n\nx\n\n");
        for text in [whole, blocks] {
            let lines = shown(&text);
            assert!(lines.len() <= text.len() * 8 + 100, "{mark}: {} of {}", lines.len(), text.len());
            let kept = |text: &str| text.chars().filter(char::is_ascii_alphanumeric).count();
            assert!(kept(&lines) >= kept(&text), "{mark}");
        }
    }
}
