/** Codes and refresh tokens where the people's wing is not loaded, and where signIn was taken out. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { recordEnding } from "../../../src/flows/endings.ts";
import { revoke } from "../../../src/flows/revoke.ts";
import { answerTokenRequest } from "../../../src/flows/token.ts";
import { AT_TOKEN, formOf } from "../../support/flow.ts";
import { PRIVATE, PUBLIC } from "../../support/people.ts";
import { ALICE, forRefresh, openRefresh } from "../../support/refresh.ts";

const FORMS = [
  { grant_type: "authorization_code", code: "c", code_verifier: "v".repeat(43) },
  { grant_type: "refresh_token", refresh_token: `mrt_${"r".repeat(43)}` },
];
for (const form of FORMS) {
  test(`RFC6749-5.2-8 a process that has not loaded what reads ${form.grant_type} does not support it: the request is refused`, async (t) => {
    const { ports, people, client } = await openRefresh(t);
    const request = { id: "r", endpoint: "/token", source_ip: "192.0.2.1" };
    const asked = { client: client(PUBLIC), form: formOf(form), request };
    const reasonWith = async (of: typeof people | undefined) => {
      const answer = await answerTokenRequest(ports, asked, AT_TOKEN, of);
      return answer.ok ? "issued" : answer.error.failure.kind;
    };
    assert.deepEqual(
      [await reasonWith(undefined), await reasonWith(people)],
      ["grant_type_unsupported", "grant_refused"],
    );
  });
}

test("REFRESH-D-15, RFC7009-2.1-10 what users gave before signIn was taken out is refused, and can still be ended by its client and by the operator", async (t) => {
  const flow = await openRefresh(t);
  const [one, other] = [await flow.start({ client: PRIVATE }), await flow.start({ client: PRIVATE })];
  const { trustedIssuers, clients, targets } = forRefresh();
  const { redirectUris: _, ...secret } = clients[PRIVATE];
  flow.reload({ trustedIssuers, targets, clients: { [PRIVATE]: secret } });
  const refused = await flow.refresh(one, {}, PRIVATE);
  assert.equal(refused.error, "grant_type_unsupported");
  const request = { id: "r", endpoint: "/revoke", source_ip: "192.0.2.1" };
  assert.ok((await revoke(flow.ports, flow.client(PRIVATE), request, formOf({ token: one }))).ok);
  const reasons = async () => (await flow.families()).map(({ ended }) => ended?.reason).sort();
  assert.deepEqual(await reasons(), ["by_client", undefined]);
  await recordEnding(flow.ports, { by: "subject", ...ALICE }, { reason: "by_operator" });
  assert.deepEqual(await reasons(), ["by_client", "by_operator"]);
  flow.reload(forRefresh());
  for (const token of [one, other]) {
    const answer = await flow.refresh(token, {}, PRIVATE);
    assert.equal(answer.error === undefined ? "issued" : answer.reason, "refresh_token_ended");
  }
});
