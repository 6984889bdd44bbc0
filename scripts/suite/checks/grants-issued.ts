/** Identity chaining and ID-JAG, as the server that issues the grant. */
import { type Context, type Form, ID_JAG, JWT } from "../context.ts";
import type { Answer } from "../http.ts";
import { claimsOf, expired, headerOf, isSignedBy, seconds } from "../keys.ts";
import { area } from "../table.ts";
import { answers, notGiven, refused, scopesOf, that } from "../verdicts.ts";

const ask = (c: Context, form: Form = {}): Promise<Answer> =>
  c.exchange("planner", { resource: undefined, audience: c.names.partner, scope: c.names.read, ...form });
const says = (wants: string, holds: (claims: ReturnType<typeof claimsOf>, c: Context) => boolean) =>
  answers(`a grant in which ${wants}`, ({ access_token: grant }, _, c) => holds(claimsOf(grant), c));
const isSigned = async ({ body }: Answer, c: Context): Promise<boolean> => {
  const { body: set } = await c.get(c.endpoint("jwks_uri"));
  return isSignedBy(String(body.access_token), Array.isArray(set.keys) ? set.keys : []);
};

export const chaining = area(
  "identity chaining",
  { needs: ["delegation", "chaining"], basis: "chaining.grant" },
  [
    [
      "chaining.grant",
      "IDC-2.3.3-1",
      "An exchange for a partner gives a grant, which is no access token.",
      (c) => ask(c),
      answers(
        '"token_type": "N_A"',
        (body) => typeof body.access_token === "string" && body.token_type === "N_A",
      ),
      { basis: undefined },
    ],
    [
      "chaining.issued-type",
      "IDC-2.3.3-1",
      "issued_token_type says that it is a JWT.",
      (c) => ask(c),
      answers(JWT, (body) => body.issued_token_type === JWT),
    ],
    [
      "chaining.audience",
      "IDC-2.3.3-2",
      "aud is the partner.",
      (c) => ask(c),
      says("aud is the partner", ({ aud }, c) => [aud].flat().includes(c.names.partner)),
    ],
    [
      "chaining.one-audience",
      "IDC-2.3.3-3",
      "aud is the partner alone.",
      (c) => ask(c),
      says("aud has one value", ({ aud }) => [aud].flat().length === 1),
    ],
    [
      "chaining.issuer",
      "RFC7523-3-3",
      "iss is the issuer.",
      (c) => ask(c),
      says("iss is the issuer", ({ iss }, c) => iss === c.server.issuer),
    ],
    [
      "chaining.signed",
      "RFC7521-8.1-1",
      "It is signed by a published key.",
      (c) => ask(c),
      that("such a signature", isSigned),
    ],
    [
      "chaining.times",
      "IDC-5.5-1",
      "It is short-lived: five minutes at most.",
      (c) => ask(c),
      says(
        "exp is at most 300 s away",
        ({ exp }) => typeof exp === "number" && exp > seconds() && exp <= seconds() + 301,
      ),
    ],
    [
      "chaining.jti",
      "RFC7521-5.1-4",
      "It has a jti.",
      (c) => ask(c),
      says("there is a jti", ({ jti }) => typeof jti === "string" && jti.length >= 16),
    ],
    [
      "chaining.scope",
      "IDC-2.5-1",
      "It has no more scope than the subject token.",
      (c) =>
        ask(c, {
          scope: `${c.names.read} ${c.names.write}`,
          subject_token: c.userToken({ claims: { scope: c.names.read } }),
        }),
      that("400, or a grant without that scope", ({ status, body }, c) =>
        status === 200
          ? !scopesOf(claimsOf(body.access_token).scope).includes(c.names.write)
          : status === 400,
      ),
    ],
    [
      "chaining.unknown",
      "IDC-2.3.2-1",
      "A server that is not known is invalid_target.",
      (c) => ask(c, { audience: "https://unknown.suite.example" }),
      refused("invalid_target"),
    ],
    [
      "chaining.no-target",
      "IDC-2.3.1-1",
      "A request without a target gets no grant.",
      (c) => ask(c, { audience: undefined, requested_token_type: JWT }),
      notGiven,
    ],
    [
      "chaining.outsider",
      "IDC-5.3-1",
      "A client without a rule gets no grant.",
      (c) => c.exchange("outsider", { resource: undefined, audience: c.names.partner }),
      notGiven,
    ],
    [
      "chaining.no-access",
      "RFC8725-3.12-1",
      "The grant is no access token here.",
      async (c) => c.introspect("gate", await c.tokenOf(ask(c))),
      answers('"active": false', ({ active }) => active === false),
      { needs: ["delegation", "chaining", "introspection"] },
    ],
  ],
);

