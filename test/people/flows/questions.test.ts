/** Which requests of agents are one question to a user, and which are several. */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { type Asking, askUser } from "../../../src/people/flows/ask-user.ts";
import type { AccessRequest, MissingConsent } from "../../../src/policy/access.ts";
import type { Detail } from "../../../src/spec/rfc9396.ts";
import { ALICE, forRefresh, openRefresh } from "../../support/refresh.ts";

type Change = {
  access?: Partial<AccessRequest>;
  proposed?: { asked: string };
  missing?: { scope?: readonly string[]; details?: readonly Detail[]; target?: { names: readonly string[] } };
};
const TRAVEL: Detail = { type: "travel", city: "Rome" };
const BASE: Change = {
  access: { workload: "spiffe://td.example/planner", clientId: "planner" },
  missing: { scope: ["read", "write"] },
};
const ofJob = (job: object): Change => ({ access: { job } as unknown as Partial<AccessRequest> });
const byUser = (origin: object): Change => ({
  access: { subject: { origin } } as unknown as Partial<AccessRequest>,
});

const OTHERS: readonly [name: string, change: Change, isSame: boolean][] = [
  ["again", {}, true],
  ["with its scopes in another order", { missing: { scope: ["write", "read"] } }, true],
  ["of another agent", { access: { workload: "spiffe://td.example/booker" } }, false],
  [
    "of another client without a workload",
    { access: { workload: undefined as never, clientId: "other" } },
    false,
  ],
  ["about another user", byUser({ ...ALICE, sub: "bob" }), false],
  [
    "about the user of that name at another provider",
    byUser({ ...ALICE, iss: "https://other.example" }),
    false,
  ],
  ["for another target", { missing: { target: { names: ["https://other.example"] } } }, false],
  ["for fewer scopes", { missing: { scope: ["read"] } }, false],
  ["for objects", { missing: { details: [TRAVEL] } }, false],
  ["in a job", ofJob({ id: "job_1" }), false],
  ["for a new job", { proposed: { asked: "job_2" } }, false],
];

/** The link that this server gives for such a request, over a store of its own. */
async function openLinks(t: TestContext) {
  const { ports, nowSeconds } = await openRefresh(t, forRefresh());
  const [target] = [...ports.settings().policy.targets.values()];
  const [rule] = [...ports.settings().policy.rules.values()];
  return async ({ access, missing, proposed }: Change): Promise<string> => {
    const asking = {
      access: { subject: { origin: ALICE }, ...BASE.access, ...access },
      ...(proposed !== undefined && { job: { proposed: { ...proposed, title: "x", bounds: {} } } }),
    } as unknown as Asking;
    const lacks = { rule, target, ...BASE.missing, ...missing } as unknown as MissingConsent;
    return (await askUser(ports, asking, lacks, nowSeconds)).errorUri ?? assert.fail("no link");
  };
}

for (const [name, change, isSame] of OTHERS) {
  test(`DTR-D-2 a request ${name} is ${isSame ? "the same question" : "another question"}`, async (t) => {
    const linkOf = await openLinks(t);
    const first = await linkOf({});
    assert.equal((await linkOf(change)) === first, isSame);
  });
}

test("DTR-D-2, JOB-D-6 a job of another server with the id of one of ours makes another question", async (t) => {
  const linkOf = await openLinks(t);
  const ours = await linkOf(ofJob({ id: "job_3" }));
  assert.notEqual(await linkOf(ofJob({ id: "job_3", iss: "https://other.example" })), ours);
});
