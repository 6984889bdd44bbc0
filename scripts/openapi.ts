/** The description of the endpoints as OpenAPI 3.1, from the schemas that validate and from the table of endpoints. */

import { toJsonSchema } from "@valibot/to-json-schema";
import { OCSF_TYPE } from "../src/audit/ocsf.ts";
import { readManifest } from "../src/program.ts";
import { ANSWERS, type Schema } from "./openapi/answers.ts";
import { ENDPOINTS, type Endpoint } from "./openapi/endpoints.ts";

/** Refusals below the endpoints, which any request may meet. */
const OF_ALL = [400, 408, 413, 415, 417, 431, 500, 503];
/** Those of the token that an endpoint of ours takes. */
const OF_TOKENS = [401, 403, 404, 429];

/** As the server serves it, for the issuer that stands in `servers`. */
export function openapiText(): string {
  const paths = Object.entries(ENDPOINTS).map(([path, methods]) => [
    path,
    Object.fromEntries(
      Object.entries(methods).map(([method, endpoint]) => [method, operation(method, path, endpoint)]),
    ),
  ]);
  const document = {
    openapi: "3.1.1",
    info: {
      title: "Mandate",
      version: readManifest().version,
      description:
        "An OAuth 2.0 authorization server and security token service for workloads and AI agents.",
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    },
    servers: [{ url: "https://as.example" }],
    paths: Object.fromEntries(paths),
    components: { schemas: ANSWERS, responses: REFUSALS, securitySchemes: SECURITY },
  };
  return `${JSON.stringify(document, null, 1)}\n`;
}

const SECURITY = {
  secret: { type: "http", scheme: "basic", description: "client_id and secret (RFC 6749 2.3.1)" },
  certificate: { type: "mutualTLS", description: "X.509-SVID, or the certificate of a client (RFC 8705)" },
  token: {
    type: "http",
    scheme: "bearer",
    description: "an access token of this server, or a registration's",
  },
  bound: { type: "http", scheme: "DPoP", description: "an access token that is bound to a key (RFC 9449)" },
};

/** A client may prove itself by parameters of its form as well, or is public. */
const BY: Readonly<Record<Endpoint["by"], readonly object[]>> = {
  client: [{ secret: [] }, { certificate: [] }, {}],
  bearer: [{ token: [] }, { bound: [] }],
  browser: [{}],
  public: [{}],
  issuer: [{}],
  provider: [{}],
};

const TEXT = { type: "string" };

/** What generated clients call the operation: its method and the words of its path. */
const operationId = (method: string, path: string): string =>
  [method, ...(path === "/" ? ["root"] : path.split(/[^A-Za-z0-9]+/).filter((word) => word !== ""))]
    .map((word, index) => (index === 0 ? word : `${word.charAt(0).toUpperCase()}${word.slice(1)}`))
    .join("");

function operation(method: string, path: string, endpoint: Endpoint): object {
  const { says, by, scope, answers, refuses = [], query = [], headers = [] } = endpoint;
  const named = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({ name, in: "path", required: true }));
  const parameters = [
    ...named,
    ...query.map((name) => ({ name, in: "query" })),
    ...headers.map((name) => ({ name, in: "header" })),
  ].map((parameter) => ({ ...parameter, schema: TEXT }));
  const statuses = [...OF_ALL, ...(by === "bearer" ? OF_TOKENS : []), ...refuses];
  const responses = [
    ...[...new Set(statuses)].map((status) => [
      status,
      { $ref: `#/components/responses/${REFUSED[by] ?? "Refusal"}` },
    ]),
    ...Object.entries(answers).map(([status, body]) => [status, response(body, endpoint)]),
  ];
  return {
    operationId: operationId(method, path),
    summary: says,
    ...(scope === undefined ? {} : { description: `A token of this server needs the scope \`${scope}\`.` }),
    security: BY[by],
    ...(parameters.length === 0 ? {} : { parameters }),
    ...requestOf(endpoint),
    responses: Object.fromEntries(responses),
  };
}

/** Checks of our own cannot be expressed in JSON Schema and are left out. */
function requestOf({ form, body, bodyType }: Endpoint): object {
  const content = (type: string, schema: Schema) => ({
    requestBody: { required: true, content: { [type]: { schema } } },
  });
  if (form !== undefined) {
    const properties = Object.fromEntries(
      form.map((name) => [name, REPEATED.includes(name) ? { type: "array", items: TEXT } : TEXT]),
    );
    return content("application/x-www-form-urlencoded", { type: "object", properties });
  }
  if (bodyType !== undefined) return content(bodyType, {});
  if (body === undefined) return {};
  const { $schema: _, ...schema } = toJsonSchema(body, { typeMode: "input", errorMode: "ignore" });
  return content("application/json", schema as Schema);
}

const REPEATED = ["resource", "audience"];

const refOf = (name: string): Schema => ({ $ref: `#/components/schemas/${name}` });

const refused = (content: object): object => ({ description: "refused", content });
const JSON_REFUSAL = { "application/json": { schema: refOf("Refusal") } };
/** At the paths of pages a refusal is a page as well. */
const REFUSALS = {
  Refusal: refused(JSON_REFUSAL),
  SignalRefusal: refused({ "application/json": { schema: refOf("SignalRefusal") } }),
  PageRefusal: refused({ "text/html": {}, ...JSON_REFUSAL }),
};
const REFUSED: Partial<Record<Endpoint["by"], keyof typeof REFUSALS>> = {
  issuer: "SignalRefusal",
  browser: "PageRefusal",
};

function response(body: Endpoint["answers"][number], { formats }: Endpoint): object {
  switch (body) {
    case "none":
      return { description: "without a body" };
    case "html":
      return { description: "a page", content: { "text/html": {} } };
    case "text":
      return { description: "a text of lines", content: { "text/plain": {} } };
    case "picture":
      return { description: "a picture", content: { "image/png": {} } };
    default:
      return {
        description: body,
        content: {
          [TYPES[body] ?? "application/json"]: { schema: refOf(body) },
          ...(formats ? { "application/x-ndjson": {}, "text/csv": {} } : {}),
          ...(formats === "events" ? { [OCSF_TYPE]: {} } : {}),
        },
      };
  }
}

const TYPES: Readonly<Record<string, string>> = { Keys: "application/jwk-set+json" };
