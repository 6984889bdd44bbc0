/** What comes from the address of the database, and is broken or made to harm, ends the connection and nothing else. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { type TestContext, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { openStore } from "../../../../src/adapters/store/open.ts";
import { SCRAM_ITERATIONS_MAX } from "../../../../src/limits/store.ts";

/** Time in which the driver would do what it does outside of any promise. */
const SETTLED_MS = 20;

const uint32 = (number: number): Buffer => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(number);
  return bytes;
};
const message = (kind: string, ...body: readonly Buffer[]): Buffer => {
  const bytes = Buffer.concat(body);
  return Buffer.concat([Buffer.from(kind), uint32(bytes.length + 4), bytes]);
};
const authentication = (type: number, text = ""): Buffer => message("R", uint32(type), Buffer.from(text));
const STARTED = Buffer.concat([authentication(0), message("Z", Buffer.from("I"))]);
const SASL = authentication(10, "SCRAM-SHA-256\0\0");

/** Answers each of what a client sends by the next text, and then hangs up. */
async function serve(t: TestContext, answers: readonly Buffer[]): Promise<string> {
  const server = createServer((socket) => {
    const left = answers.values();
    socket.on("error", () => {});
    socket.on("data", () => {
      const { value } = left.next();
      if (value === undefined) socket.end();
      else socket.write(value);
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  return `postgres://user:password@127.0.0.1:${(server.address() as AddressInfo).port}/database`;
}

const BROKEN: readonly (readonly [what: string, ...answers: readonly Buffer[]])[] = [
  ["a step of SCRAM without what it needs", SASL, authentication(11, "nonsense")],
  ["a step of SCRAM without a number of rounds", SASL, authentication(11, "r=abc,s=QUJD")],
  ["no round of SCRAM", SASL, authentication(11, "r=abc,s=QUJD,i=0")],
  ["too many rounds of SCRAM", SASL, authentication(11, `r=abc,s=QUJD,i=${SCRAM_ITERATIONS_MAX + 1}`)],
  ["an authentication without a type", message("R")],
  ["a salt that is cut short", authentication(5, "abc")],
  ["a copy that no statement asked for", STARTED, message("G", Buffer.alloc(3))],
  ["a portion that no statement asked for", Buffer.concat([STARTED, message("s")])],
  ["a description with fewer columns than it says", STARTED, message("T", Buffer.from([255, 255]))],
  ["a description whose last column is cut short", STARTED, message("T", Buffer.from("\0\x01name\0"))],
  ["a description without a number of columns", STARTED, message("T")],
  ["a message that is shorter than its head", Buffer.concat([Buffer.from("Z"), uint32(3)])],
  ["another protocol", Buffer.from("HTTP/1.1 400 Bad Request\r\n\r\n")],
];
for (const [what, ...answers] of BROKEN) {
  test(`from the address of the database, ${what} ends the connection alone`, {
    timeout: 5_000,
  }, async (t) => {
    const url = await serve(t, answers);
    await assert.rejects(openStore({ postgres: url }), {
      name: "StoreUnavailable",
      message: /\(PROTOCOL\): what answers is no PostgreSQL/,
    });
    await sleep(SETTLED_MS);
  });
}

test("a database that asks for another proof than a password is not served, and the message says what to set", async (t) => {
  const url = await serve(t, [authentication(7)]);
  await assert.rejects(openStore({ postgres: url }), { message: /\(AUTHENTICATION\): .* scram-sha-256/ });
});
