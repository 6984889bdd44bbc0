import assert from "node:assert/strict";
import { test } from "node:test";
import { FETCHED_SECONDS, FETCHED_SECONDS_MAX, FETCHED_SECONDS_MIN } from "../../src/limits/fetching.ts";
import { freshSeconds } from "../../src/spec/rfc9111.ts";
import { mutate, prng } from "../support/prng.ts";

type Answer = Parameters<typeof freshSeconds>[0];
const bounds = { min: FETCHED_SECONDS_MIN, max: FETCHED_SECONDS_MAX, otherwise: FETCHED_SECONDS };
const sent = "Sun, 06 Nov 1994 08:49:37 GMT";
const later = "Sun, 06 Nov 1994 08:59:37 GMT";

const cacheControls = [
  ["", FETCHED_SECONDS],
  ["public", FETCHED_SECONDS],
  ["private, must-revalidate", FETCHED_SECONDS],
  ["max-age=600", 600],
  ["public, max-age=600", 600],
  ["public,Max-Age=600,immutable", 600],
  ["max-age=0600", 600],
  ["s-maxage=600", FETCHED_SECONDS],
  ["max-ages=600", FETCHED_SECONDS],
  ["stale-while-revalidate=600", FETCHED_SECONDS],
  ["max-age", FETCHED_SECONDS],
  ["max-age=", FETCHED_SECONDS],
  ["max-age=soon", FETCHED_SECONDS],
  ["max-age=-1", FETCHED_SECONDS],
  ["max-age=6e2", FETCHED_SECONDS],
  ["max-age=600.5", FETCHED_SECONDS],
  ["max-age=600;public", FETCHED_SECONDS],
  ['max-age="600"', FETCHED_SECONDS],
  ["max-age = 600", FETCHED_SECONDS],
  ["max-age=600, max-age=900", 600],
  ["max-age=0", FETCHED_SECONDS_MIN],
  ["max-age=29", FETCHED_SECONDS_MIN],
  ["max-age=30", FETCHED_SECONDS_MIN],
  ["max-age=3600", FETCHED_SECONDS_MAX],
  ["max-age=3601", FETCHED_SECONDS_MAX],
  ["max-age=999999999", FETCHED_SECONDS_MAX],
  ["max-age=99999999999999999999", FETCHED_SECONDS_MAX],
  ["no-store", FETCHED_SECONDS_MIN],
  ["no-cache", FETCHED_SECONDS_MIN],
  ["No-Cache, max-age=600", FETCHED_SECONDS_MIN],
  ["max-age=600, no-cache", FETCHED_SECONDS_MIN],
  ["max-age=600,no-store", FETCHED_SECONDS_MIN],
  ['max-age=600, no-cache="set-cookie"', FETCHED_SECONDS_MIN],
  ["max-age=600, no-cached", 600],
  ["max-age=600, x-no-cache", 600],
] as const;
for (const [cacheControl, seconds] of cacheControls) {
  test(`CIMD-5.2-2, MCP-R.1-3 a document with Cache-Control "${cacheControl}" is fresh for ${seconds} s`, () => {
    assert.equal(freshSeconds({ cacheControl }, bounds), seconds);
  });
}

