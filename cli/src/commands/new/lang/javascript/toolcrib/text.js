// UTF-8, which QuickJS cannot convert by itself.

/** Returns the bytes of a text; half of a surrogate pair becomes U+FFFD. */
export function encode(text) {
  const bytes = [];
  for (const character of text) {
    let code = character.codePointAt(0);
    if (code >= 0xd800 && code < 0xe000) code = 0xfffd;
    if (code < 0x80) bytes.push(code);
    else if (code < 0x800) bytes.push(0xc0 | (code >> 6), 0x80 | (code & 63));
    else if (code < 0x10000) bytes.push(0xe0 | (code >> 12), 0x80 | ((code >> 6) & 63), 0x80 | (code & 63));
    else bytes.push(0xf0 | (code >> 18), 0x80 | ((code >> 12) & 63), 0x80 | ((code >> 6) & 63), 0x80 | (code & 63));
  }
  return Uint8Array.from(bytes);
}

/** Returns the text of bytes; each sequence that is not UTF-8 becomes U+FFFD. */
export function decode(bytes) {
  const pieces = [];
  let piece = "";
  for (let at = 0; at < bytes.length; ) {
    const [code, length] = character(bytes, at);
    piece += String.fromCodePoint(code);
    at += length;
    if (piece.length > 4096) {
      pieces.push(piece);
      piece = "";
    }
  }
  return pieces.join("") + piece;
}

/** Returns the character at a place, and the number of its bytes. */
function character(bytes, at) {
  const first = bytes[at];
  if (first < 0x80) return [first, 1];
  const length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4) return [0xfffd, 1];
  let code = first & (0x7f >> length);
  for (let next = 1; next < length; next += 1) {
    const byte = bytes[at + next];
    if (byte === undefined || (byte & 0xc0) !== 0x80) return [0xfffd, next];
    code = (code << 6) | (byte & 63);
  }
  const isTooLong = (length === 3 && code < 0x800) || (length === 4 && (code < 0x10000 || code > 0x10ffff));
  return isTooLong || (code >= 0xd800 && code < 0xe000) ? [0xfffd, 1] : [code, length];
}
