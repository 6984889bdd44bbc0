import assert from "node:assert/strict";
import { test } from "node:test";
import * as v from "valibot";
import { cpuMs } from "../../src/adapters/clock.ts";
import { declaredTypes, schemaOf, typesOf } from "../../src/policy/detail-types.ts";
import {
  areCovered,
  checkConforms,
  intersectDetails,
  isWithin,
  type Sides,
} from "../../src/policy/details.ts";
import type { Detail, DetailValue } from "../../src/spec/rfc9396.ts";
import { type Prng, prng } from "../support/prng.ts";
import { rounds } from "../support/rounds.ts";

const INVOICE = "https://ledger.example/rar/invoice";
const DECLARED = {
  [INVOICE]: {
    governs: ["invoices.read", "invoices.pay"],
    needs: ["actions"],
    fields: {
      actions: { is: "strings", narrows: "subset", from: ["read", "pay", "send"] },
      identifier: { is: "string", narrows: "equal" },
      max_amount: { is: "decimal", narrows: "max", unit: "currency" },
      currency: { is: "string", narrows: "equal", from: ["EUR", "USD"] },
      until: { is: "seconds", narrows: "not-after" },
    },
  },
  files: {
    governs: ["files"],
    fields: {
      path: { is: "string", narrows: "prefix" },
      checks: { is: "strings", narrows: "superset", from: ["virus", "owner", "size"] },
      least: { is: "integer", narrows: "min" },
      most: { is: "integer", narrows: "max" },
      since: { is: "seconds", narrows: "not-before" },
      readonly: { is: "boolean", narrows: "only" },
      hidden: { is: "boolean", narrows: "equal" },
    },
  },
};
const TYPES = typesOf(v.parse(declaredTypes, DECLARED) ?? {});

const invoice = (fields: Omit<Detail, "type">): Detail => ({ type: INVOICE, actions: ["pay"], ...fields });
const file = (fields: Omit<Detail, "type">): Detail => ({ type: "files", ...fields });

// --- conforming -------------------------------------------------------------------------------------------------

const CONFORMS: readonly (readonly [string, Detail, string])[] = [
  ["RFC9396-5-1 an object of a declared type conforms", invoice({ identifier: "i" }), "ok"],
  [
    "RFC9396-5-2 an unknown type is refused",
    { type: "https://ledger.example/rar/Invoice" },
    "details_type_unknown",
  ],
  ["RFC9396-5-2 a type that looks like a known one is refused", { type: "filеs" }, "details_type_unknown"],
  ["RFC9396-5-2 an unknown field is refused", invoice({ colour: "red" }), "details_field_unknown"],
  ["RFC9396-5-2 a field in other case is refused", invoice({ Identifier: "i" }), "details_field_unknown"],
  ["RFC9396-5-2 a wrong form is refused", invoice({ identifier: 5 }), "details_field_malformed"],
  [
    "RFC9396-5-2 a value that is not offered is refused",
    invoice({ actions: ["deny"] }),
    "details_field_malformed",
  ],
  [
    "RFC9396-5-2 a text in place of a list is refused",
    invoice({ actions: "pay" }),
    "details_field_malformed",
  ],
  ["RFC9396-5-2 a missing field is refused", { type: INVOICE, identifier: "i" }, "details_field_missing"],
  [
    "RFC9396-5-2 an amount without its unit is refused",
    invoice({ max_amount: "5" }),
    "details_field_missing",
  ],
  ["RFC9396-5-2 a name of every object is no field", file({ toString: "x" }), "details_field_unknown"],
];
for (const [name, detail, want] of CONFORMS) {
  test(name, () => {
    const conforms = checkConforms(TYPES, [detail]);
    assert.equal(conforms.ok ? "ok" : conforms.error.kind, want);
  });
}

for (const amount of ["0", "500", "500.0", "0.000000000000000001", "999999999999999.999999999999999999"]) {
  test(`RAR-D-12 the decimal ${amount} conforms`, () => {
    assert.ok(checkConforms(TYPES, [invoice({ max_amount: amount, currency: "EUR" })]).ok);
  });
}
const DECIMALS = [
  "",
  "1e2",
  "-1",
  "+1",
  "01",
  "1.",
  ".5",
  "1 000",
  "1,5",
  "0x10",
  "1000000000000000",
  "٣",
  "1\n",
];
for (const amount of DECIMALS) {
  test(`RAR-D-12 the decimal ${JSON.stringify(amount)} is refused`, () => {
    assert.ok(!checkConforms(TYPES, [invoice({ max_amount: amount, currency: "EUR" })]).ok);
  });
}
for (const path of ["/accounts/1", "accounts", "/a.b/..c", "/~user/x:y"]) {
  test(`RAR-D-1 the path ${path} conforms`, () => assert.ok(checkConforms(TYPES, [file({ path })]).ok));
}
const PATHS = ["/", "", "//a", "/a//b", "/a/", "/a/..", "/../a", "/./a", "..", "/a/.../b", "/a%2fb", "/a\\b"];
for (const path of [
  ...PATHS,
  "/a?b",
  "/a#b",
  "/a;b",
  "/a b",
  "/a\u0000",
  "/a\uff0e\uff0e",
  "/a\u2215b",
  "/a\n",
]) {
  test(`RAR-D-1 the path ${JSON.stringify(path)} is refused`, () =>
    assert.ok(!checkConforms(TYPES, [file({ path })]).ok));
}

