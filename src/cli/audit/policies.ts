/** `policies.ndjson` of an export: the archived policies, each with its digest and byte for byte as it was hashed. */
import { hash } from "node:crypto";
import type { Store } from "../../adapters/store/store.ts";
import { err, ok, type Result } from "../../result.ts";
import { readLines } from "../named-file.ts";
import { word } from "../text.ts";

type Archived = { digest: string; body: string };

/** The digest needs no escapes, and the text is JSON, so that the line is too. */
export const policyLine = ({ digest, body }: Archived): string => `{"digest":"${digest}","policy":${body}}`;

const LINE = /^\{"digest":"(sha256:[0-9a-f]{64})","policy":(.*)\}$/s;

/** REPL-D-2: an archive counts by its digest alone. */
export function checkArchived({ digest, body }: Archived): Result<Archived, string> {
  if (`sha256:${hash("sha256", body, "hex")}` === digest) return ok({ digest, body });
  return err(`the policy ${word(digest)} does not have this digest: it was changed`);
}

export function readPolicyLine(line: string): Result<Archived, string> {
  const [, digest, body] = LINE.exec(line) ?? [];
  if (digest === undefined || body === undefined) return err("this is not an archived policy");
  return checkArchived({ digest, body });
}

/** Each policy of the store, one at a time, because one is as large as a configuration. */
export async function* policyLines({ policies }: Pick<Store, "policies">): AsyncIterable<readonly string[]> {
  for (const digest of await policies.digests()) {
    const found = await policies.find(digest);
    if (found !== undefined) yield [policyLine(found)];
  }
}

/** Compares the file with what the events name; each problem is a line. */
export async function comparePolicies(
  file: string,
  named: ReadonlyMap<string, number>,
): Promise<{ problems: readonly string[]; count: number }> {
  const problems: string[] = [];
  const there = new Set<string>();
  let number = 0;
  for await (const line of readLines(file)) {
    number++;
    const read = readPolicyLine(line);
    if (read.ok) there.add(read.value.digest);
    else problems.push(`${file}, line ${number}: ${read.error}`);
  }
  for (const [digest, events] of named) {
    if (there.has(digest)) continue;
    problems.push(`${file} lacks the policy ${word(digest)}, by which ${events} events were decided`);
  }
  return { problems, count: there.size };
}
