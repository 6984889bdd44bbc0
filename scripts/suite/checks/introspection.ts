/** RFC 7662: what an API is told of tokens, and what is told to no other caller. */
import type { Context } from "../context.ts";
import type { Json } from "../keys.ts";
import { CannotAsk } from "../parties.ts";
import { area } from "../table.ts";
import { answers, isActive, isInactive, refused, scopesOf, status, that } from "../verdicts.ts";

const mine = async (c: Context): Promise<string> => c.tokenOf(c.clientCredentials("machine"));

/** The sixth letter from the end is changed: the last one of a signature may have unused bits. */
const withOtherSignature = (token: string): string =>
  `${token.slice(0, -6)}${token.at(-6) === "A" ? "B" : "A"}${token.slice(-5)}`;

export const introspection = area(
  "introspection",
  { needs: ["introspection"], basis: "introspection.active" },
  [
    [
      "introspection.active",
      "RFC7662-2.2-1",
      "The API of a token is told that it is active.",
      async (c) => c.introspect("gate", await mine(c)),
      isActive,
      { basis: "token.credentials" },
    ],
    [
      "introspection.members",
      "RFC7662-2.2-2",
      "scope is a text, exp a number.",
      async (c) => c.introspect("gate", await mine(c)),
      answers(
        "both",
        ({ scope, exp }, _, c) =>
          typeof scope === "string" && scopesOf(scope).includes(c.names.read) && Number.isInteger(exp),
      ),
    ],
    [
      "introspection.client",
      "RFC7662-2.2-2",
      "client_id is that of the client.",
      async (c) => c.introspect("gate", await mine(c)),
      answers("client_id", (body, _, c) => body.client_id === c.roles.machine.id),
    ],
    [
      "introspection.hint",
      "RFC7662-2.1-4",
      "A wrong token_type_hint does not hide a token.",
      async (c) => c.introspect("gate", await mine(c), { token_type_hint: "refresh_token" }),
      isActive,
    ],
    [
      "introspection.unknown-hint",
      "RFC7662-2.1-5",
      "A token_type_hint that is not known is ignored.",
      async (c) => c.introspect("gate", await mine(c), { token_type_hint: "suite" }),
      isActive,
    ],
    [
      "introspection.unknown",
      "RFC7662-2.2-6",
      "A token that is not known is not active, and nothing more is told.",
      (c) => c.introspect("gate", "suite-unknown-token"),
      isInactive,
    ],
    [
      "introspection.tampered",
      "RFC7662-4-5",
      "A token with a changed signature is not active.",
      async (c) => {
        return c.introspect("gate", withOtherSignature(await mine(c)));
      },
      isInactive,
    ],
    [
      "introspection.other-api",
      "RFC7662-4-6",
      "An API that the token is not for is told nothing.",
      async (c) => c.introspect("elsewhere", await mine(c)),
      isInactive,
    ],
    [
      "introspection.no-token",
      "RFC7662-2.1-2",
      "A request without token is invalid_request.",
      (c) => c.asClient("introspection_endpoint", "gate", {}),
      refused("invalid_request"),
    ],
    [
      "introspection.unauthenticated",
      "RFC7662-2.1-8",
      "A caller without credentials is told nothing.",
      async (c) => c.post("introspection_endpoint", { token: await mine(c) }),
      that(
        "a status of 4xx with an error",
        ({ status: got, body }) => got >= 400 && got < 500 && body.active === undefined,
      ),
    ],
    [
      "introspection.wrong-secret",
      "RFC7662-2.3-1",
      "A caller with a wrong secret is 401.",
      async (c) =>
        c.introspect({ ...c.roles.gate, secret: "wrong-secret-wrong-secret-wrong-1" }, await mine(c)),
      status(401),
    ],
    [
      "introspection.act",
      "RFC8693-4.1-8",
      "act is told as it stands in the token.",
      async (c) => {
        const asked = c.exchange("planner", { resource: c.names.api, scope: c.names.read });
        const answer = await c.introspect("gate", await c.tokenOf(asked));
        if (answer.body.active === false) throw new CannotAsk("the API is told nothing of such a token");
        return answer;
      },
      answers("act.sub", ({ act }, _, c) => (act as Json | undefined)?.sub === c.roles.planner.id),
      { needs: ["introspection", "delegation"] },
    ],
    [
      "introspection.user-token",
      "RFC7662-2.2-6",
      "A token of another issuer is not active.",
      (c) => c.introspect("gate", c.anyUserToken()),
      isInactive,
    ],
  ],
);

