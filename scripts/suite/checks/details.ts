/** RFC 9396: authorization_details of a token, which only narrow. */
import type { Context } from "../context.ts";
import type { Json } from "../keys.ts";
import { area, type Row } from "../table.ts";
import { answers, issues, refused, that } from "../verdicts.ts";

const WRONG = refused("invalid_authorization_details");
const first = (value: unknown): Json => (Array.isArray(value) ? (value[0] ?? {}) : {});
const wrong = (id: string, clause: string, what: string, detailsOf: (c: Context) => string): Row => [
  `details.${id}`,
  clause,
  `${what} is invalid_authorization_details.`,
  (c) => c.askDetails({ authorization_details: detailsOf(c) }),
  WRONG,
];

export const details = area("authorization details", { needs: ["details"], basis: "details.good" }, [
  [
    "details.good",
    "RFC9396-7-1",
    "The answer has the details that the token was given.",
    (c) => c.askDetails(),
    answers(
      "authorization_details of the type",
      (body, _, c) => first(body.authorization_details).type === c.names.detail,
    ),
    { basis: undefined },
  ],
  [
    "details.claim",
    "RFC9396-9.1-1",
    "The token has them as a claim.",
    (c) => c.askDetails(),
    issues("they are there", (claims, c) => first(claims.authorization_details).type === c.names.detail),
  ],
  [
    "details.introspected",
    "RFC9396-9.2-1",
    "Introspection tells them.",
    async (c) => c.introspect("gate", await c.tokenOf(c.askDetails())),
    answers(
      "authorization_details",
      (body, _, c) => first(body.authorization_details).type === c.names.detail,
    ),
    { needs: ["details", "introspection"] },
  ],
  [
    "details.metadata",
    "RFC9396-10-1",
    "The metadata name the types.",
    (c) => c.get(`${c.server.issuer}/.well-known/oauth-authorization-server`),
    that("authorization_details_types_supported", (_, c) =>
      [c.server.metadata.authorization_details_types_supported].flat().includes(c.names.detail),
    ),
    { needs: ["details", "metadata"] },
  ],
  [
    "details.limit",
    "RFC9396-6-1",
    "More than the client may have is not given.",
    (c) => c.askDetails({ authorization_details: c.details({ max_amount: "900.00" }) }),
    that("400, or at most 500", ({ status, body }) =>
      status === 200 ? Number(first(body.authorization_details).max_amount) <= 500 : status === 400,
    ),
  ],
  [
    "details.kept",
    "RAR-D-2",
    "Less than that stays as it was asked for.",
    (c) => c.askDetails({ authorization_details: c.details({ max_amount: "12.50" }) }),
    answers("max_amount 12.50", (body) => Number(first(body.authorization_details).max_amount) === 12.5),
  ],
  wrong("unknown-type", "RFC9396-5-1", "A type that is not known", () =>
    JSON.stringify([{ type: "https://unknown.example/type" }]),
  ),
  wrong("no-type", "RFC9396-2-1", "An object without type", () => JSON.stringify([{ actions: ["pay"] }])),
  wrong("unknown-field", "RFC9396-5-2", "A field that is not known", (c) => c.details({ suite: "x" })),
  wrong("wrong-field", "RFC9396-5-2", "A field of another kind", (c) => c.details({ actions: "pay" })),
  wrong("wrong-value", "RFC9396-5-2", "A value that the type does not have", (c) =>
    c.details({ currency: "ZZZ" }),
  ),
  wrong("no-array", "RFC9396-2-1", "What is no array", (c) => JSON.stringify({ type: c.names.detail })),
  wrong("no-json", "RFC9396-5-1", "What is not JSON", () => "["),
  [
    "details.other-target",
    "RFC9396-5-1",
    "A type that the target does not know is refused.",
    (c) => c.clientCredentials("machine", { authorization_details: c.details() }),
    refused("invalid_authorization_details", "invalid_target"),
  ],
]);
