//! Calls that are refused: without a grant, outside of it, by a rule, for lack of an approval, and with wrong arguments.

use std::path::Path;

use super::{CRIB, Case, case, write};

/// Tool, arguments and flags.
const CALLS: &[(&str, &str, &[&str])] = &[
    ("fs_read_file", r#"{"path":"a.txt"}"#, &[]),
    ("fs_read_file", r#"{"path":"a.txt"}"#, &["--allow-read=work"]),
    ("fs_read_file", r#"{"path":"../b.txt"}"#, &["--allow-read=work"]),
    ("fs_read_file", r#"{"path":"/etc/passwd"}"#, &["--allow-read=work"]),
    ("fs_read_file", r#"{"path":"sub/../../b.txt"}"#, &["--allow-read=work"]),
    ("fs_read_file", r#"{"path":"no/such"}"#, &["--allow-read=work"]),
    ("fs_read_file", r#"{"path":"sub"}"#, &["--allow-read=work"]),
    ("fs_read_file", r#"{"path":"a.txt"}"#, &["--allow-read=no/such/folder"]),
    ("fs_read_file", r#"{"path":"sub/c.txt"}"#, &["--allow-read=work", "--deny-tool=fs_read_file(path=sub/*)"]),
    ("fs_read_file", r#"{"path":"./sub//c.txt"}"#, &["--allow-read=work", "--deny-tool=fs_read_file(path=sub/*)"]),
    ("fs_write_file", r#"{"path":"a.txt","content":"x"}"#, &["--allow-read=work"]),
    ("fs_write_file", r#"{"path":"new.txt","content":"x"}"#, &["--allow-write=work"]),
    ("fs_write_file", r#"{"path":"new.txt","content":"x"}"#, &["--allow-write=work", "--ask-tool=fs_write_file"]),
    ("fs_write_file", r#"{"path":"new.txt","content":"x"}"#, &["--allow-write=work", "--set=deny.write=*"]),
    ("fs_rm", r#"{"path":"a.txt"}"#, &["--allow-write=work", "--deny-tool=fs_rm"]),
    ("fetch_page", r#"{"url":"https://example.com/"}"#, &[]),
    ("fetch_page", r#"{"url":"http://127.0.0.1:9/"}"#, &["--allow-net=example.com"]),
    ("get_tim", r#"{"timezone":"UTC"}"#, &[]),
    ("get_time", r#"{"timezone":"Europe/Nowhere"}"#, &[]),
    ("get_time", r#"{"timezone":7}"#, &[]),
    ("get_time", r#"{"timezone":"UTC","other":1}"#, &[]),
    ("get_time", r#"{"timezone":"#, &[]),
    ("get_time", "[]", &[]),
    ("get_time", r#"{"timezone":"UTC","timezone":"UTC"}"#, &[]),
    ("calculate", r#"{"expression":"1/0"}"#, &[]),
    ("calculate", r#"{"expression":"6*7"}"#, &["--no-such-flag"]),
    ("calculate", r#"{"expression":"6*7"}"#, &["--max-memory=none"]),
    ("calculate", r#"{"expression":"6*7"}"#, &["--max-memory=1MiB"]),
    ("calculate", r#"{"expression":"2^200"}"#, &["--set=results.max_inline=10"]),
];

pub(super) fn cases() -> Vec<Case> {
    let tools = format!("--tools={CRIB}");
    let call = |(tool, arguments, flags): &(&str, &str, &[&str])| {
        let name = format!("{tool} {arguments} {}", flags.join(" "));
        case("refusals", name, files, &[&[&["call", tool, arguments, &tools], *flags].concat()])
    };
    CALLS.iter().map(call).collect()
}

fn files(folder: &Path) {
    write(folder, "work/a.txt", "one\ntwo\r\nthree");
    write(folder, "work/sub/c.txt", "c");
    write(folder, "b.txt", "outside");
}
