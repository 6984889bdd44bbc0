/** Which requests are done anew once a database writes again, and which never, because something of them is in the store. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { HttpResponse, Peer } from "../../src/http/handler.ts";
import { answerWithWriter } from "../../src/http/held.ts";
import { type Journal, type Ports, StoreUnavailable } from "../../src/ports.ts";

const noWriter = () => Object.assign(new StoreUnavailable("no server writes"), { noWriter: true });
const ANSWER: HttpResponse = { status: 200, headers: {}, body: "" };
const PEER = { deadline: new AbortController().signal } as Peer;
const ENTRY = {} as Parameters<Journal["record"]>[0];

/** Each step is what the journal says to one record, or a read that finds no server. */
type Step = "written" | "lost" | "no writer" | "read fails";

async function run(steps: readonly Step[]) {
  let [attempts, at] = [0, 0];
  const record = async () => {
    const step = steps[at++];
    if (step === "no writer") throw noWriter();
    return { ok: step === "written" };
  };
  const ports = { journal: { record }, outage: { wait: async () => true } } as unknown as Pick<
    Ports,
    "journal" | "outage"
  >;
  const answer = answerWithWriter(
    ports,
    () => 1,
    PEER,
    async ({ journal }) => {
      attempts++;
      while (at < steps.length) {
        if (steps[at] === "read fails") {
          at++;
          throw noWriter();
        }
        await journal.record(ENTRY, PEER.deadline);
      }
      return ANSWER;
    },
  );
  const outcome = await answer.then(
    () => "answered",
    () => "refused",
  );
  return { outcome, attempts };
}

for (const [steps, outcome, attempts] of [
  [["read fails", "written"], "answered", 2],
  [["no writer", "written"], "answered", 2],
  [["no writer", "no writer", "written"], "answered", 3],
  [["lost", "no writer", "written"], "answered", 2],
  [["written", "read fails", "written"], "refused", 1],
  [["written", "no writer", "written"], "refused", 1],
  [["no writer", "written", "read fails", "written"], "refused", 2],
] as const) {
  test(`STORE-D-21 a request of which these are the steps (${steps.join(", ")}) is ${outcome} after ${attempts} attempts`, async () => {
    assert.deepEqual(await run(steps), { outcome, attempts });
  });
}