// --- one within another -----------------------------------------------------------------------------------------

const WITHIN: readonly (readonly [string, Detail, Detail, boolean])[] = [
  ["a smaller amount is within", amount("120.00"), amount("500.00"), true],
  ["the same amount in another spelling is within", amount("500.0"), amount("500"), true],
  ["a greater amount is not within", amount("500.01"), amount("500"), false],
  ["an amount with more digits is not within", amount("1000"), amount("999"), false],
  ["the smallest greater amount is not within", amount("0.3"), amount("0.299999999999999999"), false],
  ["an amount of another unit is not within", amount("1", "USD"), amount("500", "EUR"), false],
  ["an object without the limit's field is not within", invoice({}), amount("500"), false],
  ["an object with a further field is within", amount("500"), invoice({}), true],
  ["another identifier is not within", invoice({ identifier: "i1" }), invoice({ identifier: "i2" }), false],
  [
    "an identifier of other bytes is not within",
    invoice({ identifier: "\u00e9" }),
    invoice({ identifier: "e\u0301" }),
    false,
  ],
  ["a part of the actions is within", invoice({}), invoice({ actions: ["read", "pay"] }), true],
  ["a further action is not within", invoice({ actions: ["read", "pay"] }), invoice({}), false],
  ["a path below is within", file({ path: "/accounts/1" }), file({ path: "/accounts" }), true],
  [
    "a path that begins alike is not within",
    file({ path: "/accounts/12" }),
    file({ path: "/accounts/1" }),
    false,
  ],
  ["a relative path is not within", file({ path: "accounts/1" }), file({ path: "/accounts" }), false],
  ["more checks are within", file({ checks: ["virus", "owner"] }), file({ checks: ["virus"] }), true],
  ["fewer checks are not within", file({ checks: ["virus"] }), file({ checks: ["virus", "owner"] }), false],
  ["true is within false", file({ readonly: true }), file({ readonly: false }), true],
  ["false is not within true", file({ readonly: false }), file({ readonly: true }), false],
  ["false is not within nothing that says true", file({}), file({ readonly: true }), false],
  ["an integer below the least is not within", file({ least: 1 }), file({ least: 2 }), false],
  ["an object of another type is not within", file({}), invoice({}), false],
];
function amount(max_amount: string, currency = "EUR"): Detail {
  return invoice({ max_amount, currency });
}
for (const [name, inner, outer, want] of WITHIN) {
  test(`RFC9396-6.1-1, RFC9396-12-2 ${name}`, () => assert.equal(isWithin(TYPES, [inner], [outer]), want));
}

test("RAR-D-3 a type that the limit has and the objects lack is not within", () => {
  assert.equal(isWithin(TYPES, [file({})], [invoice({}), file({})]), false);
  assert.equal(isWithin(TYPES, [], [file({})]), false);
  assert.equal(isWithin(TYPES, undefined, [file({})]), false);
  assert.equal(isWithin(TYPES, [file({})], undefined), true);
});

test("RFC9396-6-1 a request is covered by one object of its type, never by two together", () => {
  const held = [
    invoice({ actions: ["read"], identifier: "a" }),
    invoice({ actions: ["pay"], identifier: "b" }),
  ];
  assert.equal(areCovered(TYPES, [invoice({ actions: ["pay"], identifier: "b" })], held), true);
  assert.equal(areCovered(TYPES, [invoice({ actions: ["pay"], identifier: "a" })], held), false);
  assert.equal(areCovered(TYPES, [file({})], held), true);
});

// --- several sides ----------------------------------------------------------------------------------------------

const sidesOf = (...sides: readonly (readonly Detail[] | undefined)[]): Sides =>
  sides.map((details, index) => ({
    at: (["request", "subject_token", "rule", "consent"] as const)[index] ?? "rule",
    details,
  }));

