//! Programs that no compiler writes, built byte by byte.

/// Numbers of a module's sections.
pub(super) const TYPE: u8 = 1;
pub(super) const IMPORT: u8 = 2;
pub(super) const FUNCTION: u8 = 3;
pub(super) const MEMORY: u8 = 5;
pub(super) const GLOBAL: u8 = 6;
pub(super) const EXPORT: u8 = 7;
pub(super) const ELEMENT: u8 = 9;
pub(super) const CODE: u8 = 10;
pub(super) const DATA: u8 = 11;

/// Encodes a number as LEB128: seven bits per byte, the lowest first.
pub(super) fn number(mut value: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let low = (value & 0x7f) as u8;
        value >>= 7;
        bytes.push(if value > 0 { low | 0x80 } else { low });
        if value == 0 {
            return bytes;
        }
    }
}

/// Prefixes content with its length.
pub(super) fn sized(content: &[u8]) -> Vec<u8> {
    [number(content.len()), content.to_vec()].concat()
}

pub(super) fn section(id: u8, content: &[u8]) -> Vec<u8> {
    [vec![id], sized(content)].concat()
}

/// Section of this many equal items.
pub(super) fn items(id: u8, count: usize, item: &[u8]) -> Vec<u8> {
    section(id, &[number(count), item.repeat(count)].concat())
}

pub(super) fn custom(name: &str, content: &[u8]) -> Vec<u8> {
    section(0, &[sized(name.as_bytes()), content.to_vec()].concat())
}

pub(super) fn module(sections: &[Vec<u8>]) -> Vec<u8> {
    [b"\0asm\x01\0\0\0".to_vec(), sections.concat()].concat()
}

pub(super) fn component(sections: &[Vec<u8>]) -> Vec<u8> {
    [b"\0asm\x0d\0\x01\0".to_vec(), sections.concat()].concat()
}

/// Module of functions without parameters and results, all with this body: its locals and its instructions.
pub(super) fn functions(count: usize, body: &[u8]) -> Vec<u8> {
    let code = items(CODE, count, &sized(body));
    module(&[section(TYPE, &[1, 0x60, 0, 0]), items(FUNCTION, count, &[0]), code])
}

/// Command for WASI preview 1 with functions that take a compiler long: `count` of them, each with `steps` steps of
/// arithmetic over variables that are loaded from memory and stored back, so that no step can be eliminated.
pub(super) fn slow(count: usize, steps: usize) -> Vec<u8> {
    const VARIABLES: usize = 60;
    // One run of variables of the type i64.
    let mut body = vec![1, VARIABLES as u8, 0x7e];
    // i32.const 0, i64.load or i64.store at the variable's address.
    let memory = |variable: usize| [vec![3], number(8 * variable)].concat();
    for n in 0..VARIABLES {
        body.extend([vec![0x41, 0, 0x29], memory(n), vec![0x21, n as u8]].concat());
    }
    for step in 0..steps {
        let variable = |n: usize| ((step * n + n) % VARIABLES) as u8;
        // local.get a, local.get b, i64.mul, local.get c, i64.rotl, local.set d
        body.extend([0x20, variable(7), 0x20, variable(11), 0x7e, 0x20, variable(13), 0x89, 0x21, variable(17)]);
    }
    for n in 0..VARIABLES {
        body.extend([vec![0x41, 0, 0x20, n as u8, 0x37], memory(n)].concat());
    }
    body.push(0x0b);
    let exports = [vec![2], sized(b"_start"), vec![0, 0], sized(b"memory"), vec![2, 0]].concat();
    module(&[
        section(TYPE, &[1, 0x60, 0, 0]),
        items(FUNCTION, count, &[0]),
        section(MEMORY, &[1, 0, 1]),
        section(EXPORT, &exports),
        items(CODE, count, &sized(&body)),
    ])
}
