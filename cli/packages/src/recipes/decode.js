// Writes the bytes of the longest string literal in a file: Brotli, as digits of Z85. The second argument is their maximum.
const [file, max] = process.argv.slice(1);
const literals = require("fs").readFileSync(file, "utf8").match(/"[^"\\\n]+"/g);
const text = literals.reduce((one, other) => (other.length > one.length ? other : one)).slice(1, -1);
const digits = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#";
const bytes = Buffer.alloc((text.length / 5) * 4);
for (let at = 0; at < text.length; at += 5) {
  let number = 0;
  for (const digit of text.slice(at, at + 5)) number = number * 85 + digits.indexOf(digit);
  bytes.writeUInt32BE(number, (at / 5) * 4);
}
process.stdout.write(require("zlib").brotliDecompressSync(bytes, { maxOutputLength: Number(max) }));
