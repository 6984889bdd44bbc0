/** Workloads of a platform, which bring its JWT as a grant and are not registered. */
import { BY_JWT, type Context, JWT } from "../context.ts";
import { expired, makeKey, seconds, withBadSignature } from "../keys.ts";
import type { Changes } from "../minted.ts";
import { area, type Row } from "../table.ts";
import { answers, issues, notGiven, refused } from "../verdicts.ts";

const wrong = (id: string, clause: string, what: string, changes: (c: Context) => Changes): Row => [
  `platform.${id}`,
  clause,
  `A platform's token ${what} is invalid_grant.`,
  (c) => c.platformGrant({ assertion: c.platformToken(changes(c)) }),
  refused("invalid_grant"),
];

export const platforms = area("platform grants", { needs: ["platform_grants"], basis: "platform.good" }, [
  [
    "platform.good",
    "WAG-3-1",
    "A workload that was never seen gets a token by the token of its platform.",
    (c) => c.platformGrant(),
    issues("there is a sub", ({ sub }) => typeof sub === "string"),
    { basis: undefined },
  ],
  [
    "platform.no-refresh",
    "WAG-5-4",
    "No refresh token comes of it.",
    (c) => c.platformGrant(),
    answers("no refresh_token", (body) => body.refresh_token === undefined),
  ],
  [
    "platform.resource",
    "WAG-5-3",
    "The token is for the requested resource.",
    (c) => c.platformGrant(),
    issues("aud is the resource", ({ aud }, c) => [aud].flat().join() === c.names.api),
  ],
  [
    "platform.lifetime",
    "WAG-5-5",
    "The token does not outlive the assertion by much.",
    (c) => c.platformGrant(),
    issues("exp is at most 300 s after that of the assertion", ({ exp }) => Number(exp) <= seconds() + 421),
  ],
  wrong("no-tenant", "WAG-6.3-1", "without the claim of its tenant", () => ({
    claims: { tenant: undefined },
  })),
  wrong("other-tenant", "WAG-6.3-1", "of another tenant", () => ({ claims: { tenant: "t-2" } })),
  wrong("other-subject", "WAG-6.1-2", "whose sub no registration has", () => ({
    claims: { sub: "person/7" },
  })),
  wrong("other-key", "WAG-6.1-3", "by another key", (c) => ({ key: makeKey(c.scene.platform.key.kid) })),
  wrong("key-of-another", "WAG-6.1-3", "by the key of another issuer", (c) => ({ key: c.scene.idp.key })),
  wrong("other-issuer", "WAG-7-1", "of an issuer that is not trusted", (c) => ({
    key: c.scene.untrusted.key,
    claims: { iss: c.scene.untrusted.issuer },
  })),
  wrong("expired", "WIF-J-1", "that has expired", () => ({
    claims: expired(),
  })),
  wrong("no-exp", "WIF-J-1", "without exp", () => ({ claims: { exp: undefined } })),
  wrong("long", "PLAT-D-5", "that lives for a day", () => ({ claims: { exp: seconds() + 86_400 } })),
  wrong("other-audience", "WAG-5.1-2", "for another server", () => ({
    claims: { aud: "https://other-server.example" },
  })),
  wrong("two-audiences", "WAG-5.1-2", "with two audiences", (c) => ({
    claims: { aud: [c.server.issuer, "https://other-server.example"] },
  })),
  [
    "platform.bad-signature",
    "WIF-V-1",
    "A platform's token with a bad signature is invalid_grant.",
    (c) => c.platformGrant({ assertion: withBadSignature(c.platformToken()) }),
    refused("invalid_grant"),
  ],
  [
    "platform.replay",
    "WIF-S-3",
    "A platform's token is good for one use.",
    async (c) => {
      const assertion = c.platformToken();
      await c.tokenOf(c.platformGrant({ assertion }));
      return c.platformGrant({ assertion });
    },
    refused("invalid_grant"),
  ],
  [
    "platform.user",
    "WIF-V-2",
    "It is no token of a user.",
    (c) => c.exchange("planner", { subject_token: c.platformToken(), subject_token_type: JWT }),
    notGiven,
    { needs: ["platform_grants", "delegation"] },
  ],
  [
    "platform.of-user",
    "PLAT-D-15",
    "The token of a user is none of a workload.",
    (c) => c.platformGrant({ assertion: c.anyUserToken() }),
    refused("invalid_grant"),
  ],
  [
    "platform.client",
    "PLAT-D-1",
    "As a client assertion it authenticates the workload.",
    (c) =>
      c.post("token_endpoint", {
        ...{ grant_type: "client_credentials", resource: c.names.api, scope: c.names.read },
        ...{ client_assertion_type: BY_JWT, client_assertion: c.platformToken() },
      }),
    issues("there is a sub", ({ sub }) => typeof sub === "string"),
  ],
]);
