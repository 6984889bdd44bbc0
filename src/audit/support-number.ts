/** The number of a request that people can read out: the first 36 bits of its id, in signs that do not look alike. */

/** PAGE-D-39: without 0 and O, 1, I and L, 2 and Z, 5 and S, 8 and B, and without the vowels that make words. */
const SIGNS = "234679CDFGHJKMNPQRTVWXY";
const LENGTH = 8;
/** The first hexadecimal digits of a UUID, all of them random in one of version 4. */
const UUID_START = /^([0-9a-f]{8})-([0-9a-f])/;

/** `XXXX-XXXX`; undefined for an id that is no UUID. */
export function supportNumber(requestId: string): string | undefined {
  const [, first = "", next = ""] = UUID_START.exec(requestId) ?? [];
  if (first === "") return undefined;
  let rest = Number.parseInt(first + next, 16);
  let signs = "";
  for (let at = 0; at < LENGTH; at++) {
    signs = SIGNS.charAt(rest % SIGNS.length) + signs;
    rest = Math.floor(rest / SIGNS.length);
  }
  return `${signs.slice(0, LENGTH / 2)}-${signs.slice(LENGTH / 2)}`;
}

const TYPED = new RegExp(`^[${SIGNS}]{${LENGTH}}$`);

/** The number as it is shown, of one as it was typed: in lower case, with spaces or without the dash. */
export function readSupportNumber(typed: string): string | undefined {
  const signs = typed.replaceAll(/[\s-]/g, "").toUpperCase();
  return TYPED.test(signs) ? `${signs.slice(0, LENGTH / 2)}-${signs.slice(LENGTH / 2)}` : undefined;
}
