/** Chains of actors, tokens without an actor, and may_act. */
import { type Context, JWT } from "../context.ts";
import type { Answer } from "../http.ts";
import { claimsOf, type Json, seconds } from "../keys.ts";
import { area } from "../table.ts";
import { issues, notGiven, refused, scopesOf, that } from "../verdicts.ts";

const actOf = ({ act }: Json): Json => (act ?? {}) as Json;
const nested = { needs: ["delegation", "nesting"] as const };
const nextHop = async (c: Context, form = {}): Promise<Answer> =>
  c.onward("booking", await c.tokenOf(c.exchange("planner")), c.names.crew, form);

export const nesting = area("nesting", { ...nested, basis: "nesting.two" }, [
  [
    "nesting.two",
    "RFC8693-4.1-5",
    "A second actor stands outside the first.",
    (c) => nextHop(c),
    issues(
      "act is the second actor, and act.act the first",
      (claims, c) =>
        actOf(claims).sub === c.roles.booking.id && actOf(actOf(claims)).sub === c.roles.planner.id,
    ),
    { basis: "exchange.delegation" },
  ],
  [
    "nesting.three",
    "RFC8693-4.1-5",
    "Three actors stand in the order in which they acted, the last outermost.",
    async (c) => {
      const second = await c.tokenOf(nextHop(c));
      return c.onward("crew", second, c.names.api);
    },
    issues("act of crew, booking, planner", (claims, { roles }) => {
      const [one, two, three] = [actOf(claims), actOf(actOf(claims)), actOf(actOf(actOf(claims)))];
      return (
        one.sub === roles.crew.id &&
        two.sub === roles.booking.id &&
        three.sub === roles.planner.id &&
        three.act === undefined
      );
    }),
  ],
  [
    "nesting.subject",
    "RFC8693-1.1-3",
    "The subject stays the user.",
    async (c) => {
      const first = await c.tokenOf(c.exchange("planner"));
      return c.onward("booking", first, c.names.crew);
    },
    issues(
      "sub is none of the actors",
      ({ sub }, { roles }) => typeof sub === "string" && ![roles.planner.id, roles.booking.id].includes(sub),
    ),
  ],
  [
    "nesting.scope",
    "PROD-2.6-6",
    "A second exchange does not bring back scope.",
    async (c) => {
      const first = await c.tokenOf(c.exchange("planner", { scope: c.names.read }));
      return c.onward("booking", first, c.names.crew, { scope: `${c.names.read} ${c.names.write}` });
    },
    that("400, or a token without that scope", async ({ status, body }, c) =>
      status === 200
        ? !scopesOf((await c.read(body.access_token)).scope).includes(c.names.write)
        : status === 400,
    ),
  ],
  [
    "nesting.lifetime",
    "RFC8693-2.1-24",
    "A second token does not outlive the first.",
    async (c) => {
      const first = await c.tokenOf(
        c.exchange("planner", { subject_token: c.userToken({ claims: { exp: seconds() + 90 } }) }),
      );
      return c.onward("booking", first, c.names.crew);
    },
    issues("exp within 90 s", ({ exp }) => typeof exp === "number" && exp <= seconds() + 91),
  ],
  [
    "nesting.own-as-jwt",
    "RFC8693-D-1",
    "A token of the server is taken as jwt, too, or refused.",
    (c) => nextHop(c, { subject_token_type: JWT }),
    that(
      "400, or a token with both actors",
      async ({ status, body }, c) =>
        status === 400 || actOf(actOf(await c.read(body.access_token))).sub === c.roles.planner.id,
    ),
  ],
  [
    "nesting.not-meant",
    "PROD-2.6-5",
    "A token that is for another API is not exchanged by an agent that is not its audience.",
    async (c) => c.onward("crew", await c.tokenOf(c.exchange("planner")), c.names.api),
    notGiven,
  ],
  [
    "nesting.chain-kept",
    "RFC8693-2.1-4",
    "An actor does not drop those before it by leaving out its actor_token.",
    async (c) => {
      const first = await c.tokenOf(c.exchange("planner"));
      return c.onward("booking", first, c.names.crew, {
        actor_token: undefined,
        actor_token_type: undefined,
      });
    },
    that("400, or a token with act", async ({ status, body }, c) =>
      status === 200 ? actOf(await c.read(body.access_token)).sub !== undefined : status === 400,
    ),
  ],
  [
    "nesting.tampered",
    "RFC8693-2.1-20",
    "A token of the server with another payload is refused.",
    async (c) => {
      const [head, body, signature] = (await c.tokenOf(c.exchange("planner"))).split(".");
      const claims = { ...claimsOf(`${head}.${body}.`), act: undefined };
      const forged = Buffer.from(JSON.stringify(claims)).toString("base64url");
      return c.onward("booking", `${head}.${forged}.${signature}`, c.names.crew);
    },
    refused("invalid_request", "invalid_grant"),
    { ...nested, needs: [...nested.needs, "jwt_access_tokens"] },
  ],
]);

