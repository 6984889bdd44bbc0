/** The trace of a caller: how its field is read, and that it stands in log and audit trail and decides nothing. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { basic } from "../../scripts/http-client.ts";
import { readTraceparent } from "../../src/http/trace-context.ts";
import { stop } from "../support/stop.ts";
import { until } from "../support/until.ts";
import { makeWorld, type World } from "../support/world.ts";

const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT = "00f067aa0ba902b7";
const READ = { traceId: TRACE, parentId: PARENT };

const fields: [what: string, field: string | undefined, read: object | undefined][] = [
  ["no field", undefined, undefined],
  ["a field of version 00", `00-${TRACE}-${PARENT}-01`, READ],
  ["flags that are not known", `00-${TRACE}-${PARENT}-ff`, READ],
  ["a later version", `01-${TRACE}-${PARENT}-01`, READ],
  ["a later version with more members", `cc-${TRACE}-${PARENT}-01-what-the-future-will-be`, READ],
  ["version 00 with more members", `00-${TRACE}-${PARENT}-01-more`, undefined],
  ["a later version without a dash before more", `cc-${TRACE}-${PARENT}-01.more`, undefined],
  ["the version that is none", `ff-${TRACE}-${PARENT}-01`, undefined],
  ["a trace of zeros", `00-${"0".repeat(32)}-${PARENT}-01`, undefined],
  ["a span of zeros", `00-${TRACE}-${"0".repeat(16)}-01`, undefined],
  ["upper case", `00-${TRACE.toUpperCase()}-${PARENT}-01`, undefined],
  ["a short trace", `00-${TRACE.slice(1)}-${PARENT}-01`, undefined],
  ["no flags", `00-${TRACE}-${PARENT}`, undefined],
  ["two lines of the field", `00-${TRACE}-${PARENT}-01, 00-${TRACE}-${PARENT}-01`, undefined],
  ["a field of many characters", `cc-${TRACE}-${PARENT}-01-${"a".repeat(300)}`, undefined],
  ["an empty field", "", undefined],
];
for (const [what, field, read] of fields) {
  test(`traceparent: ${what} is ${read === undefined ? "ignored" : "read"}`, () => {
    assert.deepEqual(readTraceparent(field), read);
  });
}

const SECRET = "x7Qd-trace-context-k2Lm9-Zr4T-8vWb1";
const scopes = ["trips.read"];

let world: World;
before(async () => {
  world = await makeWorld({
    clients: { desk: { method: "client_secret_basic", secrets: [SECRET], defaultTarget: "trips" } },
    targets: [{ names: ["trips"], scopes }],
    policies: [{ id: "own", allow: "client_credentials", clients: ["desk"], targets: ["trips"], scopes }],
  });
});
after(() => stop(world));

for (const [what, traceparent, traced] of [
  ["a request with a trace", `00-${TRACE}-${PARENT}-01`, true],
  ["a request whose trace is malformed", `00-${TRACE}-${PARENT}`, false],
] as const) {
  test(`${what} is answered as any other, and ${traced ? "its trace is" : "no trace is"} in log and audit trail`, async () => {
    const { status, headers } = await world.token(
      { grant_type: "client_credentials" },
      { authorization: basic("desk", SECRET), traceparent, tracestate: "vendor=secret" },
    );
    assert.equal(status, 200);
    const id = headers["x-request-id"];
    const line = () => world.server.lines.find((one) => one.includes(String(id)));
    await until(() => line() !== undefined, "the request is logged");
    const { traceId, parentId } = JSON.parse(line() ?? "");
    assert.deepEqual({ traceId, parentId }, traced ? READ : { traceId: undefined, parentId: undefined });
    const issued = (await world.events()).find(({ request }) => Object(request).id === id);
    assert.deepEqual(
      Object(issued?.request).trace,
      traced ? { trace_id: TRACE, parent_id: PARENT } : undefined,
    );
    assert.ok(!JSON.stringify([line(), issued]).includes("vendor"), "tracestate is kept nowhere");
  });
}
