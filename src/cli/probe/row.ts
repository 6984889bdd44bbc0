/** How a row of `mandate probe` is written: its request by where it goes, and what an answer may be. */
import { JSON_DEPTH_MAX } from "../../limits/input.ts";
import { isJsonObject, type JsonObject, parseJson } from "../../spec/rfc8259.ts";

export type Request = {
  method: string;
  url: string;
  headers?: Record<string, string>;
  body?: string;
};
export type Answer = { status: number; headers: Readonly<Record<string, string>>; text: string };
/** The server that is asked: `metadata` are its own words of its endpoints. */
export type Probed = { issuer: string; metadata: JsonObject; nowSeconds: number };

export type Row = {
  clause: string;
  asks: string;
  /** The endpoint in the metadata without which the row is not asked. */
  needs?: string;
  request(probed: Probed): Request;
  wants: string;
  fits(answer: Answer, probed: Probed): boolean;
};

export const FORM = "application/x-www-form-urlencoded";
/** An id that no server gives; each row that fails to authenticate has one of its own. */
export const client = (name: string): string => `mandate-probe-${name}`;
export const WRONG = "mandate-probe-not-a-credential";

export const json = ({ text }: Answer): JsonObject => {
  const value = parseJson(text, JSON_DEPTH_MAX);
  return value.ok && isJsonObject(value.value) ? value.value : {};
};
export const valuesOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
export const endpoint = ({ issuer, metadata }: Probed, name: string): string => {
  const url = name.startsWith("/") ? `${issuer.replace(/\/$/, "")}${name}` : metadata[name];
  return typeof url === "string" ? url : issuer;
};
const TOKENS = ["access_token", "refresh_token", "id_token", "client_secret", "request_uri"];

/** Neither a success nor a redirect, and nothing in it that a caller could use. */
export const isRefused = (answer: Answer): boolean =>
  answer.status >= 400 &&
  answer.status < 500 &&
  answer.headers.location === undefined &&
  !TOKENS.some((name) => name in json(answer)) &&
  json(answer).active !== true;

export const refusal =
  (errors: readonly string[] = [], statuses: readonly number[] = []) =>
  (answer: Answer): boolean =>
    isRefused(answer) &&
    (errors.length === 0 || errors.includes(String(json(answer).error))) &&
    (statuses.length === 0 || statuses.includes(answer.status));

/** A JWT that is signed by nothing, or by a text that is no signature. */
export function forged(alg: string, { issuer, nowSeconds }: Probed, claims: JsonObject): string {
  const encode = (part: object): string =>
    btoa(JSON.stringify(part)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
  const all = { aud: issuer, iat: nowSeconds, exp: nowSeconds + 60, jti: WRONG, ...claims };
  return `${encode({ alg, typ: "JWT" })}.${encode(all)}.${alg === "none" ? "" : "AAAA"}`;
}

export type Fields = Record<string, string>;
export const form = (
  at: string,
  fields: (probed: Probed) => Fields | string,
  headers: Record<string, string> = {},
) => ({
  request: (probed: Probed): Request => {
    const given = fields(probed);
    return {
      method: "POST",
      url: endpoint(probed, at),
      headers: { "content-type": FORM, ...headers },
      body: typeof given === "string" ? given : new URLSearchParams(given).toString(),
    };
  },
});
export const get = (at: string, headers: Record<string, string> = {}, query = "") => ({
  request: (probed: Probed): Request => {
    const url = endpoint(probed, at);
    return {
      method: "GET",
      url: query === "" ? url : `${url}${url.includes("?") ? "&" : "?"}${query}`,
      headers,
    };
  },
});
export const using = (method: string, at: string) => ({
  request: (probed: Probed): Request => ({ method, url: endpoint(probed, at) }),
});
export const basic = (id: string): Record<string, string> => ({
  authorization: `Basic ${btoa(`${id}:${WRONG}`)}`,
});
export const bearer = { authorization: `Bearer ${WRONG}` };

export const REFUSED = "a refusal, no token and no redirect";
