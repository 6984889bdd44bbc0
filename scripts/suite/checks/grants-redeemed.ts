/** JWT authorization grants and ID-JAG, as the server that redeems them. */
import { type Context, JWT_BEARER } from "../context.ts";
import { expired, makeKey, seconds, withBadSignature } from "../keys.ts";
import type { Changes } from "../minted.ts";
import { area, type Row } from "../table.ts";
import { answers, given, issues, notGiven, refused, scopesOf, that } from "../verdicts.ts";

const WRONG = refused("invalid_grant");
const changed = (id: string, clause: string, what: string, changes: (c: Context) => Changes): Row => [
  `grant.${id}`,
  clause,
  `A grant ${what} is invalid_grant.`,
  (c) => c.redeem(c.grant(changes(c))),
  WRONG,
];
const jag = (id: string, clause: string, what: string, changes: (c: Context) => Changes): Row => [
  `id-jag-grant.${id}`,
  clause,
  `An ID-JAG ${what} is invalid_grant.`,
  (c) => c.redeem(c.idJag(changes(c))),
  WRONG,
];

export const jwtGrants = area("JWT grants, redeemed", { needs: ["jwt_grants"], basis: "grant.good" }, [
  [
    "grant.good",
    "IDC-2.4.3-1",
    "A grant of a trusted issuer gives an access token.",
    (c) => c.redeem(c.grant()),
    given,
    { basis: undefined },
  ],
  [
    "grant.subject",
    "RFC7523-3-5",
    "The token speaks for the subject of the grant, and not for the client.",
    (c) => c.redeem(c.grant()),
    issues("sub is not the client", ({ sub }, c) => typeof sub === "string" && sub !== c.roles.guest.id),
  ],
  [
    "grant.no-refresh",
    "RFC7521-4.1-6",
    "No refresh token comes of it.",
    (c) => c.redeem(c.grant()),
    answers("no refresh_token", (body) => body.refresh_token === undefined),
  ],
  [
    "grant.scope",
    "RFC7521-4.1-3",
    "The token has no more scope than the grant.",
    (c) => c.redeem(c.grant(), { scope: `${c.names.read} ${c.names.write}` }),
    that("400, or a token without that scope", async ({ status, body }, c) =>
      status === 200
        ? !scopesOf((await c.read(body.access_token)).scope).includes(c.names.write)
        : status === 400,
    ),
  ],
  [
    "grant.none",
    "RFC7521-4.1-1",
    "A request without assertion is invalid_request.",
    (c) => c.redeem(undefined),
    refused("invalid_request"),
  ],
  [
    "grant.garbage",
    "RFC7519-7.2-1",
    "What is no JWT is invalid_grant.",
    (c) => c.redeem("suite"),
    refused("invalid_grant", "invalid_request"),
  ],
  [
    "grant.bad-signature",
    "RFC7523-3-16",
    "A grant with a bad signature is invalid_grant.",
    (c) => c.redeem(withBadSignature(c.grant())),
    WRONG,
  ],
  changed("other-key", "RFC7523-3-16", "by another key", (c) => ({ key: makeKey(c.scene.partner.key.kid) })),
  changed("alg-none", "RFC7518-3.6-1", "with alg none", () => ({ header: { alg: "none" } })),
  changed("other-issuer", "IDC-2.4.2-4", "of an issuer that is not trusted", (c) => ({
    key: c.scene.untrusted.key,
    claims: { iss: c.scene.untrusted.issuer },
  })),
  changed("issuer-of-users", "IDC-2.4.2-4", "of an issuer that is trusted for something else", (c) => ({
    key: c.scene.idp.key,
    claims: { iss: c.scene.idp.issuer },
  })),
  changed("expired", "RFC7523-3-10", "that has expired", () => ({
    claims: expired(),
  })),
  changed("no-exp", "RFC7523-3-10", "without exp", () => ({ claims: { exp: undefined } })),
  changed("not-yet", "RFC7523-3-12", "that is not yet valid", () => ({ claims: { nbf: seconds() + 600 } })),
  changed("other-audience", "IDC-2.4.2-2", "for another server", () => ({
    claims: { aud: "https://other-server.example" },
  })),
  changed("no-audience", "RFC7523-3-7", "without aud", () => ({ claims: { aud: undefined } })),
  changed("no-sub", "RFC7523-3-5", "without sub", () => ({ claims: { sub: undefined } })),
  changed("other-client", "IDJAG-4.4.1-4", "for another client", (c) => ({
    claims: { client_id: c.roles.second.id },
  })),
  [
    "grant.replay",
    "IDC-5.5-2",
    "A grant is good for one use.",
    async (c) => {
      const once = c.grant();
      await c.tokenOf(c.redeem(once));
      return c.redeem(once);
    },
    WRONG,
  ],
  [
    "grant.unauthenticated",
    "IDC-5.5-3",
    "A request without client authentication gets no token.",
    (c) => c.post("token_endpoint", { grant_type: JWT_BEARER, assertion: c.grant(), resource: c.names.api }),
    refused("invalid_client", "invalid_request", "invalid_grant"),
  ],
  [
    "grant.wrong-secret",
    "RFC7523-3.1-1",
    "Client credentials beside a grant are verified.",
    (c) =>
      c.token(
        { ...c.roles.guest, secret: "wrong-secret-wrong-secret-wrong-1" },
        { grant_type: JWT_BEARER, assertion: c.grant() },
      ),
    refused("invalid_client"),
  ],
  [
    "grant.without-rule",
    "IDC-2.4.2-4",
    "A client without a rule redeems nothing.",
    (c) =>
      c.token("second", {
        grant_type: JWT_BEARER,
        assertion: c.grant({ claims: { client_id: c.roles.second.id } }),
        resource: c.names.api,
      }),
    notGiven,
  ],
]);