const answers: [name: string, answer: Answer, seconds: number][] = [
  ["PROD-4.3-6 a response without fields has the default", {}, FETCHED_SECONDS],
  ["PROD-4.3-6 Age is subtracted from max-age", { cacheControl: "max-age=600", age: "60" }, 540],
  ["PROD-4.3-6 an Age of 0 subtracts nothing", { cacheControl: "max-age=600", age: "0" }, 600],
  [
    "PROD-4.3-6 a response older than max-age is stale",
    { cacheControl: "max-age=600", age: "601" },
    FETCHED_SECONDS_MIN,
  ],
  [
    "PROD-4.3-6 a huge Age makes a response stale",
    { cacheControl: "max-age=600", age: "9".repeat(400) },
    FETCHED_SECONDS_MIN,
  ],
  [
    "PROD-4.3-6 a huge max-age with a huge Age is stale",
    { cacheControl: `max-age=${"9".repeat(400)}`, age: "9".repeat(400) },
    FETCHED_SECONDS_MIN,
  ],
  ["PROD-4.3-6 the first of two ages counts", { cacheControl: "max-age=600", age: "60 , 120" }, 540],
  ["PROD-4.3-6 a negative Age is ignored", { cacheControl: "max-age=600", age: "-60" }, 600],
  ["PROD-4.3-6 an Age that is not a number is ignored", { cacheControl: "max-age=600", age: "old" }, 600],
  ["PROD-4.3-6 Age alone leaves the default", { age: "60" }, FETCHED_SECONDS],
  ["PROD-4.3-6 Expires is relative to Date", { expires: later, date: sent }, 600],
  ["PROD-4.3-6 Age is subtracted from Expires too", { expires: later, date: sent, age: "60" }, 540],
  [
    "PROD-4.3-6 max-age takes precedence over Expires",
    { cacheControl: "max-age=90", expires: later, date: sent },
    90,
  ],
  [
    "PROD-4.3-6 Expires does not replace a malformed max-age",
    { cacheControl: "max-age=soon", expires: later, date: sent },
    FETCHED_SECONDS,
  ],
  [
    "PROD-4.3-6 no-store takes precedence over Expires",
    { cacheControl: "no-store", expires: later, date: sent },
    FETCHED_SECONDS_MIN,
  ],
  [
    "PROD-4.3-6 other directives do not affect Expires",
    { cacheControl: "public", expires: later, date: sent },
    600,
  ],
  [
    "PROD-4.3-6 a response that expired before it was sent is stale",
    { expires: sent, date: later },
    FETCHED_SECONDS_MIN,
  ],
  [
    "PROD-4.3-6 Expires is limited to the maximum",
    { expires: "Mon, 06 Nov 1995 08:49:37 GMT", date: sent },
    FETCHED_SECONDS_MAX,
  ],
  ["PROD-4.3-6 Expires without Date is stale", { expires: later }, FETCHED_SECONDS_MIN],
  ["PROD-4.3-6 Date alone leaves the default", { date: sent }, FETCHED_SECONDS],
];
for (const [name, answer, seconds] of answers) {
  test(name, () => assert.equal(freshSeconds(answer, bounds), seconds));
}

const noDates = [
  ["zero", "0"],
  ["minus one", "-1"],
  ["a year", "1995"],
  ["ISO 8601", "1994-11-06T08:59:37Z"],
  ["the form of RFC 850", "Sunday, 06-Nov-94 08:59:37 GMT"],
  ["the form of asctime", "Sun Nov  6 08:59:37 1994"],
  ["another zone", "Sun, 06 Nov 1994 08:59:37 PST"],
  ["an offset", "Sun, 06 Nov 1994 08:59:37 +0000"],
  ["no zone", "Sun, 06 Nov 1994 08:59:37"],
  ["another day of the week", "Mon, 06 Nov 1994 08:59:37 GMT"],
  ["a day that is not in the calendar", "Thu, 31 Nov 1994 08:59:37 GMT"],
  ["one digit for the day", "Sun, 6 Nov 1994 08:59:37 GMT"],
  ["lower case", "sun, 06 nov 1994 08:59:37 gmt"],
  ["the 25th hour", "Sun, 06 Nov 1994 25:59:37 GMT"],
  ["a comment", "Sun, 06 Nov 1994 08:59:37 GMT (noon)"],
  ["Invalid Date", "Invalid Date"],
] as const;
for (const [name, text] of noDates) {
  test(`PROD-4.3-6 ${name} is not accepted as date in Expires or Date`, () => {
    assert.equal(freshSeconds({ expires: text, date: sent }, bounds), FETCHED_SECONDS_MIN);
    assert.equal(freshSeconds({ expires: later, date: text }, bounds), FETCHED_SECONDS_MIN);
  });
}

test("CIMD-5.2-2 the bounds apply to the default too", () => {
  assert.equal(freshSeconds({}, { min: 10, max: 20, otherwise: 30 }), 20);
  assert.equal(freshSeconds({}, { min: 10, max: 20, otherwise: 5 }), 10);
});

test("CIMD-5.2-2 random fields yield a whole number of seconds within the bounds", () => {
  const random = prng(9111);
  const pieces = [...'0123456789,=;" \t-.', "no-store", "max-age=", "9".repeat(30), "GMT", "Nov", "é", "\0"];
  const seen = new Set<number>();
  for (let round = 0; round < 5000; round++) {
    const answer: Answer = {
      cacheControl: mutate(random, random.pick(["max-age=600", "public, max-age=90", ""]), pieces),
      age: mutate(random, random.pick(["60", "0"]), pieces),
      expires: mutate(random, later, pieces),
      date: random.pick([sent, later, mutate(random, sent, pieces)]),
    };
    const seconds = freshSeconds(answer, bounds);
    assert.ok(Number.isInteger(seconds), JSON.stringify(answer));
    assert.ok(seconds >= bounds.min && seconds <= bounds.max, JSON.stringify(answer));
    seen.add(seconds);
  }
  assert.ok(seen.size > 50, String(seen.size));
});