const left = (...sides: readonly (readonly Detail[] | undefined)[]) => {
  const found = intersectDetails(TYPES, sidesOf(...sides));
  return found.ok ? found.value.details : undefined;
};

test("RAR-D-2, RFC9396-2.2-1 what is left has the limits of all sides", () => {
  assert.deepEqual(
    left(
      [invoice({ identifier: "inv-2207", max_amount: "120.00", currency: "EUR" })],
      undefined,
      [invoice({ actions: ["read", "pay"], max_amount: "500.00", currency: "EUR" })],
      [invoice({ until: 1_800_000_000 })],
    ),
    [
      {
        type: INVOICE,
        actions: ["pay"],
        identifier: "inv-2207",
        max_amount: "120.00",
        currency: "EUR",
        until: 1_800_000_000,
      },
    ],
  );
});

test("RAR-D-3, RFC9396-2.2-1 two sides without a common object leave nothing, which is refused", () => {
  const found = intersectDetails(
    TYPES,
    sidesOf([invoice({ identifier: "inv-1" }), file({})], undefined, undefined, [
      invoice({ identifier: "inv-2" }),
    ]),
  );
  assert.deepEqual(found, {
    ok: false,
    error: { fallen: [{ type: INVOICE, index: 0, at: "consent" }] },
  });
});

test("RAR-D-3 a limit that conforms to its type no more leaves nothing, which is refused", () => {
  assert.equal(left([file({})], undefined, [{ type: "files", gone: "x" }]), undefined);
  assert.equal(left([file({})], undefined, [{ type: "forgotten" }]), undefined);
  assert.equal(left(undefined, [{ type: "forgotten" }]), undefined);
});

test("RAR-D-13 what falls is told with the side at which it fell, and the rest stays in the order of the request", () => {
  const asked = [
    file({ path: "/b" }),
    invoice({ identifier: "1" }),
    file({ path: "/a" }),
    file({ path: "/c" }),
  ];
  const found = intersectDetails(
    TYPES,
    sidesOf(asked, undefined, [file({ path: "/a" }), file({ path: "/c" })]),
  );
  assert.ok(found.ok);
  assert.deepEqual(found.value.fallen, [{ type: "files", index: 0, at: "rule" }]);
  assert.deepEqual(found.value.details, asked.slice(1));
});

test("RAR-D-2 objects within another one go, and equal ones stand once", () => {
  const all = [
    file({ path: "/a/b" }),
    file({ path: "/a" }),
    file({ path: "/a" }),
    file({ path: "/a", most: 5 }),
  ];
  assert.deepEqual(left(all), [file({ path: "/a" })]);
});

test("RAR-D-12 a result of more than 16 objects, or of more than 8 KiB, is refused", () => {
  const by = (field: string, values: readonly DetailValue[]) =>
    values.map((value) => file({ [field]: value }));
  const numbers = [1, 2, 3, 4, 5];
  // Each pair is narrower in one field than the next, and wider in the other.
  const crossing = (value: number) => file({ most: value, least: value });
  assert.equal(left(numbers.map(crossing))?.length, 5);
  const paths = ["/a", "/b", "/c", "/d", "/e"];
  assert.equal(left(by("path", paths), numbers.map(crossing)), undefined);
  assert.equal(left(by("path", paths.slice(0, 3)), numbers.map(crossing))?.length, 15);
});

test("RAR-D-12 the largest sides are intersected within a tenth of a second", () => {
  const side = (shift: number) =>
    Array.from({ length: 16 }, (_, index) =>
      file({
        path: `/p${"x".repeat(300)}`,
        least: index + shift,
        most: index + shift,
        checks: ["virus", "owner"],
      }),
    );
  const before = cpuMs();
  for (let round = 0; round < 5; round++) left(side(0), side(0), side(0), side(0));
  assert.ok((cpuMs() - before) / 5 < 100);
});

test("RAR-D-12 sides of which each pair of objects leaves another one are refused within a tenth of a second", () => {
  const fields = ["a", "b", "c", "d", "e", "f", "g", "h"].map(
    (name) => [name, { is: "integer", narrows: "max" }] as const,
  );
  const types = new Map([["limits", { governs: ["x"], needs: [], pushed: false, fields: new Map(fields) }]]);
  let seed = 7;
  const next = (): number => {
    seed = (seed * 48271) % 2147483647;
    return seed;
  };
  const side = (): Detail[] =>
    Array.from({ length: 16 }, () => ({
      type: "limits",
      ...Object.fromEntries(fields.map(([name]) => [name, next()])),
    }));
  const sides = sidesOf(side(), side(), side(), side());
  const before = cpuMs();
  assert.ok(!intersectDetails(types, sides).ok);
  assert.ok(cpuMs() - before < 100);
});

