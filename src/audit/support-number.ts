/** The number of a request that people can read out: the first 36 bits of its id, in signs that do not look alike. */

/** PAGE-D-39: without 0 and O, 1, I and L, 2 and Z, 5 and S, 8 and B, and without the vowels that make words. */
const SIGNS = "234679CDFGHJKMNPQRTVWXY";
const LENGTH = 8;
/** The first hexadecimal digits of a UUID, all of them random in one of version 4. */
const UUID_START = /^[0-9a-f]{8}-[0-9a-f]/;
const DIGITS = 9;
/** The number of 36 bits. */
const END = 2 ** 36;

/** The digits of an id that its number stands for; undefined for an id that is no UUID. */
export const digitsOfId = (requestId: string): string | undefined =>
  UUID_START.test(requestId) ? requestId.slice(0, 8) + requestId.charAt(9) : undefined;

/** `XXXX-XXXX`; undefined for an id that is no UUID. */
export function supportNumber(requestId: string): string | undefined {
  const digits = digitsOfId(requestId);
  if (digits === undefined) return undefined;
  let rest = Number.parseInt(digits, 16);
  let signs = "";
  for (let at = 0; at < LENGTH; at++) {
    signs = SIGNS.charAt(rest % SIGNS.length) + signs;
    rest = Math.floor(rest / SIGNS.length);
  }
  return `${signs.slice(0, LENGTH / 2)}-${signs.slice(LENGTH / 2)}`;
}

const TYPED = new RegExp(`^[${SIGNS}]{${LENGTH}}$`);

/** The digits of a number as it was typed: in lower case, with spaces or without the dash. */
export function digitsOfNumber(typed: string): string | undefined {
  const signs = typed.replaceAll(/[\s-]/g, "").toUpperCase();
  if (!TYPED.test(signs)) return undefined;
  const number = [...signs].reduce((sum, sign) => sum * SIGNS.length + SIGNS.indexOf(sign), 0);
  return number < END ? number.toString(16).padStart(DIGITS, "0") : undefined;
}
