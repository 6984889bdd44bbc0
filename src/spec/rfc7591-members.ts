/**
 * RFC 7591, OAuth 2.0 Dynamic Client Registration: https://www.rfc-editor.org/rfc/rfc7591.html
 * Covers 2 client metadata, each member for itself, with those of RFC 8705 2.1.2 and 3.4, RFC 9449 5.2 and
 * draft-ietf-oauth-spiffe-client-auth-02 5.1.
 */
import * as v from "valibot";
import { CLIENT_NAME_CHARS_MAX, METADATA_LIST_MAX } from "../limits/clients.ts";
import { CERTIFICATE_BYTES_MAX, JWT_BYTES_MAX, STRING_BYTES_MAX } from "../limits/input.ts";
import { err, ok, type Result } from "../result.ts";
import { parseFetchUrl } from "./rfc3986.ts";
import { parseScope } from "./rfc6749.ts";
import { algorithmsOf, parseJwk, RSA_ALGORITHMS, readJwkSet, SECRET_MEMBERS } from "./rfc7517.ts";
import { isJsonObject, type Json, type JsonObject } from "./rfc8259.ts";
import { parseRegisteredCertificate, SUBJECT_PARAMETERS } from "./rfc8705.ts";
import { ASSERTION_ALGORITHMS } from "./rfc8725.ts";
import { parsePattern } from "./spiffe/id.ts";

/** What an authentication method needs on record: secrets, which the server makes, or members of the metadata. */
export type Credential = "secrets" | "keys" | "certificates" | "subject" | "spiffe_id" | "nothing";

/** The authentication methods that metadata may name, with the credential that each needs. */
export type Methods<M extends string = string> = Readonly<Partial<Record<M, Credential>>>;