export const impersonation = area(
  "impersonation",
  { needs: ["impersonation"], basis: "impersonation.good" },
  [
    [
      "impersonation.good",
      "PROD-4.1-8",
      "A client with that right gets a token of the user without act.",
      (c) => c.impersonate("crew"),
      issues(
        "sub is the user, and there is no act",
        ({ sub, act }, c) => typeof sub === "string" && sub !== c.roles.crew.id && act === undefined,
      ),
      { basis: undefined },
    ],
    [
      "impersonation.client",
      "RFC8693-4.3-1",
      "client_id is the client that asked.",
      (c) => c.impersonate("crew"),
      issues("client_id is the client", ({ client_id: id }, c) => id === c.roles.crew.id),
    ],
    [
      "impersonation.type-alone",
      "RFC8693-2.1-19",
      "An actor_token_type without token is invalid_request, also where no actor is needed.",
      (c) => c.impersonate("crew", { actor_token_type: JWT }),
      refused("invalid_request"),
    ],
    [
      "impersonation.without-right",
      "RFC8693-2.1-4",
      "A client that may only delegate does not impersonate.",
      (c) => c.impersonate("planner"),
      notGiven,
    ],
    [
      "impersonation.scope",
      "PROD-2.6-6",
      "Scope beyond that right is not given.",
      (c) => c.impersonate("crew", { scope: `${c.names.read} ${c.names.write}` }),
      that("400, or a token without that scope", async ({ status, body }, c) =>
        status === 200
          ? !scopesOf((await c.read(body.access_token)).scope).includes(c.names.write)
          : status === 400,
      ),
    ],
  ],
);

const named = (c: Context, mayAct: unknown): Promise<Answer> =>
  c.exchange("planner", {
    ...{ resource: c.names.other, scope: c.names.read },
    subject_token: c.userToken({ claims: { may_act: mayAct } }),
  });
export const mayAct = area("may_act", { needs: ["delegation", "may_act"], basis: "may-act.named" }, [
  [
    "may-act.named",
    "RFC8693-4.4-1",
    "The party that may_act names may act for the subject.",
    (c) => named(c, { sub: c.roles.planner.id }),
    issues("act.sub is that party", (claims, c) => actOf(claims).sub === c.roles.planner.id),
    { basis: undefined },
  ],
  [
    "may-act.other",
    "RFC8693-4.4-2",
    "Another party may not.",
    (c) => named(c, { sub: c.roles.crew.id }),
    notGiven,
  ],
  [
    "may-act.absent",
    "RFC8693-4.4-2",
    "Where may_act decides, a token without it permits nothing.",
    (c) => named(c, undefined),
    notGiven,
  ],
  [
    "may-act.times",
    "RFC8693-4.4-3",
    "exp inside of may_act has no meaning.",
    (c) => named(c, { sub: c.roles.planner.id, exp: 1 }),
    issues("act.sub is that party", (claims, c) => actOf(claims).sub === c.roles.planner.id),
  ],
  [
    "may-act.text",
    "RFC8693-4.4-1",
    "A may_act that is no object names no party.",
    (c) => named(c, c.roles.planner.id),
    notGiven,
  ],
  [
    "may-act.issuer",
    "RFC8693-4.4-1",
    "A party of another issuer is another party.",
    (c) => named(c, { sub: c.roles.planner.id, iss: "https://other.example" }),
    notGiven,
  ],
]);
