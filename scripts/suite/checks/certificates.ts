/** RFC 8705: clients with certificates, and tokens that are bound to one. */
import { makeAuthority, makeCertificate } from "../certificates.ts";
import type { Context } from "../context.ts";
import type { Answer } from "../http.ts";
import { type Json, sha256 } from "../keys.ts";
import type { Feature, Role } from "../parties.ts";
import { area, type Row } from "../table.ts";
import { answers, given, issues, refusedCertificate, that } from "../verdicts.ts";

const WRONG = refusedCertificate;
const names = (role: string) => ({ dns: [`${role}.suite.example`] });
const as = (c: Context, role: Role, identity: ReturnType<typeof makeCertificate>): Promise<Answer> =>
  c.clientCredentials({ ...c.roles[role], identity });
const forRole = (role: Role, feature: Feature): readonly Row[] => [
  [
    `${role}.good`,
    role === "pki" ? "RFC8705-2.1-1" : "RFC8705-2.2-2",
    `A client gets a token by ${feature}.`,
    (c) => c.clientCredentials(role),
    given,
    { needs: [feature], basis: undefined },
  ],
  [
    `${role}.no-certificate`,
    "RFC8705-2-5",
    `A client of ${feature} without a certificate is invalid_client.`,
    (c) => {
      const { identity: _, ...client } = c.roles[role];
      return c.clientCredentials(client);
    },
    WRONG,
    { needs: [feature], basis: `${role}.good` },
  ],
  [
    `${role}.other-certificate`,
    role === "pki" ? "RFC8705-2.1-1" : "RFC8705-2.2-2",
    "A certificate with the same name that an unknown authority issued is invalid_client.",
    (c) =>
      as(c, role, makeCertificate(`suite-${role}`, names(role), makeAuthority("Other"), { usage: "client" })),
    WRONG,
    { needs: [feature], basis: `${role}.good` },
  ],
  [
    `${role}.self-made`,
    role === "pki" ? "RFC8705-2.1-1" : "RFC8705-2.2-2",
    "A certificate with the same name that signed itself is invalid_client.",
    (c) => as(c, role, makeCertificate(`suite-${role}`, names(role), undefined, { usage: "client" })),
    WRONG,
    { needs: [feature], basis: `${role}.good` },
  ],
];

const cnfOf = ({ cnf }: Json): Json => (cnf ?? {}) as Json;
const bound = {
  needs: ["certificate_binding", "tls_client_auth"] as const,
  basis: "certificate-bound.issued",
};

export const certificates = area("certificates", {}, [
  ...forRole("pki", "tls_client_auth"),
  [
    "pki.other-name",
    "RFC8705-2.1.2-3",
    "A certificate of the right authority with another name is invalid_client.",
    (c) =>
      as(c, "pki", makeCertificate("suite-other", names("other"), c.scene.authority, { usage: "client" })),
    WRONG,
    { needs: ["tls_client_auth"], basis: "pki.good" },
  ],
  [
    "pki.name-in-subject",
    "RFC8705-2.1.2-3",
    "The name is looked for among names of its type, and not in the subject.",
    (c) =>
      as(
        c,
        "pki",
        makeCertificate("pki.suite.example", { uris: ["https://x.example"] }, c.scene.authority, {
          usage: "client",
        }),
      ),
    WRONG,
    { needs: ["tls_client_auth"], basis: "pki.good" },
  ],
  [
    "pki.expired",
    "RFC8705-7.5-3",
    "A certificate that has expired is invalid_client.",
    (c) =>
      as(
        c,
        "pki",
        makeCertificate("suite-pki", names("pki"), c.scene.authority, {
          usage: "client",
          lastsMs: -1_800_000,
        }),
      ),
    WRONG,
    { needs: ["tls_client_auth"], basis: "pki.good" },
  ],
  [
    "pki.renewed",
    "RFC8705-2.1-5",
    "A renewed certificate with the same name is accepted.",
    (c) => as(c, "pki", makeCertificate("suite-pki", names("pki"), c.scene.authority, { usage: "client" })),
    given,
    { needs: ["tls_client_auth"], basis: "pki.good" },
  ],
  ...forRole("pinned", "self_signed_tls_client_auth"),
  [
    "certificate-bound.issued",
    "RFC8705-3.1-1",
    "The token of a client that registered the wish is bound to its certificate.",
    (c) => c.clientCredentials("pki"),
    issues("cnf has x5t#S256", (claims) => typeof cnfOf(claims)["x5t#S256"] === "string"),
    { ...bound, basis: "pki.good" },
  ],
  [
    "certificate-bound.thumbprint",
    "RFC8705-3.1-2",
    "x5t#S256 is the base64url of the SHA-256 of the certificate, without padding.",
    (c) => c.clientCredentials("pki"),
    issues(
      "that value",
      (claims, c) => cnfOf(claims)["x5t#S256"] === sha256(c.roles.pki.identity?.der ?? ""),
    ),
    bound,
  ],
  [
    "certificate-bound.introspected",
    "RFC8705-3.2-1",
    "Introspection tells cnf of a bound token.",
    async (c) => c.introspect("gate", await c.tokenOf(c.clientCredentials("pki"))),
    answers(
      "the same cnf",
      (body, _, c) => cnfOf(body)["x5t#S256"] === sha256(c.roles.pki.identity?.der ?? ""),
    ),
    { ...bound, needs: [...bound.needs, "introspection"] },
  ],
  [
    "certificate-bound.metadata",
    "RFC8705-3.3-1",
    "The metadata say so.",
    (c) => c.get(`${c.server.issuer}/.well-known/oauth-authorization-server`),
    that(
      "tls_client_certificate_bound_access_tokens",
      (_, c) => c.server.metadata.tls_client_certificate_bound_access_tokens === true,
    ),
    { ...bound, needs: [...bound.needs, "metadata"] },
  ],
]);
