/**
 * Checkpoints as signed notes (C2SP signed-note and tlog-checkpoint v1.0.0, 22 July 2026): https://c2sp.org/tlog-checkpoint
 * Covers the text of a checkpoint, the line of a signature with Ed25519, and how a key is written for verifiers.
 */

/** TLCP-text-1, TLCP-sig-2: it is the name of the key, too. NOTE-format-2: neither an issuer nor a log has spaces or `+`. */
export const originOf = (issuer: string, log: string): string =>
  `${issuer.replace(/^https?:\/\//, "").replaceAll("+", "%2B")}/audit/${log}`;

/** What is signed: TLCP-text-1, three lines and no others. NOTE-format-1: it ends with a line feed. */
export const noteText = (origin: string, size: number, root: Uint8Array): string =>
  `${origin}\n${size}\n${root.toBase64()}\n`;

/** NOTE-sig-2: what is hashed for the id of an Ed25519 key, which has the first four bytes of it. */
export const keyIdInput = (name: string, key: Uint8Array): Uint8Array =>
  joined(new TextEncoder().encode(`${name}\n`), Uint8Array.of(ED25519), key);

const ED25519 = 1;
export const KEY_ID_BYTES = 4;

/** The key in the form in which verifiers are told it. */
export const verifierKey = (name: string, id: Uint8Array, key: Uint8Array): string =>
  `${name}+${id.toHex()}+${joined(Uint8Array.of(ED25519), key).toBase64()}`;

/** What the line of a signature says behind the name. */
export const signatureOf = (id: Uint8Array, signature: Uint8Array): string =>
  joined(id, signature).toBase64();

/** NOTE-format-1: the text, an empty line, and a line for the signature. */
export const signedNote = (origin: string, text: string, signature: string): string =>
  `${text}\n— ${origin} ${signature}\n`;

function joined(...parts: readonly Uint8Array[]): Uint8Array {
  const all = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}
