/** Deferred token responses: a client whose user has not decided waits, instead of asking again. */
import type { Context } from "../context.ts";
import type { Answer } from "../http.ts";
import { randomId } from "../keys.ts";
import { area } from "../table.ts";
import { refused, status, that } from "../verdicts.ts";

const open = (c: Context, form = {}): Promise<Answer> =>
  c.askDeferred({ subject_token: c.userToken({ claims: { sub: `user-${randomId()}` } }), ...form });
const CODE_TYPE = "urn:ietf:params:oauth:token-type:deferral-code";
const cancelled = async (c: Context, role: "asker" | "planner"): Promise<Answer> => {
  const { deferral_code: code } = await c.deferred();
  await c.revoke(role, String(code), { token_type_hint: CODE_TYPE });
  return c.poll("asker", code);
};
const waits = that(
  '400, "interaction_required" and deferral_code, expires_in and interval',
  ({ status: got, body }) =>
    got === 400 &&
    body.error === "interaction_required" &&
    typeof body.deferral_code === "string" &&
    Number(body.expires_in) > 0 &&
    Number(body.interval) > 0,
);

export const deferral = area(
  "deferred answers",
  { needs: ["deferral", "delegation"], basis: "deferral.opened" },
  [
    [
      "deferral.opened",
      "DTR-6.4-1",
      "A request that can wait is answered with a code.",
      (c) => open(c),
      waits,
      { basis: undefined },
    ],
    [
      "deferral.no-store",
      "DTR-6.6-1",
      "The answer is not stored.",
      (c) => open(c),
      that("no-store", ({ headers }) => /\bno-store\b/.test(headers["cache-control"] ?? "")),
    ],
    [
      "deferral.code",
      "DTR-6.4-2",
      "The code has 128 bits at least.",
      (c) => open(c),
      that("22 characters or more", ({ body }) => String(body.deferral_code).length >= 22),
    ],
    [
      "deferral.uri",
      "DTR-6.4-4",
      "interaction_uri is https, without fragment.",
      (c) => open(c),
      that("such a URL", ({ body }) => /^https:\/\/[^#]+$/.test(String(body.interaction_uri))),
    ],
    [
      "deferral.not-asked",
      "DTR-5-1",
      "A client that cannot wait gets no code.",
      (c) => open(c, { completion_mode: undefined }),
      that(
        "an error without deferral_code",
        ({ status: got, body }) =>
          got >= 400 && typeof body.error === "string" && body.deferral_code === undefined,
      ),
    ],
    [
      "deferral.unknown-mode",
      "DTR-5.1-1",
      "A completion_mode that is not known is ignored.",
      (c) => open(c, { completion_mode: "suite" }),
      that(
        "an error without deferral_code",
        ({ status: got, body }) =>
          got >= 400 && typeof body.error === "string" && body.deferral_code === undefined,
      ),
    ],
    [
      "deferral.other-grant",
      "DTR-5.1-3",
      "completion_mode is no reason to refuse another request.",
      (c) => c.clientCredentials("machine", { completion_mode: "deferred" }),
      status(200),
      { needs: ["deferral", "client_credentials"], basis: undefined },
    ],
    [
      "deferral.metadata",
      "DTR-5.1-2",
      "The metadata say that it is supported.",
      (c) => c.get(`${c.server.issuer}/.well-known/oauth-authorization-server`),
      that(
        "deferred_token_response_supported",
        (_, c) => c.server.metadata.deferred_token_response_supported === true,
      ),
      { needs: ["deferral", "metadata"] },
    ],
    [
      "deferral.revocation-metadata",
      "DTR-8.4-1",
      "The metadata say that codes are revoked.",
      (c) => c.get(`${c.server.issuer}/.well-known/oauth-authorization-server`),
      that(CODE_TYPE, (_, c) =>
        [c.server.metadata.revocation_endpoint_token_type_values_supported].flat().includes(CODE_TYPE),
      ),
      { needs: ["deferral", "metadata", "revocation"] },
    ],
    [
      "deferral.pending",
      "DTR-6.5-1",
      "A poll before the user decided says so.",
      async (c) => c.poll("asker", (await c.deferred()).deferral_code),
      refused("interaction_required", "authorization_pending"),
    ],
    [
      "deferral.slow-down",
      "DTR-11.3-1",
      "A poll sooner than interval is told to slow down.",
      async (c) => {
        const { deferral_code: code } = await c.deferred();
        await c.poll("asker", code);
        return c.poll("asker", code);
      },
      refused("slow_down"),
    ],
    [
      "deferral.unknown-code",
      "DTR-6.5-1",
      "A code that is not known is invalid_grant.",
      (c) => c.poll("asker", "suite-unknown-code"),
      refused("invalid_grant"),
    ],
    [
      "deferral.other-client",
      "DTR-6.5-1",
      "The code of another client is invalid_grant.",
      async (c) => c.poll("planner", (await c.deferred()).deferral_code),
      refused("invalid_grant"),
    ],
    [
      "deferral.untold",
      "DTR-6.6-2",
      "A code that is not known and one of another client are answered alike.",
      async (c) => c.poll("planner", (await c.deferred()).deferral_code),
      that("the same answer", async (answer, c) => {
        const unknown = await c.poll("planner", "suite-unknown-code");
        return answer.status === unknown.status && answer.text === unknown.text;
      }),
    ],
    [
      "deferral.mode-in-poll",
      "DTR-6.5-4",
      "A poll with completion_mode is invalid_request.",
      async (c) => c.poll("asker", (await c.deferred()).deferral_code, { completion_mode: "deferred" }),
      refused("invalid_request"),
    ],
    [
      "deferral.cancelled",
      "DTR-8.2-1",
      "A poll after its client cancelled is access_denied.",
      (c) => cancelled(c, "asker"),
      refused("access_denied"),
      { needs: ["deferral", "delegation", "revocation"] },
    ],
    [
      "deferral.cancelled-by-another",
      "DTR-8.2-2",
      "Another client cancels nothing.",
      (c) => cancelled(c, "planner"),
      refused("interaction_required", "authorization_pending"),
      { needs: ["deferral", "delegation", "revocation"] },
    ],
    [
      "deferral.other-key",
      "DTR-11.1-2",
      "A poll without the key of the first request is refused.",
      async (c) => {
        const { deferral_code: code } = await c.deferred({}, { headers: { dpop: c.proof() } });
        return c.poll("asker", code);
      },
      refused("invalid_dpop_proof", "invalid_grant"),
      { needs: ["deferral", "delegation", "dpop"] },
    ],
  ],
);