// --- random narrowings, against an oracle -----------------------------------------------------------------------

/** One use: a value of each field of a type, for which every object says whether it allows it. */
type Use = { type: string; [field: string]: DetailValue };

const scaled = (decimal: string): bigint => {
  const [whole = "", part = ""] = decimal.split(".");
  return BigInt(whole + part.padEnd(18, "0"));
};

/** The meaning of each comparison, written anew: whether a value that an object has allows this use. */
const ALLOWS: Record<string, (limit: DetailValue, used: DetailValue) => boolean> = {
  equal: (limit, used) => Object.is(limit, used),
  subset: (limit, used) => new Set(limit as string[]).has(String(used)),
  superset: (limit, used) => new Set(limit as string[]).isSubsetOf(new Set(used as string[])),
  max: (limit, used) =>
    typeof limit === "string" ? scaled(String(used)) <= scaled(limit) : Number(used) <= Number(limit),
  min: (limit, used) => Number(used) >= Number(limit),
  prefix: (limit, used) => `${used}/`.startsWith(`${limit}/`),
  "not-after": (limit, used) => Number(used) <= Number(limit),
  "not-before": (limit, used) => Number(used) >= Number(limit),
  only: (limit, used) => limit === false || used === true,
};

function allows(details: readonly Detail[] | undefined, use: Use): boolean {
  const ofType = (details ?? []).filter(({ type }) => type === use.type);
  if (ofType.length === 0) return true;
  return ofType.some((detail) =>
    Object.entries(detail).every(([name, limit]) => {
      const narrows = TYPES.get(use.type)?.fields.get(name)?.narrows;
      return narrows === undefined || ALLOWS[narrows]?.(limit, use[name] as DetailValue);
    }),
  );
}

const EDGE_NUMBERS = [0, 1, 2, 3, 2 ** 31, Number.MAX_SAFE_INTEGER - 1, Number.MAX_SAFE_INTEGER];
const EDGE_DECIMALS = [
  "0",
  "0.1",
  "0.3",
  "0.30",
  "0.299999999999999999",
  "1",
  "9007199254740992",
  "9007199254740993",
  "999999999999999",
  "999999999999999.999999999999999998",
  "999999999999999.999999999999999999",
].filter((one) => /^[0-9]{1,15}(?:\.|$)/.test(one));
const EDGE_PATHS = ["/a", "/a/b", "/a/b/c", "/ab", "a", "/a/b1", "/a.", "/..a"];
const EDGE_TEXTS = ["i", "I", "é", "e\u0301", "ı", "i ", "constructor"];

const some = <T>(random: Prng, from: readonly T[]): T[] => {
  const found = from.filter(() => random.below(2) === 0);
  return found.length > 0 ? found : [random.pick(from)];
};

function someValue(random: Prng, type: string, name: string): DetailValue {
  const field = TYPES.get(type)?.fields.get(name);
  if (field === undefined) throw new Error(name);
  switch (field.is) {
    case "boolean":
      return random.below(2) === 0;
    case "decimal":
      return random.pick(EDGE_DECIMALS);
    case "integer":
    case "seconds":
      return random.pick(EDGE_NUMBERS);
    case "strings":
      return some(random, field.from ?? []);
    default:
      if (field.narrows === "prefix") return random.pick(EDGE_PATHS);
      return random.pick(field.from ?? EDGE_TEXTS);
  }
}

function detailOf(random: Prng): Detail {
  const type = random.below(2) === 0 ? INVOICE : "files";
  const names = [...(TYPES.get(type)?.fields.keys() ?? [])].filter(() => random.below(3) === 0);
  if (type === INVOICE) names.push("actions", ...(names.includes("max_amount") ? ["currency"] : []));
  return { type, ...Object.fromEntries(names.map((name) => [name, someValue(random, type, name)])) };
}

function useOf(random: Prng): Use {
  const type = random.below(2) === 0 ? INVOICE : "files";
  const used = [...(TYPES.get(type)?.fields ?? [])].map(([name, { narrows }]): [string, DetailValue] => {
    const value = someValue(random, type, name);
    return [name, narrows === "subset" ? random.pick(value as string[]) : value];
  });
  return { type, ...Object.fromEntries(used) };
}

