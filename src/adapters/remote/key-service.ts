/**
 * Signing keys at the operator's key service, which makes them and signs with them; their private halves are never
 * here. The interface is our own, two POST requests with JSON: src/adapters/crypto/README.md describes it.
 */
import * as v from "valibot";
import { JSON_DEPTH_MAX } from "../../limits/input.ts";
import { KEY_SERVICE_BYTES_MAX } from "../../limits/keys.ts";
import { StoreUnavailable } from "../../ports.ts";
import { defined } from "../../result.ts";
import type { KeyServicePlace } from "../../settings/settings.ts";
import { decodeBase64url, encodeBase64url } from "../../spec/rfc7515.ts";
import { algorithmsOf, type Jwk, parseJwk } from "../../spec/rfc7517.ts";
import { type Json, type JsonObject, parseJson } from "../../spec/rfc8259.ts";
import type { EncryptionKeys } from "../crypto/encryption-keys.ts";
import { type KeyCustody, namedKey, openSealed, readPublic, seal, sealedKeys } from "../crypto/seal.ts";
import { verifier } from "../crypto/verifier.ts";
import { fetchDocument, type Posted } from "./fetch.ts";
import { FetchFailed } from "./fetch-failed.ts";

/**
 * The key service does not answer, or not as it should; then no token is given out, because it would have no signature.
 */
export class KeyServiceUnavailable extends StoreUnavailable {
  override name = "KeyServiceUnavailable";
}

const Made = v.object({
  id: v.pipe(v.string(), v.minLength(1), v.maxLength(256)),
  jwk: v.custom<Json>(() => true),
});
const Signed = v.object({ signature: v.string() });

/**
 * Keys are in the store, encrypted; with a key service, new keys are made there, and those in the store serve until
 * they are removed.
 */
export function openCustody(encryptionKeys: EncryptionKeys, place?: KeyServicePlace): KeyCustody {
  const sealed = sealedKeys(encryptionKeys);
  if (place === undefined) return sealed;
  return {
    async make(alg) {
      const { id, jwk } = await ask(place, "keys", { alg }, Made);
      const parsed = parseJwk(jwk);
      if (!parsed.ok || !algorithmsOf(parsed.value, [alg]).includes(alg))
        throw new KeyServiceUnavailable(`the key service made no public key for ${alg}`);
      const named = namedKey(publicOf(parsed.value), alg);
      const { kid } = named;
      return { ...named, privateJwe: await seal({ keyService: id, kid }, kid, encryptionKeys) };
    },
    async open(row) {
      const content = await openSealed(row, encryptionKeys);
      if (!("keyService" in content)) return sealed.open(row);
      const id = content.keyService;
      const publicJwk = readPublic(row);
      const { alg } = row;
      return {
        publicJwk,
        at: "service",
        async hand(input) {
          const encoded = encodeBase64url(new TextEncoder().encode(input));
          const { signature: text } = await ask(place, "sign", { id, alg, input: encoded }, Signed);
          const signature = decodeBase64url(text) ?? new Uint8Array();
          // A token with another signature would be refused by everyone, and the operator would not know why.
          const jws = {
            header: { alg, members: {} },
            claims: {},
            signingInput: input,
            signature,
            compact: "",
          };
          if (!verifier.verify(jws, publicJwk))
            throw new KeyServiceUnavailable(
              "the key service answered with a signature that its key did not make",
            );
          return signature;
        },
      };
    },
  };
}

/** The members that make the key, without those that say what it is for. */
function publicOf(jwk: Jwk) {
  switch (jwk.kty) {
    case "EC":
      return { kty: jwk.kty, crv: jwk.crv, x: jwk.x, y: jwk.y };
    case "OKP":
      return { kty: jwk.kty, crv: jwk.crv, x: jwk.x };
    case "RSA":
      return { kty: jwk.kty, n: jwk.n, e: jwk.e };
  }
}

async function ask<T>(
  { service, authorization }: KeyServicePlace,
  path: string,
  body: JsonObject,
  schema: v.GenericSchema<unknown, T>,
): Promise<T> {
  const text = JSON.stringify(body);
  const post = defined<Posted>({ contentType: "application/json", text, authorization });
  const answer = await fetchDocument({ ...service, url: `${service.url}/${path}` }, KEY_SERVICE_BYTES_MAX, {
    post,
  }).catch((fault) => {
    if (!(fault instanceof FetchFailed)) throw fault;
    throw new KeyServiceUnavailable(`the key service did not answer /${path}: ${fault.message}`);
  });
  const json = parseJson(answer.text, JSON_DEPTH_MAX);
  const parsed = json.ok ? v.safeParse(schema, json.value) : undefined;
  if (parsed?.success !== true)
    throw new KeyServiceUnavailable(`the key service answered /${path} with something else than it should`);
  return parsed.output;
}
