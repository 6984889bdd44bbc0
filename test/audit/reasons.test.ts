/** The table of reasons against the code that gives them. */
import assert from "node:assert/strict";
import { join } from "node:path";
import test from "node:test";
import { loadTree } from "../../scripts/clauses/register.ts";
import type { AuditEvent } from "../../src/audit/event.ts";
import { REASONS } from "../../src/audit/reasons.ts";
import { membersFor } from "../../src/spec/rfc7591-members.ts";

const reasons = Object.entries(REASONS);
const code = loadTree(join(import.meta.dirname, "../.."))
  .code.filter(({ file }) => /^(src|scripts)\/.*\.ts$/.test(file) && !file.startsWith("src/audit/reasons"))
  .map(({ text }) => text)
  .join("\n");
const captured = (pattern: RegExp) => new Set([...code.matchAll(pattern)].map(([, text = ""]) => text));
const literals = captured(/"([a-z0-9_]+)"/g);
/** Of reasons that are put together; the names of kinds of documents are prefixes too. */
const prefixes = [...captured(/`([a-z_]+_)\$\{/g), "document_", "key_set_"];
const ends = [...captured(/\}_([a-z_]+)`/g)];
const members = Object.keys(membersFor([]).entries);

const isGiven = (reason: string): boolean =>
  literals.has(reason) ||
  prefixes.some((prefix) => reason.startsWith(prefix) && isGiven(reason.slice(prefix.length))) ||
  ends.some((end) => prefixes.includes(reason.slice(0, -end.length)) && reason.endsWith(end)) ||
  members.some((member) => reason === `${member}_refused`);

test("AUDIT-D-2 every reason of the table is given somewhere in the code", () => {
  assert.ok(reasons.length > 100);
  assert.deepEqual(
    reasons.filter(([reason]) => !isGiven(reason)).map(([reason]) => reason),
    [],
  );
});

test("a reason that the code does not give is found", () => {
  for (const reason of ["no_rules", "subject_no_rules", "document_no_rules", "colour_refused"]) {
    assert.equal(isGiven(reason), false, reason);
  }
});

test("AUDIT-D-2 a misspelt reason does not compile", () => {
  const known: AuditEvent["reason"][] = [
    "no_rule",
    "subject_jwt_expired",
    "issuer_key_unknown",
    "document_not_utf8",
  ];
  // @ts-expect-error: not a reason
  const misspelt: AuditEvent["reason"][] = ["no_rules"];
  // @ts-expect-error: a reason with a prefix that it does not have
  const misplaced: AuditEvent["reason"][] = ["subject_no_rule"];
  assert.ok(known.every((reason) => Object.hasOwn(REASONS, reason)));
  assert.ok([...misspelt, ...misplaced].every((reason) => !Object.hasOwn(REASONS, reason)));
});

test("every reason has a sentence in plain words", () => {
  for (const [reason, text] of reasons) {
    assert.match(reason, /^[a-z][a-z0-9_]*$/);
    assert.match(text, /^[A-Za-z][\x20-\x7e]{10,160}[^. ]$/, reason);
  }
});
