/** Whether an answer is one that the description of the endpoints has. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Answer } from "../../scripts/http-client.ts";
import type { Awaitable } from "../../src/result.ts";

// biome-ignore lint/suspicious/noExplicitAny: a JSON document, of which a test reads parts.
type Node = any;

const FILE = join(import.meta.dirname, "../../src/http/openapi.json");
const description: Node = JSON.parse(readFileSync(FILE, "utf8"));

/** `POST /jobs/{id}` and the like, as the description has them. */
export const OPERATIONS: readonly string[] = Object.entries<object>(description.paths).flatMap(
  ([path, methods]) => Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
);

const FORMS = Object.keys(description.paths).map((path) => ({
  path,
  form: new RegExp(`^${path.replaceAll(/[.]/g, "\\$&").replaceAll(/\{\w+\}/g, "[^/]+")}/?$`),
}));

const pathFor = (path: string): string | undefined =>
  description.paths[path] === undefined ? FORMS.find(({ form }) => form.test(path))?.path : path;

/** The operation that a request is of; undefined for a method or path that is not served. HEAD is served as GET. */
export function operationOf(method: string, path: string): string | undefined {
  const operation = `${method === "HEAD" ? "GET" : method} ${pathFor(path)}`;
  return OPERATIONS.includes(operation) ? operation : undefined;
}

/** What of this answer the description does not have; undefined if it has all, or if the request is of no operation. */
export function undescribed(method: string, path: string, answer: Answer): string | undefined {
  const operation = operationOf(method, path);
  if (operation === undefined) return undefined;
  const [verb = "", place = ""] = operation.split(" ");
  const { status, headers, text } = answer;
  // An issuer with a path has nothing at the well-known paths of its host.
  if (status === 404 && place.startsWith("/.well-known/")) return undefined;
  const found = description.paths[place][verb.toLowerCase()].responses[status];
  if (found === undefined) return `${operation}: ${status}`;
  if (text === "") return undefined;
  const type = (headers["content-type"] ?? "").split(";")[0] ?? "";
  const told = resolved(found).content?.[type];
  if (told === undefined) return `${operation}: ${status} with ${type}`;
  const problem = /\/(jwk-set\+)?json$/.test(type)
    ? misfit(told.schema, JSON.parse(text), "body")
    : undefined;
  return problem && `${operation}: ${status}: ${problem}`;
}

/** HTTP-D-68: the description of the endpoints has every answer that a test meets. */
export async function asDescribed(method: string, path: string, sent: Awaitable<Answer>): Promise<Answer> {
  const answer = await sent;
  assert.equal(undescribed(method, path.split("?")[0] ?? "", answer), undefined);
  return answer;
}

function resolved({ $ref: ref, ...rest }: Node): Node {
  if (ref === undefined) return rest;
  return String(ref)
    .slice(2)
    .split("/")
    .reduce((node, name) => node[name], description);
}

/** The part of JSON Schema that the description uses for answers. */
function misfit(schema: Node, value: Node, at: string): string | undefined {
  if (schema === undefined) return undefined;
  const {
    type,
    enum: values,
    properties = {},
    required = [],
    additionalProperties,
    items,
  } = resolved(schema);
  if (values !== undefined && !values.includes(value)) return `${at} is ${JSON.stringify(value)}`;
  if (type === "array")
    return Array.isArray(value) ? first(value, (one) => misfit(items, one, `${at}[]`)) : `${at} is no list`;
  if (type === "integer") return Number.isInteger(value) ? undefined : `${at} is no whole number`;
  if (type !== "object")
    return type === undefined || typeof value === type ? undefined : `${at} is no ${type}`;
  if (typeof value !== "object" || value === null) return `${at} is no object`;
  const missing = required.find((name: string) => value[name] === undefined);
  if (missing !== undefined) return `${at}.${missing} is missing`;
  return first(Object.entries(value), ([name, member]) => {
    if (Object.hasOwn(properties, name)) return misfit(properties[name], member, `${at}.${name}`);
    return additionalProperties === false ? `${at}.${name} is not described` : undefined;
  });
}

function first<T>(all: readonly T[], of: (one: T) => string | undefined): string | undefined {
  for (const one of all) {
    const found = of(one);
    if (found !== undefined) return found;
  }
  return undefined;
}
