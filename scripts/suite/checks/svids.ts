/** SPIFFE: clients that prove themselves by a JWT-SVID or an X.509-SVID, without registration. */
import { makeAuthority, makeCertificate } from "../certificates.ts";
import { BY_SVID, type Context } from "../context.ts";
import type { Answer } from "../http.ts";
import { expired, type Json, makeKey, withBadSignature } from "../keys.ts";
import type { Changes } from "../minted.ts";
import { spiffeId } from "../scene.ts";
import { area, type Row } from "../table.ts";
import { issues, refused, refusedCertificate } from "../verdicts.ts";

const WRONG = refused("invalid_client");
const send = (c: Context, svid: string, form = {}): Promise<Answer> =>
  c.post("token_endpoint", {
    ...{ grant_type: "client_credentials", resource: c.names.api, scope: c.names.read },
    ...{ client_assertion_type: BY_SVID, client_assertion: svid, ...form },
  });
const changed = (id: string, clause: string, what: string, changes: (c: Context) => Changes): Row => [
  `jwt-svid.${id}`,
  clause,
  `A JWT-SVID ${what} is invalid_client.`,
  (c) => send(c, c.svid("planner", changes(c))),
  WRONG,
];
const claims = (id: string, clause: string, what: string, members: Json): Row =>
  changed(id, clause, what, () => ({ claims: members }));

export const jwtSvids = area("JWT-SVID", { needs: ["spiffe_jwt"], basis: "jwt-svid.good" }, [
  [
    "jwt-svid.good",
    "SPCA-3.1-1",
    "A workload gets a token by its JWT-SVID.",
    (c) => send(c, c.svid("planner")),
    issues("sub is the SPIFFE ID", ({ sub }) => sub === spiffeId("planner")),
    { basis: undefined },
  ],
  [
    "jwt-svid.bad-signature",
    "SPCA-3.1-7",
    "A JWT-SVID with a bad signature is invalid_client.",
    (c) => send(c, withBadSignature(c.svid("planner"))),
    WRONG,
  ],
  changed("other-key", "SPCA-3.1-7", "by a key that is not in the bundle", () => ({
    key: makeKey("svid-1"),
  })),
  changed("unknown-kid", "JSV-6.2-1", "by the key of another issuer", (c) => ({ key: c.scene.idp.key })),
  claims("other-domain", "SPCA-5-1", "of a trust domain that is not configured", {
    sub: "spiffe://unknown.example/planner",
  }),
  claims("no-spiffe-id", "JSV-3.1-1", "whose sub is no SPIFFE ID", { sub: "planner" }),
  claims("no-path", "JSV-3.1-1", "whose SPIFFE ID has no path", { sub: "spiffe://suite.example" }),
  claims("expired", "SPCA-3.1-5", "that has expired", expired()),
  claims("no-exp", "JSV-3.3-1", "without exp", { exp: undefined }),
  claims("no-aud", "JSV-3.2-1", "without aud", { aud: undefined }),
  claims("other-aud", "JSV-3.2-1", "for another audience", { aud: "https://other-server.example" }),
  claims("no-sub", "SPCA-3.1-4", "without sub", { sub: undefined }),
  changed("header-member", "JSV-2-1", "with a further header member", () => ({
    header: { suite: "x" },
  })),
  changed("typ", "JSV-2.3-1", "of another type", () => ({ header: { typ: "at+jwt" } })),
  changed("alg-none", "JSV-4-1", "with alg none", () => ({ header: { alg: "none" } })),
  [
    "jwt-svid.other-client-id",
    "SPCA-3.1-8",
    "A client_id with which the SPIFFE ID has nothing to do is refused.",
    (c) => send(c, c.svid("planner"), { client_id: spiffeId("crew") }),
    refused("invalid_client", "invalid_request"),
  ],
]);

const byCertificate = (c: Context, certificate: ReturnType<Context["x509Svid"]>): Promise<Answer> =>
  c.post(
    "token_endpoint",
    {
      grant_type: "client_credentials",
      resource: c.names.api,
      scope: c.names.read,
      client_id: spiffeId("planner"),
    },
    { certificate },
  );
const uris = [spiffeId("planner")];
type Leaf = Parameters<typeof makeCertificate>[3];
const certified = (
  id: string,
  clause: string,
  what: string,
  names: readonly string[],
  leaf: Leaf = {},
): Row => [
  `x509-svid.${id}`,
  clause,
  `An X.509-SVID ${what} is refused.`,
  (c) => byCertificate(c, makeCertificate("planner", { uris: names }, c.scene.trustDomain.authority, leaf)),
  refusedCertificate,
];

export const x509Svids = area("X.509-SVID", { needs: ["spiffe_x509"], basis: "x509-svid.good" }, [
  [
    "x509-svid.good",
    "SPCA-3.2-7",
    "A workload gets a token by its X.509-SVID.",
    (c) => byCertificate(c, c.x509Svid("planner")),
    issues("sub is the SPIFFE ID", ({ sub }) => sub === spiffeId("planner")),
    { basis: undefined },
  ],
  [
    "x509-svid.other-authority",
    "SPCA-3.2-3",
    "An X.509-SVID of an authority with the name of the trust domain's, and another key, is refused.",
    (c) =>
      byCertificate(
        c,
        makeCertificate("planner", { uris }, makeAuthority(c.scene.trustDomain.authority.name)),
      ),
    refusedCertificate,
  ],
  [
    "x509-svid.system",
    "SPCA-6.2.3-1",
    "A certificate with a SPIFFE ID of another authority that the server knows is refused.",
    (c) => byCertificate(c, makeCertificate("planner", { uris }, c.scene.authority)),
    refusedCertificate,
  ],
  [
    "x509-svid.self-signed",
    "X5S-5.1-1",
    "A certificate that signed itself is refused.",
    (c) => byCertificate(c, makeCertificate("planner", { uris })),
    refusedCertificate,
  ],
  certified("expired", "X5S-5.1-1", "that has expired", uris, { lastsMs: -1_800_000 }),
  certified("two-ids", "X5S-2-2", "with two URIs", [spiffeId("planner"), spiffeId("crew")]),
  certified("other-id", "SPCA-3.2-8", "of another workload than client_id", [spiffeId("crew")]),
  certified("other-domain", "SPCA-5-1", "of another trust domain", ["spiffe://unknown.example/planner"]),
  certified("no-path", "X5S-5.2-3", "without a path", ["spiffe://suite.example"]),
  certified("authority", "X5S-5.2-1", "that is an authority", uris, { isAuthority: true }),
  certified("no-signature-usage", "SPCA-3.2-6", "without digitalSignature", uris, { signs: false }),
  [
    "x509-svid.no-certificate",
    "RFC8705-1.2-1",
    "Without a certificate the SPIFFE ID alone proves nothing.",
    (c) =>
      c.post("token_endpoint", {
        ...{ grant_type: "client_credentials", resource: c.names.api, client_id: spiffeId("planner") },
      }),
    refusedCertificate,
  ],
]);
