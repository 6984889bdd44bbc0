/**
 * The text of a policy set, of which its digest is: what is kept so that a decision can be judged again when other rules
 * are in force. It has all that a decision reads of the configuration, and the form in which it is written.
 */
import * as v from "valibot";
import { err, type Result } from "../result.ts";
import { isJsonObject, type Json, parseJson } from "../spec/rfc8259.ts";
import { canonicalize } from "../spec/rfc8785.ts";
import { compilePolicy, type PolicySet, Rule, Target, type TargetFile } from "./rules.ts";

/** The form of the text; a digest is never that of two forms. */
const FORM = 1;
/** Rules nest less deeply than this. */
const DEPTH_MAX = 16;

export type WrittenPolicy = { issuer: string; policies: readonly Rule[]; targets: readonly TargetFile[] };

/**
 * REPL-D-2: the canonical text in parts, because it is as large as the configuration; the members have their order
 * (RFC8785-3.2.3-1).
 */
export function* policyText({ issuer, policies, targets }: WrittenPolicy): Generator<string> {
  yield `{"issuer":${canonicalize(issuer)},"policies":[`;
  yield* entriesOf(policies);
  yield '],"targets":[';
  yield* entriesOf(targets);
  yield `],"v":${FORM}}`;
}

function* entriesOf(entries: readonly unknown[]): Generator<string> {
  for (const [index, entry] of entries.entries()) {
    yield `${index === 0 ? "" : ","}${canonicalize(entry as Json)}`;
  }
}

/** The set that the text describes; its digest was compared before. */
export function readArchive(text: string, digest: string): Result<PolicySet, string> {
  const json = parseJson(text, DEPTH_MAX);
  if (!json.ok || !isJsonObject(json.value)) return err("is no JSON object");
  const { issuer, policies, targets, v: form } = json.value;
  if (form !== FORM) return err(`is in form ${JSON.stringify(form)}, and this version reads ${FORM}`);
  if (typeof issuer !== "string" || !Array.isArray(policies) || !Array.isArray(targets)) {
    return err("lacks its issuer, rules or targets");
  }
  // REPL-D-3: what this version would read otherwise, or not at all, was written by another one.
  const rules = policies.map((one) => reread(Rule, one, one));
  const places = targets.map((one) => reread(Target, asWritten(one), one));
  const foreign = [...rules, ...places].indexOf(undefined);
  if (foreign >= 0) {
    const of = foreign < rules.length ? `rule ${foreign + 1}` : `target ${foreign - rules.length + 1}`;
    return err(`is of another version: ${of} is not as this version writes it`);
  }
  const set = compilePolicy(rules as Rule[], places as TargetFile[], issuer, digest);
  return set.ok ? set : err(`is of another version: ${set.error.join("; ")}`);
}

/** The entry, unless this version writes another text of it. */
function reread<S extends typeof Rule | typeof Target>(
  schema: S,
  written: Json,
  entry: Json,
): v.InferOutput<S> | undefined {
  const parsed = v.safeParse(schema, written);
  if (!parsed.success || canonicalize(parsed.output as Json) !== canonicalize(entry)) return undefined;
  return parsed.output;
}

/** A partner or a trust domain as the configuration has it; its entry in force is like that of other targets. */
function asWritten(target: Json): Json {
  if (!isJsonObject(target) || !Array.isArray(target.names)) return target;
  const {
    partner,
    transaction,
    names,
    owners = [],
    introspectors: _,
    binding: __,
    typ: ___,
    ...rest
  } = target;
  const { checks: ____, people: _____, ...common } = rest;
  if (isJsonObject(partner)) return { ...common, ...partner, kind: "partner", aliases: names.slice(1) };
  if (!isJsonObject(transaction)) return target;
  const { scopes: ______, job: _______, ...further } = common;
  return { ...further, ...transaction, kind: "transaction", names, owners };
}
