/** Signs with the keys of one purpose, and tells which of them are ours. */
import { type Signer, type SigningKey, StoreUnavailable } from "../../ports.ts";
import { whenReady } from "../../result.ts";
import type { KeyFacts } from "../../settings/key-life.ts";
import { encodeBase64url } from "../../spec/rfc7515.ts";
import { algorithmsOf, type Jwk } from "../../spec/rfc7517.ts";
import type { JsonObject } from "../../spec/rfc8259.ts";
import type { Hand } from "./seal.ts";

/** `published`: as it stands in the documents of keys, the same object as long as it is held. */
export type OpenedKey = { facts: KeyFacts; publicJwk: Jwk; published: JsonObject; hand: Hand };

const encode = (text: string): string => Buffer.from(text).toString("base64url");

/** `renew` reads the keys again, and creates one where there is none for an algorithm in use. */
export function makeSigner(keys: () => readonly OpenedKey[], renew: () => Promise<void>): Signer {
  const find = (alg: string): KeyFacts | undefined =>
    keys().find(({ facts }) => facts.alg === alg && facts.state === "active")?.facts;

  // A key that retired since it was chosen may sign what was recorded with it, because it is published for long enough.
  const opened = ({ kid, alg }: SigningKey): OpenedKey => {
    const key = keys().find(
      ({ facts }) => facts.kid === kid && facts.alg === alg && facts.state !== "announced",
    );
    // The key was withdrawn since it was chosen, as a rule; the next request gets another one.
    if (key === undefined) throw new StoreUnavailable("this key does not sign");
    return key;
  };
  // RFC9068-2.1-1, RFC6749-10.3-3, RFC6750-5.2-2, RFC7515-5.1-v1: claims are protected by a signature over the JWS.
  // RFC7515-6-v1: `kid` names the key. RFC7515-4.1.11-v2: there is no `crit`.
  const input: Signer["input"] = (key, typ, payload) => {
    const { kid, alg } = key;
    const made = () => encode(JSON.stringify({ typ, alg, kid }));
    return `${headersOf(opened(key)).getOrInsertComputed(typ, made)}.${encode(payload)}`;
  };

  return {
    current(alg) {
      const found = find(alg);
      if (found !== undefined) return { kid: found.kid, alg };
      // An algorithm has no key here if it came into use with a reload, or if its key was withdrawn.
      return renew().then(() => {
        const made = find(alg);
        // The key is at another key-encryption key or service, which the operator can put right.
        if (made === undefined) throw new StoreUnavailable(`no active signing key for ${alg}`);
        return { kid: made.kid, alg };
      });
    },
    renew,
    input,
    // RFC7518-3.4-v2: R and S have their full length.
    sign(key, typ, payload) {
      const signingInput = input(key, typ, payload);
      return whenReady(
        opened(key).hand(signingInput),
        (signature) => `${signingInput}.${encodeBase64url(signature)}`,
      );
    },
    signText: (key, text) => opened(key).hand(text),
    published: () => keys().map(({ published }) => published),
    own({ kid, alg }) {
      // An announced key counts too, because another instance may know before this one that it signs.
      const key = keys().find(({ facts }) => facts.kid === kid);
      return key !== undefined && algorithmsOf(key.publicJwk, []).includes(alg) ? key.publicJwk : undefined;
    },
  };
}

/** The headers of what a key signed, by `typ`: there are few, and each is the same for every token. */
const headers = new WeakMap<OpenedKey, Map<string, string>>();

const headersOf = (key: OpenedKey): Map<string, string> =>
  headers.getOrInsertComputed(key, () => new Map<string, string>());