test("RAR-D-2, RAR-D-3 random narrowings allow exactly what every side allows", () => {
  const random = prng(9396);
  let [empty, narrowed, allowed] = [0, 0, 0];
  for (let round = 0; round < rounds(1_000); round++) {
    const sides = Array.from({ length: 1 + random.below(4) }, () =>
      random.below(5) === 0 ? undefined : Array.from({ length: 1 + random.below(4) }, () => detailOf(random)),
    );
    const found = intersectDetails(TYPES, sidesOf(...sides));
    const uses = Array.from({ length: 16 }, () => useOf(random));
    const told = (): string => JSON.stringify({ sides, found });
    if (!found.ok) {
      // Of some type that a side has, no use is allowed by all sides; or there is more than a token may hold.
      empty++;
      const { fallen } = found.error;
      const lost = fallen.some(({ type }) =>
        uses.every((use) => use.type !== type || !sides.every((side) => allows(side, use))),
      );
      assert.ok(lost || fallen.length === 0, told());
      continue;
    }
    const { details } = found.value;
    for (const side of sides) assert.ok(isWithin(TYPES, details, side), told());
    assert.ok(checkConforms(TYPES, details).ok, told());
    for (const use of uses) {
      const bySides = sides.every((side) => allows(side, use));
      assert.equal(allows(details, use), bySides, `${told()} ${JSON.stringify(use)}`);
      if (bySides) allowed++;
      else narrowed++;
    }
    // What is within a result is covered by every side, and a second narrowing changes nothing.
    const again = intersectDetails(TYPES, sidesOf(details, ...sides));
    assert.deepEqual(again.ok && again.value.details, details, told());
  }
  // The run has met each case often enough to mean something.
  assert.ok(
    empty > rounds(100) && narrowed > rounds(1_000) && allowed > rounds(500),
    `${empty} ${narrowed} ${allowed}`,
  );
});

// --- types as written -------------------------------------------------------------------------------------------

const base = DECLARED.files;
const WRITTEN: readonly (readonly [string, unknown, string])[] = [
  ["RAR-D-1 a type as data is taken", { t: base }, "ok"],
  ["RFC9396-2.1-1 a type name with a space is refused", { "a b": base }, "is not a name of printable ASCII"],
  ["RFC9396-2.1-1 a type name that is not ASCII is refused", { é: base }, "is not a name of printable ASCII"],
  [
    "RAR-D-1 a field named type is refused",
    { t: { ...base, fields: { type: base.fields.path } } },
    "reserved",
  ],
  [
    "RAR-D-1 a field of every object is refused",
    { t: { ...base, fields: { toString: base.fields.path } } },
    "reserved",
  ],
  [
    "RAR-D-1 a comparison of another form is refused",
    { t: field({ is: "boolean", narrows: "max" }) },
    "compared",
  ],
  ["RAR-D-1 an unknown comparison is refused", { t: field({ is: "string", narrows: "regex" }) }, "narrows"],
  [
    "RAR-D-1 a subset of no list is refused",
    { t: field({ is: "strings", narrows: "subset" }) },
    'without "from"',
  ],
  ["RAR-D-1 a needed field that is missing is refused", { t: { ...base, needs: ["gone"] } }, "needs"],
  [
    "RAR-D-1 a unit that is missing is refused",
    { t: field({ is: "decimal", narrows: "max", unit: "u" }) },
    "unit",
  ],
  ["RAR-D-1 a type without fields is refused", { t: { ...base, fields: {} } }, "empty"],
  ["RAR-D-1 code in a type is refused", { t: { ...base, check: "() => true" } }, "check"],
];
function field(written: object): object {
  return { ...base, fields: { one: written } };
}
for (const [name, written, want] of WRITTEN) {
  test(name, () => {
    const parsed = v.safeParse(declaredTypes, written);
    const texts = parsed.success ? ["ok"] : parsed.issues.map((one) => `${v.getDotPath(one)} ${one.message}`);
    assert.ok(
      texts.some((text) => text.includes(want)),
      texts.join("; "),
    );
  });
}

test("RAR-D-1 the JSON Schema of a type is made from it, for editors", () => {
  const type = TYPES.get(INVOICE);
  assert.ok(type);
  const schema = schemaOf(INVOICE, type);
  assert.deepEqual(schema.required, ["type", "actions"]);
  assert.deepEqual(schema.dependencies, { max_amount: ["currency"] });
  const { type: is, actions, max_amount } = schema.properties as Record<string, Record<string, unknown>>;
  assert.deepEqual(is, { const: INVOICE });
  assert.deepEqual(actions, {
    type: "array",
    items: { enum: ["read", "pay", "send"] },
    minItems: 1,
    uniqueItems: true,
  });
  const grammar = new RegExp(String(max_amount?.pattern));
  for (const decimal of DECIMALS) assert.equal(grammar.test(decimal), false, decimal);
});
