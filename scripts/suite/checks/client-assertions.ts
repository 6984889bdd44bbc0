/** RFC 7523 and RFC 7521: clients with a key of their own (private_key_jwt). */
import { BY_JWT, type Context } from "../context.ts";
import type { Answer } from "../http.ts";
import { type Json, makeJwt, makeKey, randomId, seconds, withBadSignature } from "../keys.ts";
import type { Changes } from "../minted.ts";
import { area, type Row } from "../table.ts";
import { given, nothing, refused } from "../verdicts.ts";

const send = (c: Context, assertion: string, form = {}): Promise<Answer> =>
  c.clientCredentials(
    { ...c.roles.signer, method: "client_secret_post" },
    {
      client_id: c.roles.signer.id,
      client_secret: undefined,
      client_assertion_type: BY_JWT,
      client_assertion: assertion,
      ...form,
    },
  );
const changed = (c: Context, changes: Changes): Promise<Answer> =>
  send(c, c.assertion(c.roles.signer, changes));
const WRONG = refused("invalid_client");

/** An assertion that is wrong in one claim. */
const claim = (id: string, clause: string, what: string, claims: (c: Context) => Json): Row => [
  `assertion.${id}`,
  clause,
  `An assertion ${what} is invalid_client.`,
  (c) => changed(c, { claims: claims(c) }),
  WRONG,
];
const header = (id: string, clause: string, what: string, members: Json): Row => [
  `assertion.${id}`,
  clause,
  `An assertion ${what} is invalid_client.`,
  (c) => changed(c, { header: members }),
  WRONG,
];

export const clientAssertions = area(
  "client assertions",
  { needs: ["private_key_jwt"], basis: "assertion.good" },
  [
    [
      "assertion.good",
      "RFC7523-2.2-1",
      "A client with a key gets a token by its signed assertion.",
      (c) => c.clientCredentials("signer"),
      given,
      { basis: undefined },
    ],
    [
      "assertion.client-id",
      "RFC7521-4.2-2",
      "The assertion names the client: client_id may be left out.",
      (c) => send(c, c.assertion(c.roles.signer), { client_id: undefined }),
      given,
    ],
    [
      "assertion.other-client-id",
      "RFC7521-4.2-2",
      "A client_id that is not that of the assertion is refused.",
      (c) => send(c, c.assertion(c.roles.signer), { client_id: "suite-other" }),
      refused("invalid_client", "invalid_request"),
    ],
    [
      "assertion.bad-signature",
      "RFC7523-3-16",
      "An assertion with a bad signature is invalid_client.",
      (c) => send(c, withBadSignature(c.assertion(c.roles.signer))),
      WRONG,
    ],
    [
      "assertion.other-key",
      "RFC7523-3-16",
      "An assertion by another key under the kid of the client's is invalid_client.",
      (c) => changed(c, { key: makeKey(c.roles.signer.key?.kid ?? "") }),
      WRONG,
    ],
    header("alg-none", "RFC7518-3.6-1", "with alg none", { alg: "none" }),
    header("crit", "RFC7515-4.1.11-1", "with a critical header member that is not known", {
      crit: ["suite"],
      suite: 1,
    }),
    [
      "assertion.jwk-header",
      "RFC8725-3.10-1",
      "A key in the header of an assertion is not used.",
      (c) => {
        const key = makeKey("attacker");
        return changed(c, { key, header: { jwk: key.jwk } });
      },
      WRONG,
    ],
    claim("expired", "RFC7523-3-10", "that has expired", () => ({
      iat: seconds() - 900,
      exp: seconds() - 600,
    })),
    claim("no-exp", "RFC7523-3-10", "without exp", () => ({ exp: undefined })),
    claim("exp-text", "RFC7519-4.1.4-1", "whose exp is a text", () => ({ exp: String(seconds() + 60) })),
    claim("not-yet", "RFC7523-3-12", "that is not yet valid by nbf", () => ({ nbf: seconds() + 600 })),
    claim("no-aud", "RFC7523-3-7", "without aud", () => ({ aud: undefined })),
    claim("other-aud", "RFC7523-3-7", "for another audience", () => ({
      aud: "https://other-server.example",
    })),
    claim("aud-prefix", "RFC7523-3-9", "whose aud only begins like the issuer", (c) => ({
      aud: `${c.server.issuer}.evil.example`,
    })),
    claim("no-iss", "RFC7523-3-3", "without iss", () => ({ iss: undefined })),
    claim("no-sub", "RFC7523-3-5", "without sub", () => ({ sub: undefined })),
    [
      "assertion.other-sub",
      "RFC7523-3-6",
      "An assertion whose sub is another client than its iss and client_id is refused.",
      (c) => changed(c, { claims: { sub: c.roles.machine.id } }),
      refused("invalid_client", "invalid_request"),
    ],
    claim("other-iss", "RFC7523-3-6", "whose iss is another client", (c) => ({ iss: c.roles.machine.id })),
    [
      "assertion.replay",
      "RFC7523-3-14",
      "An assertion with a jti that was used is refused.",
      async (c) => {
        const once = c.assertion(c.roles.signer, { claims: { jti: randomId() } });
        await c.tokenOf(send(c, once));
        return send(c, once);
      },
      WRONG,
    ],
    [
      "assertion.no-type",
      "RFC7521-4.2-1",
      "An assertion without client_assertion_type is refused.",
      (c) => send(c, c.assertion(c.roles.signer), { client_assertion_type: undefined }),
      nothing,
    ],
    [
      "assertion.unknown-type",
      "RFC7523-2.2-1",
      "A client_assertion_type that is not known is refused.",
      (c) => send(c, c.assertion(c.roles.signer), { client_assertion_type: "urn:suite:no-such-type" }),
      nothing,
    ],
    [
      "assertion.two",
      "RFC7523-2.2-2",
      "Two JWTs in client_assertion are refused.",
      (c) => send(c, `${c.assertion(c.roles.signer)} ${c.assertion(c.roles.signer)}`),
      refused("invalid_client", "invalid_request"),
    ],
    [
      "assertion.two-methods",
      "RFC7521-4.2.1-2",
      "An assertion beside the secret of a client is refused.",
      (c) =>
        c.clientCredentials("machine", {
          client_assertion_type: BY_JWT,
          client_assertion: c.assertion(c.roles.signer),
        }),
      refused("invalid_client", "invalid_request"),
    ],
    [
      "assertion.garbage",
      "RFC7521-4.2.1-1",
      "What is no JWT is invalid_client.",
      (c) => send(c, "e30.e30"),
      WRONG,
    ],
    [
      "assertion.untyped",
      "B7523-4-9",
      "An assertion without typ is accepted.",
      (c) => changed(c, { header: { typ: undefined } }),
      given,
    ],
    [
      "assertion.access-token",
      "RFC8725-3.12-1",
      "A JWT of the type at+jwt is no client assertion.",
      (c) =>
        send(
          c,
          makeJwt(
            c.roles.signer.key ?? makeKey("none"),
            {
              iss: c.roles.signer.id,
              sub: c.roles.signer.id,
              aud: c.server.issuer,
              exp: seconds() + 60,
              iat: seconds(),
              jti: randomId(),
            },
            { typ: "at+jwt" },
          ),
        ),
      WRONG,
    ],
  ],
);
