/** The section `keys`: when signing keys change, and what only a trial may shorten. */
import assert from "node:assert/strict";
import { test } from "node:test";
import * as v from "valibot";
import { readEncryptionKey, readKeySchedule, readOtherEncryptionKey } from "../../src/config/keys.ts";
import { makeReader } from "../../src/config/reader.ts";
import { type ConfigFile, ConfigFile as Schema } from "../../src/config/schema.ts";
import { KEY_POLL_SECONDS, KEY_RETIRE_SECONDS_MIN } from "../../src/limits/keys.ts";
import { SKEW_SECONDS } from "../../src/limits/tokens.ts";

function read(keys: object, production = true) {
  const parsed = v.safeParse(Schema.entries.keys, { encryptionKey: { file: "kek" }, ...keys });
  if (!parsed.success) return undefined;
  const reader = makeReader("/etc/mandate", production);
  const file = { keys: parsed.output, clockSkewSeconds: SKEW_SECONDS } as ConfigFile;
  const schedule = readKeySchedule(file, reader);
  return { schedule, problems: reader.problems, warnings: reader.warnings };
}

test("keys sign for 90 days, are announced for a day and published for two hours afterwards, unless configured", () => {
  const schedule = {
    rotateSeconds: 7_776_000,
    announceSeconds: 86_400,
    retireSeconds: 7_200,
    cacheSeconds: 300,
  };
  assert.deepEqual(read({}), { schedule, problems: [], warnings: [] });
  const own = { rotateSeconds: 100_000, announceSeconds: 400, retireSeconds: 4_000, cacheSeconds: 60 };
  assert.deepEqual(read(own), { schedule: own, problems: [], warnings: [] });
});

const KNOWN = 300 + KEY_POLL_SECONDS + SKEW_SECONDS;
const bounds: readonly [name: string, least: number, among: object][] = [
  ["cacheSeconds", 60, {}],
  ["announceSeconds", KNOWN, {}],
  ["announceSeconds", KNOWN + 300, { cacheSeconds: 600 }],
  ["retireSeconds", KEY_RETIRE_SECONDS_MIN, {}],
  ["rotateSeconds", 86_400, {}],
];
for (const [name, least, among] of bounds) {
  test(`RFC9068-4-12 in production ${name} below ${least} is refused, and development warns of it`, () => {
    assert.deepEqual(read({ ...among, [name]: least })?.problems, []);
    const short = { ...among, [name]: least - 1 };
    const [problem = "", ...others] = read(short)?.problems ?? [];
    assert.match(problem, new RegExp(`^keys\\.${name}: is less than ${least}: `));
    assert.deepEqual(others, []);
    assert.deepEqual(read(short, false)?.problems, []);
    assert.deepEqual(read(short, false)?.warnings, [problem]);
  });
}

for (const [name, value] of Object.entries({ rotateSeconds: 0, announceSeconds: 1.5, cacheSeconds: 3_601 })) {
  test(`${name} of ${value} is no setting`, () => assert.equal(read({ [name]: value }), undefined));
}

const KEYS = {
  one: Buffer.alloc(32, 1).toString("base64url"),
  two: Buffer.alloc(32, 2).toString("base64url"),
};

test("a second key-encryption key is optional, and is another one", () => {
  const readBoth = (other?: string) => {
    const reader = makeReader("/etc/mandate", false);
    const keys = { encryptionKey: KEYS.one, otherEncryptionKey: other };
    const file = { keys } as ConfigFile;
    const key = readOtherEncryptionKey(file, reader, readEncryptionKey(file, reader));
    return [key && Buffer.from(key).toString("base64url"), ...reader.problems];
  };
  assert.deepEqual(readBoth(), [undefined]);
  assert.deepEqual(readBoth(KEYS.two), [KEYS.two]);
  const same =
    "keys.otherEncryptionKey: is the key in keys.encryptionKey: give the one that it replaces, or leave this out";
  assert.deepEqual(readBoth(KEYS.one), [undefined, same]);
  const short =
    'keys.otherEncryptionKey: is not 32 bytes in base64url without padding: make one with "mandate keys new-encryption-key FILE"';
  assert.deepEqual(readBoth("AAAA"), [undefined, short]);
});