const text = v.pipe(v.string(), v.nonEmpty(), v.maxBytes(STRING_BYTES_MAX));
const texts = v.pipe(v.array(text), v.maxLength(METADATA_LIST_MAX));
/** Control characters, line breaks and characters that change the direction of the text around them are refused. */
const DISRUPTIVE = /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/u;
/** RFC7591-2.2-4, RFC7591-2.2-5: text in any language and script, recorded unchanged. */
const displayText = v.pipe(
  text,
  v.check((one) => !DISRUPTIVE.test(one)),
);
/** MCPC-D-12: a page shortens it (PAGE-D-7), so a name may be longer than what is shown. */
const clientName = v.pipe(
  displayText,
  v.check((one) => [...one].length <= CLIENT_NAME_CHARS_MAX),
);
const PAGE =
  /^https?:\/\/[A-Za-z0-9.:[\]-]+(?:[/?#](?:[A-Za-z0-9._~:/?#[\]@!$&'()*+,;=-]|%[0-9A-Fa-f]{2})*)?$/;
/** CIMD-8.6-5: a page is recorded and never fetched; it is http or https, so that a browser runs no code in it. */
const page = v.pipe(
  text,
  v.check((one) => PAGE.test(one) && URL.canParse(one)),
);
/** The address of the host is checked when the URL is fetched, since it may change until then. */
const fetched = v.pipe(
  v.string(),
  v.check((one) => parseFetchUrl(one).ok),
);
const scope = v.pipe(
  text,
  v.check((one) => parseScope(one).ok),
);
const WHOLE_DOMAIN = /^spiffe:\/\/[^/]*\/\*$/;
/**
 * SPCA-5.1-2: the member is a SPIFFE ID or a prefix; only the operator may associate a client with a whole trust
 * domain.
 */
const workloads = v.pipe(
  v.string(),
  v.check((one) => parsePattern(one).ok && !WHOLE_DOMAIN.test(one)),
);
/** RFC7591-2.2-1: members that may come in several languages. */
export const HUMAN_READABLE = {
  client_name: clientName, // PROD-2.2-4
  client_uri: page,
  logo_uri: page,
  tos_uri: page,
  policy_uri: page,
};

/**
 * RFC7591-1.1-1, RFC7591-2-20, RFC7591-6-1: only these case-sensitive names are read; all other members are ignored.
 */
export const membersFor = (methods: readonly string[]) =>
  v.partial(
    v.object({
      ...HUMAN_READABLE,
      redirect_uris: v.pipe(v.array(v.string()), v.maxLength(METADATA_LIST_MAX)), // PROD-2.2-6
      token_endpoint_auth_method: v.picklist(methods), // PROD-2.2-10
      token_endpoint_auth_signing_alg: v.picklist(ASSERTION_ALGORITHMS),
      grant_types: texts, // PROD-2.2-7
      response_types: texts,
      scope,
      contacts: v.pipe(v.array(displayText), v.maxLength(METADATA_LIST_MAX)),
      jwks_uri: fetched, // PROD-2.2-13
      jwks: v.custom<JsonObject>((value) => isJsonObject(value as Json)), // RFC7591-2-18
      software_id: displayText,
      software_version: displayText, // RFC7591-2-19: text, which is never compared as a number
      software_statement: v.pipe(v.string(), v.nonEmpty(), v.maxBytes(JWT_BYTES_MAX)),
      spiffe_id: workloads,
      spiffe_bundle_endpoint: fetched,
      ...v.entriesFromList(SUBJECT_PARAMETERS, text),
      tls_client_certificate_bound_access_tokens: v.boolean(), // RFC8705-3.4-1
      dpop_bound_access_tokens: v.boolean(), // RFC9449-5.2-2
      authorization_details_types: texts, // RFC9396-10-2
    }),
  );
export type Members = v.InferOutput<ReturnType<typeof membersFor>>;

// --- jwks -----------------------------------------------------------------------------------------------------

type KeysFailure = {
  kind: "jwks_refused" | "keys_private" | "keys_unusable" | "certificates_missing";
};

const Certificates = v.pipe(
  v.array(v.pipe(v.string(), v.maxLength(CERTIFICATE_BYTES_MAX))),
  v.maxLength(METADATA_LIST_MAX),
);

/** RFC7591-2-18, RFC7517-4-2, RFC7517-5-3: the keys that the method can use, with the members that are understood. */
export function parseKeys(
  jwks: JsonObject,
  credential: Credential | undefined,
  { token_endpoint_auth_signing_alg: only }: Members,
): Result<JsonObject, KeysFailure> {
  const set = readJwkSet(JSON.stringify(jwks));
  if (!set.ok) return err({ kind: set.error.kind === "jwk_set_private" ? "keys_private" : "jwks_refused" });
  const entries = set.value.entries.filter(isJsonObject);
  // RFC7517-9.2-1: a private key that was sent is no longer private.
  if (entries.some((entry) => SECRET_MEMBERS.some((name) => name in entry))) {
    return err({ kind: "keys_private" });
  }
  const accepted: readonly string[] = only === undefined ? ASSERTION_ALGORITHMS : [only];
  const keys: JsonObject[] = [];
  for (const entry of entries) {
    const key = parseJwk(entry);
    if (!key.ok) continue;
    // RFC8725-3.1-v4: a key without an accepted algorithm cannot sign an accepted assertion.
    const mayAssert = algorithmsOf(key.value, RSA_ALGORITHMS).some((alg) => accepted.includes(alg));
    if (credential === "keys" && !mayAssert) continue;
    const { use, key_ops, x5c } = entry;
    const kept: JsonObject = { ...key.value };
    if (use !== undefined) kept.use = use;
    if (key_ops !== undefined) kept.key_ops = key_ops;
    if (credential === "certificates") {
      // RFC8705-2.2-1, RFC8705-2.2.2-1: each key must come with its certificate.
      if (!v.is(Certificates, x5c) || !parseRegisteredCertificate(entry).ok) {
        return err({ kind: "certificates_missing" });
      }
      kept.x5c = x5c;
    }
    keys.push(kept);
  }
  return keys.length === 0 ? err({ kind: "keys_unusable" }) : ok({ keys });
}
