// Typed tools in JavaScript: an object named after the interface, with a function for each of its functions.
//
// A function returns the success value of a `result`, and throws its `err`. QuickJS implements only the language: no files,
// no TextDecoder, no require. So the WIT (`../wit/files.wit`) imports files, which are a module here.
import { getDirectories } from "wasi:filesystem/preopens@0.2.12";

const MAX_CHARACTERS = 100_000;

// The length of a string counts UTF-16 units; iteration yields characters.
const characters = (text) => {
  let count = 0;
  for (const _ of text) count += 1;
  return count;
};

// `\s` and `toLowerCase` cover all of Unicode; the contract covers ASCII.
const split = (text) => text.split(/[ \t\n\v\f\r]+/).filter((word) => word !== "");
const lower = (text) => text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());

const utf8 = (bytes) => decodeURIComponent(Array.from(bytes, (byte) => "%" + byte.toString(16).padStart(2, "0")).join(""));

const contents = (path) => {
  const [root] = getDirectories();
  if (!root) throw "no folder is granted";
  const file = root[0].openAt({ symlinkFollow: true }, path.replace(/^\/+/, ""), {}, { read: true });
  const bytes = [];
  for (let end = false, chunk; !end; ) {
    [chunk, end] = file.read(65_536, bytes.length);
    for (const byte of chunk) bytes.push(byte);
  }
  return utf8(bytes);
};

export const text = {
  count(text, { shortest, letters }) {
    const length = characters(text);
    if (length > MAX_CHARACTERS) throw { tag: "too-long", val: length };
    const words = split(letters === "lowered" ? lower(text) : text).filter((word) => characters(word) >= (shortest ?? 0));
    if (words.length === 0) throw { tag: "no-words" };
    return { words: words.length, distinct: new Set(words).size };
  },

  mostFrequent(text, limit) {
    const times = new Map();
    for (const word of split(lower(text))) times.set(word, (times.get(word) ?? 0) + 1);
    return [...times]
      .sort(([, a], [, b]) => b - a)
      .slice(0, limit)
      .map(([word, times]) => ({ word, times }));
  },

  checksum(data) {
    let crc = ~0;
    for (const byte of data) {
      crc ^= byte;
      for (let bit = 0; bit < 8; bit += 1) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
    }
    return ~crc; // The same bits as a signed number: componentize-qjs 0.4 limits a larger u32 to 2³¹ - 1.
  },

  read(path) {
    try {
      return contents(path);
    } catch (error) {
      throw `${path}: ${error.message ?? error}`;
    }
  },
};
