/** A JSON file of the operator, or why it cannot be read, in words that begin with its name. */
import { readFileSync } from "node:fs";
import { CLAIMS_DEPTH_MAX } from "../limits/input.ts";
import { err, type Result } from "../result.ts";
import { decodeUtf8, type Json, type JsonFailure, parseJson } from "../spec/rfc8259.ts";
import { describeEncoding, describeNotJson, describeUnopened, repeatedName } from "./file-contents.ts";

export function readJsonFile(path: string): Result<Json, string> {
  let bytes: Uint8Array;
  try {
    bytes = readFileSync(path);
  } catch (fault) {
    return err(`${path}: cannot be read: ${describeUnopened(fault)}`);
  }
  const content = decodeUtf8(bytes);
  if (!content.ok) return err(`${path}: ${describeEncoding(bytes)}`);
  const json = parseJson(content.value, CLAIMS_DEPTH_MAX);
  return json.ok ? json : err(`${path}: ${NOT_JSON[json.error.kind](content.value)}`);
}

const NOT_JSON: Record<JsonFailure["kind"], (content: string) => string> = {
  json_malformed: (content) => `is not valid JSON${placeOf(content)}${describeNotJson(content)}`,
  json_duplicate_member: (content) =>
    `has ${JSON.stringify(repeatedName(content))} twice in one object: remove one of them`,
  json_too_deep: () => "is nested too deeply",
  json_number_not_finite: () => "has a number that is too large",
};

/**
 * Line and column where the platform's parser fails; the rest of its message is dropped, because it may quote a secret.
 */
function placeOf(content: string): string {
  try {
    JSON.parse(content);
    return "";
  } catch (fault) {
    const place = /\(line \d+ column \d+\)$/.exec(String(fault))?.[0];
    return place === undefined ? "" : ` ${place}`;
  }
}
