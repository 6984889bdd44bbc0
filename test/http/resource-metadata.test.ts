/** The metadata of our own protected endpoints where the configuration takes an issuer of users away. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { makeService } from "../support/service.ts";
import { IDP, ISSUER } from "../support/world.ts";

const WELL_KNOWN = "/.well-known/oauth-protected-resource";
const consents = { issuers: { [IDP]: { clients: ["consent-page"] } } };

for (const [name, idp, status, led] of [
  ["an issuer of users is named", {}, 200, "consents"],
  ["a disabled issuer is not named, and only administrators are led on", { disabled: true }, 404, "api"],
] as const) {
  test(`PRM-D-1 ${name}`, async (t) => {
    const service = await makeService({ consents }, { idp });
    t.after(() => service.stop());
    const { status: answered, body } = await service.get(`${WELL_KNOWN}/consents`);
    assert.deepEqual([answered, body.authorization_servers], [status, status === 200 ? [IDP] : undefined]);
    const challenge = (await service.get("/consents")).headers["www-authenticate"] ?? "";
    assert.ok(challenge.includes(`resource_metadata="${ISSUER}${WELL_KNOWN}/${led}"`), challenge);
  });
}