export const idJags = area("ID-JAG, issued", { needs: ["id_jag"], basis: "id-jag.grant" }, [
  [
    "id-jag.grant",
    "IDJAG-4.3.4-1",
    "An ID token of the client gives an ID-JAG, which is no access token.",
    (c) => c.askIdJag(),
    answers(
      `issued_token_type ${ID_JAG} and token_type N_A`,
      (body) => body.issued_token_type === ID_JAG && body.token_type === "N_A",
    ),
    { basis: undefined },
  ],
  [
    "id-jag.typ",
    "IDJAG-3.1-7",
    "Its typ is oauth-id-jag+jwt.",
    (c) => c.askIdJag(),
    answers("that typ", (body) => headerOf(body.access_token).typ === "oauth-id-jag+jwt"),
  ],
  [
    "id-jag.iss",
    "IDJAG-3.1-1",
    "iss is the issuer.",
    (c) => c.askIdJag(),
    says("iss is the issuer", ({ iss }, c) => iss === c.server.issuer),
  ],
  [
    "id-jag.aud",
    "IDJAG-3.1-4",
    "aud is the issuer of the other server.",
    (c) => c.askIdJag(),
    says("aud is the partner", ({ aud }, c) => [aud].flat().join() === c.names.partner),
  ],
  [
    "id-jag.client",
    "IDJAG-3.1-5",
    "client_id is the client as the other server knows it.",
    (c) => c.askIdJag(),
    says("client_id is a text", ({ client_id: id }) => typeof id === "string" && id !== ""),
  ],
  [
    "id-jag.sub",
    "IDJAG-3.1-2",
    "sub is the user.",
    (c) => c.askIdJag(),
    says("sub is not the client", ({ sub }, c) => typeof sub === "string" && sub !== c.roles.machine.id),
  ],
  [
    "id-jag.claims",
    "IDJAG-3.1-6",
    "jti, exp and iat are there.",
    (c) => c.askIdJag(),
    says(
      "they are",
      ({ jti, exp, iat }) => typeof jti === "string" && typeof exp === "number" && typeof iat === "number",
    ),
  ],
  [
    "id-jag.short",
    "EMA-7.4.2-1",
    "It is short-lived.",
    (c) => c.askIdJag(),
    says("exp is at most 300 s away", ({ exp }) => Number(exp) <= seconds() + 301),
  ],
  [
    "id-jag.signed",
    "RFC7521-8.1-1",
    "It is signed by a published key.",
    (c) => c.askIdJag(),
    that("such a signature", isSigned),
  ],
  [
    "id-jag.no-refresh",
    "IDJAG-4.3.4-5",
    "No refresh token comes with it.",
    (c) => c.askIdJag(),
    answers("no refresh_token", (body) => body.refresh_token === undefined),
  ],
  [
    "id-jag.other-client",
    "IDJAG-4.3.3-2",
    "An ID token for another client is refused.",
    (c) => c.askIdJag({ subject_token: c.idToken({ claims: { aud: c.roles.second.id } }) }),
    notGiven,
  ],
  [
    "id-jag.expired",
    "IDJAG-4.3.3-1",
    "An ID token that has expired is refused.",
    (c) => c.askIdJag({ subject_token: c.idToken({ claims: expired() }) }),
    notGiven,
  ],
  [
    "id-jag.no-audience",
    "IDJAG-4.3-1",
    "A request without audience is refused.",
    (c) => c.askIdJag({ audience: undefined }),
    notGiven,
  ],
  [
    "id-jag.unknown-audience",
    "IDJAG-4.3.3-5",
    "A server that is not known is refused.",
    (c) => c.askIdJag({ audience: "https://unknown.suite.example" }),
    refused("invalid_target", "invalid_request"),
  ],
  [
    "id-jag.unknown-resource",
    "EMA-7.6.1-1",
    "An API that is not one of that server is refused.",
    (c) => c.askIdJag({ resource: "https://elsewhere.suite.example" }),
    refused("invalid_target", "invalid_request"),
  ],
  [
    "id-jag.key",
    "IDJAG-9.9-2",
    "A proof of a key binds the grant to that key.",
    (c) => c.askIdJag({}, { headers: { dpop: c.proof() } }),
    says("there is cnf.jkt", ({ cnf }) => typeof (cnf as { jkt?: unknown } | undefined)?.jkt === "string"),
    { needs: ["id_jag", "dpop"] },
  ],
  [
    "id-jag.metadata",
    "IDJAG-7.1-1",
    "The metadata say that it is issued.",
    (c) => c.get(`${c.server.issuer}/.well-known/oauth-authorization-server`),
    that("identity_chaining_requested_token_types_supported", (_, c) =>
      [c.server.metadata.identity_chaining_requested_token_types_supported].flat().includes(ID_JAG),
    ),
    { needs: ["id_jag", "metadata"] },
  ],
]);
