/**
 * RFC 9396, OAuth 2.0 Rich Authorization Requests: https://www.rfc-editor.org/rfc/rfc9396.html
 * Covers 2 the objects, as a parameter or a claim has them, before their types are looked at.
 * Elsewhere: 2.1 policy/detail-types.ts; 2.2 policy/details.ts; 3 flows/order/read-order.ts,
 * people/spec/rfc6749-authorization.ts; 3.1 people/pages/decision-parts.ts; 5 flows/order/read-order.ts,
 * http/errors.ts, people/flows/read-authorization.ts, people/flows/told.ts, policy/details.ts; 6 policy/details.ts; 6.1
 * people/flows/redeem-code.ts, policy/details.ts; 7 flows/options/details.ts, spec/rfc6749.ts; 8 http/errors.ts; 9.1
 * spec/rfc9068.ts; 9.2 spec/rfc9068.ts; 10 people/flows/read-authorization.ts, policy/narrow-details.ts,
 * settings/client.ts, settings/settings.ts, spec/rfc7591-members.ts, spec/rfc8414.ts; 11.2 records.ts; 12
 * people/pages/detail-sentences.ts, policy/details.ts, policy/narrow-details.ts.
 */
import {
  DETAIL_FIELDS_MAX,
  DETAIL_OBJECTS_MAX,
  DETAIL_VALUE_BYTES_MAX,
  DETAIL_VALUES_MAX,
  DETAILS_BYTES_MAX,
  DETAILS_DEPTH_MAX,
} from "../limits/input.ts";
import { err, ok, type Result } from "../result.ts";
import { fitsBytes, isJsonObject, type Json, parseJson } from "./rfc8259.ts";
import { canonicalize } from "./rfc8785.ts";

export type DetailValue = string | number | boolean | readonly string[];

/** One object: its type, and fields that hold together. Several objects of one type are alternatives. */
export type Detail = { readonly type: string; readonly [field: string]: DetailValue };

export type DetailsFailure = { kind: "details_malformed" | "details_too_large" };

/** A number with a fraction or an exponent, or minus zero. */
const ODD_NUMBER = /[0-9][.eE]|-0/;

/** What of a valid text stands outside of its strings. */
const outsideOfStrings = (json: string): string =>
  json
    .replaceAll("\\\\", "")
    .replaceAll('\\"', "")
    .split('"')
    .filter((_, index) => index % 2 === 0)
    .join(" ");

/** Whether a number of a valid text has a second spelling, or is rounded when it is read. */
export const hasOddNumber = (json: string): boolean => ODD_NUMBER.test(outsideOfStrings(json));

/** Reads the parameter (RFC9396-3-1). */
export function parseDetails(text: string): Result<readonly Detail[], DetailsFailure> {
  if (!fitsBytes(text, DETAILS_BYTES_MAX)) return err({ kind: "details_too_large" });
  const json = parseJson(text, DETAILS_DEPTH_MAX);
  if (!json.ok || hasOddNumber(text)) return err({ kind: "details_malformed" });
  return readDetails(json.value);
}

/** Reads a value that was parsed, such as a claim. RAR-D-12: an empty array is refused, as it could mean all or nothing. */
export function readDetails(json: Json | undefined): Result<readonly Detail[], DetailsFailure> {
  if (!Array.isArray(json) || json.length === 0) return err({ kind: "details_malformed" });
  const details: Detail[] = [];
  for (const one of json) {
    if (!isDetail(one)) return err({ kind: "details_malformed" });
    details.push(one);
  }
  return fitsDetails(details) ? ok(details) : err({ kind: "details_too_large" });
}

/** RFC9396-2-1: every object has a `type`. */
function isDetail(json: Json): json is Json & Detail {
  if (!isJsonObject(json) || !isText(json.type)) return false;
  const values = Object.values(json);
  return values.length <= DETAIL_FIELDS_MAX + 1 && values.every(isDetailValue);
}

/** A text, a safe integer, a boolean, or a list of different texts. */
export function isDetailValue(json: Json): json is string | number | boolean | string[] {
  if (Array.isArray(json)) {
    // RAR-D-12: a text that stands twice would make two lists of one meaning.
    return (
      json.length > 0 &&
      json.length <= DETAIL_VALUES_MAX &&
      json.every(isText) &&
      new Set(json).size === json.length
    );
  }
  return typeof json === "boolean" || isText(json) || Number.isSafeInteger(json);
}

const isText = (json: Json | undefined): json is string =>
  typeof json === "string" && json !== "" && fitsBytes(json, DETAIL_VALUE_BYTES_MAX);

/** As a member of a JSON object. */
export const detailsJson = (details: readonly Detail[] | undefined): Json | undefined =>
  details as unknown as Json | undefined;

/** The order of objects counts, that of their members does not. */
export const isSameDetails = (claim: Json | undefined, details: readonly Detail[] | undefined): boolean =>
  claim === undefined || details === undefined
    ? claim === details
    : canonicalize(claim) === canonicalize(details as unknown as Json);

/** RAR-D-12: whether these are few and short enough to be kept, shown and put into a token. */
export const fitsDetails = (details: readonly Detail[]): boolean =>
  details.length <= DETAIL_OBJECTS_MAX && fitsBytes(JSON.stringify(details), DETAILS_BYTES_MAX);
