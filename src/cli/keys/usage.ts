/** How `mandate keys` is called. */
import type { CommandUsage } from "../options.ts";

export const KEYS: CommandUsage = {
  name: "keys",
  summary: "the signing keys of this server, and the key that they are encrypted with",
  forms: [
    { words: "list", options: ["json", "config"], says: "prints the keys and when each changes" },
    {
      words: "rotate",
      options: ["purpose", "alg", "json", "config"],
      says: "lets the announced keys sign in place of the active ones, once they have been announced for keys.announceSeconds",
    },
    {
      words: "withdraw",
      takes: ["KID"],
      options: ["dry-run", "json", "config"],
      says: "is for a key that leaked: ends all tokens that it signed, removes it from /jwks, and lets the announced key sign, at once and on every instance",
    },
    {
      words: "reencrypt",
      options: ["json", "config"],
      says: "encrypts the stored keys with keys.encryptionKey where they still need keys.otherEncryptionKey",
    },
    {
      words: "new-encryption-key",
      takes: ["FILE"],
      says: "writes a new key-encryption key, for keys.encryptionKey, into a new file that only this user may read",
    },
  ],
  options: {
    purpose: {
      value: "PURPOSE",
      says: "token, grant or checkpoint; without it, the keys of tokens and grants",
    },
    alg: { value: "ALG", says: "only the keys of this algorithm, such as ES256" },
    "dry-run": { says: "prints how many tokens would end, and changes nothing" },
    json: { says: "one JSON object, in a list one a line" },
    config: { value: "FILE", says: "the configuration (default: data/config.json)" },
  },
  notes: [
    "Servers need not be stopped: each reads the keys every two seconds.",
    "The audit trail records every change of a key.",
  ],
  example: "mandate keys rotate --purpose token",
};