const chained = {
  needs: ["revocation", "ancestors", "introspection", "delegation", "nesting"] as const,
  basis: "revocation.own",
};

export const revocation = area(
  "revocation",
  { needs: ["revocation", "introspection"], basis: "revocation.own" },
  [
    [
      "revocation.own",
      "RFC7009-2.1-8",
      "A token that its client revoked is not active any more, at once.",
      async (c) => {
        const token = await mine(c);
        await c.revoke("machine", token);
        return c.introspect("gate", token);
      },
      isInactive,
      { basis: "introspection.active" },
    ],
    [
      "revocation.answer",
      "RFC7009-2.2-1",
      "A revocation is answered with 200.",
      async (c) => c.revoke("machine", await mine(c)),
      status(200),
    ],
    [
      "revocation.unknown",
      "RFC7009-2.2-1",
      "So is that of a token that is not known.",
      (c) => c.revoke("machine", "suite-unknown-token"),
      status(200),
    ],
    [
      "revocation.twice",
      "RFC7009-2.2-1",
      "So is a second one.",
      async (c) => {
        const token = await mine(c);
        await c.revoke("machine", token);
        return c.revoke("machine", token);
      },
      status(200),
    ],
    [
      "revocation.hint",
      "RFC7009-2.2-3",
      "A hint that is not known is ignored.",
      async (c) => c.revoke("machine", await mine(c), { token_type_hint: "suite" }),
      status(200),
    ],
    [
      "revocation.of-another",
      "RFC7009-2.1-7",
      "A client does not revoke the token of another.",
      async (c) => {
        const token = await mine(c);
        await c.revoke("second", token);
        return c.introspect("gate", token);
      },
      isActive,
    ],
    [
      "revocation.no-token",
      "RFC7009-2.1-2",
      "A request without token is invalid_request.",
      (c) => c.revoke("machine", undefined),
      refused("invalid_request"),
    ],
    [
      "revocation.unauthenticated",
      "RFC7009-2.1-6",
      "A caller without credentials revokes nothing.",
      async (c) => {
        const token = await mine(c);
        await c.post("revocation_endpoint", { token });
        return c.introspect("gate", token);
      },
      isActive,
    ],
    [
      "revocation.tampered",
      "RFC7009-2.1-7",
      "A token with a changed signature revokes nothing.",
      async (c) => {
        const token = await mine(c);
        await c.revoke("machine", withOtherSignature(token));
        return c.introspect("gate", token);
      },
      isActive,
    ],
    [
      "revocation.descendants",
      "RFC8693-2.1-25",
      "With a token end those that came of it, two exchanges later, too.",
      async (c) => {
        const [first, , third] = await c.chain();
        await c.revoke("planner", first);
        return c.introspect("gate", third);
      },
      isInactive,
      chained,
    ],
    [
      "revocation.child",
      "RFC8693-2.1-25",
      "The token that came of it directly has ended as well.",
      async (c) => {
        const [first, second] = await c.chain();
        await c.revoke("planner", first);
        return c.introspect("gate", second);
      },
      isInactive,
      chained,
    ],
    [
      "revocation.ancestor",
      "RFC7009-2.1-9",
      "The token that one came of does not end with it.",
      async (c) => {
        const [first, second] = await c.chain();
        await c.revoke("booking", second);
        return c.introspect("gate", first);
      },
      isActive,
      chained,
    ],
    [
      "revocation.sibling",
      "RFC7009-2.1-9",
      "Other tokens of the client go on.",
      async (c) => {
        const [first] = await c.chain();
        const [other] = await c.chain();
        await c.revoke("planner", first);
        return c.introspect("gate", other);
      },
      isActive,
      chained,
    ],
    [
      "revocation.no-exchange",
      "RFC7662-4-4",
      "A token that has ended is not exchanged.",
      async (c) => {
        const first = await c.tokenOf(c.exchange("planner"));
        await c.revoke("planner", first);
        return c.onward("booking", first, c.names.crew);
      },
      refused("invalid_request", "invalid_grant"),
      chained,
    ],
    [
      "revocation.descendant-exchange",
      "RFC8693-2.1-25",
      "Neither is one whose ancestor has ended.",
      async (c) => {
        const first = await c.tokenOf(c.exchange("planner"));
        const second = await c.tokenOf(c.onward("booking", first, c.names.crew));
        await c.revoke("planner", first);
        return c.onward("crew", second, c.names.api);
      },
      refused("invalid_request", "invalid_grant"),
      chained,
    ],
  ],
);