export const idJagGrants = area(
  "ID-JAG, redeemed",
  { needs: ["id_jag_grants"], basis: "id-jag-grant.good" },
  [
    [
      "id-jag-grant.good",
      "IDJAG-4.4.1-2",
      "An ID-JAG of a trusted issuer gives an access token.",
      (c) => c.redeem(c.idJag()),
      given,
      { basis: undefined },
    ],
    [
      "id-jag-grant.audience",
      "EMA-5.1-1",
      "The token is for the resource of the grant.",
      (c) => c.redeem(c.idJag(), { resource: undefined }),
      issues("aud is the resource", ({ aud }, c) => [aud].flat().join() === c.names.api),
    ],
    [
      "id-jag-grant.scope",
      "EMA-7.2.1-1",
      "The token has no more scope than the grant.",
      (c) => c.redeem(c.idJag(), { scope: `${c.names.read} ${c.names.write}` }),
      that("400, or a token without that scope", async ({ status, body }, c) =>
        status === 200
          ? !scopesOf((await c.read(body.access_token)).scope).includes(c.names.write)
          : status === 400,
      ),
    ],
    [
      "id-jag-grant.no-refresh",
      "IDJAG-4.4.3-1",
      "No refresh token comes of it.",
      (c) => c.redeem(c.idJag()),
      answers("no refresh_token", (body) => body.refresh_token === undefined),
    ],
    jag("other-client", "IDJAG-4.4.1-4", "for another client", (c) => ({
      claims: { client_id: c.roles.second.id },
    })),
    jag("no-client", "IDJAG-4.4.1-4", "without client_id", () => ({ claims: { client_id: undefined } })),
    jag("two-audiences", "IDJAG-4.4.1-3", "with two audiences", (c) => ({
      claims: { aud: [c.server.issuer, "https://other-server.example"] },
    })),
    jag("token-endpoint", "IDJAG-4.4.1-3", "whose audience is the token endpoint", (c) => ({
      claims: { aud: c.server.tokenEndpoint },
    })),
    jag("other-audience", "IDJAG-9.4-2", "for another server", () => ({
      claims: { aud: "https://other-server.example" },
    })),
    jag("other-resource", "EMA-7.6.2-1", "for an API that is not here", () => ({
      claims: { resource: "https://unknown.suite.example" },
    })),
    jag("expired", "EMA-7.4.2-1", "that has expired", () => ({
      claims: expired(),
    })),
    jag("no-sub", "EMA-7.4.1-2", "without sub", () => ({ claims: { sub: undefined } })),
    jag("no-jti", "IDJAG-3.1-6", "without jti", () => ({ claims: { jti: undefined } })),
    jag("other-key", "EMA-7.4.1-1", "by another key", (c) => ({ key: makeKey(c.scene.partner.key.kid) })),
    jag("bound", "IDJAG-9.9-4", "that is bound to a key, without a proof of it", () => ({
      claims: { cnf: { jkt: "x".repeat(43) } },
    })),
    [
      "id-jag-grant.replay",
      "EMA-7.4.2-2",
      "An ID-JAG is good for one use.",
      async (c) => {
        const once = c.idJag();
        await c.tokenOf(c.redeem(once));
        return c.redeem(once);
      },
      WRONG,
    ],
    [
      "id-jag-grant.metadata",
      "EMA-6-1",
      "The metadata name the profile.",
      (c) => c.get(`${c.server.issuer}/.well-known/oauth-authorization-server`),
      that("authorization_grant_profiles_supported has id-jag", (_, c) =>
        [c.server.metadata.authorization_grant_profiles_supported]
          .flat()
          .includes("urn:ietf:params:oauth:grant-profile:id-jag"),
      ),
      { needs: ["id_jag_grants", "metadata"] },
    ],
  ],
);
