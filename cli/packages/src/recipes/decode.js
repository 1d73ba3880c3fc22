// Writes the bytes of a string literal in a file: Brotli, as digits of Z85.
const text = require("fs").readFileSync(process.argv[1], "utf8").match(/"[^"\\]{1000,}"/)[0].slice(1, -1);
const digits = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#";
const bytes = Buffer.alloc((text.length / 5) * 4);
for (let at = 0; at < text.length; at += 5) {
  let number = 0;
  for (const digit of text.slice(at, at + 5)) number = number * 85 + digits.indexOf(digit);
  bytes.writeUInt32BE(number, (at / 5) * 4);
}
process.stdout.write(require("zlib").brotliDecompressSync(bytes));
