/** Shared signals: what receivers are told of tokens that end, and what events of a provider end. */
import type { Context } from "../context.ts";
import type { Answer } from "../http.ts";
import {
  claimsOf,
  headerOf,
  isSignedBy,
  type Json,
  makeKey,
  randomId,
  seconds,
  withBadSignature,
} from "../keys.ts";
import type { Changes } from "../minted.ts";
import { area, type Row } from "../table.ts";
import { isActive, isInactive, status, that } from "../verdicts.ts";

const CAEP = "https://schemas.openid.net/secevent/caep/event-type";
const RISC = "https://schemas.openid.net/secevent/risc/event-type";
const REVOKED = `${CAEP}/session-revoked`;

/** The event of a token that its client revoked, as an answer whose body is its claims. */
async function askTold(c: Context): Promise<Answer> {
  const token = await c.tokenOf(c.clientCredentials("machine"));
  const answer = await c.revoke("machine", token);
  const { jti } = await c.read(token);
  const set = await c.awaitEvent(({ sub_id: subject }) => (subject as Json | undefined)?.jti === jti);
  const headers = { authorization: set.authorization, signed: set.body };
  c.exchanged.push({ sent: "(waits for an event)", received: JSON.stringify(claimsOf(set.body)) });
  return { ...answer, headers, body: claimsOf(set.body) };
}
/** Asked once, since each event takes its time. */
const told = (c: Context): Promise<Answer> => {
  const asked = ASKED.get(c) ?? askTold(c);
  ASKED.set(c, asked);
  return asked;
};
const ASKED = new WeakMap<Context, Promise<Answer>>();
const eventsOf = ({ events }: Json): Json => (events ?? {}) as Json;
const tells = (wants: string, holds: (set: Json, c: Context, headers: Answer["headers"]) => boolean) =>
  that(`an event in which ${wants}`, ({ body, headers }, c) => holds(body, c, headers));

export const signalsSent = area(
  "security events, sent",
  { needs: ["signals_sent", "revocation", "jwt_access_tokens"], basis: "signal.sent" },
  [
    [
      "signal.sent",
      "CAEP-3.1-1",
      "The receiver is told of a token that was revoked.",
      told,
      tells("there is session-revoked", (set) => REVOKED in eventsOf(set)),
      { basis: "token.credentials" },
    ],
    [
      "signal.typ",
      "RFC8725-3.11-1",
      "Its typ is secevent+jwt.",
      told,
      tells("typ is secevent+jwt", (_, __, { signed }) => headerOf(signed).typ === "secevent+jwt"),
    ],
    [
      "signal.issuer",
      "SSF-4.1-1",
      "iss is the issuer.",
      told,
      tells("iss is the issuer", ({ iss }, c) => iss === c.server.issuer),
    ],
    [
      "signal.audience",
      "SSF-4.1-2",
      "aud is the receiver.",
      told,
      tells("aud is the receiver alone", ({ aud }, c) => [aud].flat().join() === c.scene.receiver.audience),
    ],
    [
      "signal.authorization",
      "SSF-6.1-1",
      "The push has the Authorization that the receiver set.",
      told,
      tells(
        "the field is there",
        (_, c, { authorization }) => authorization === c.scene.receiver.authorization,
      ),
    ],
    [
      "signal.subject",
      "SSF-3.1-1",
      "sub_id names the token alone.",
      told,
      tells(
        "sub_id is in a format",
        ({ sub_id: subject }) => typeof (subject as Json | undefined)?.format === "string",
      ),
    ],
    [
      "signal.jti",
      "SSF-D-2",
      "jti and iat are there.",
      told,
      tells("they are", ({ jti, iat }) => typeof jti === "string" && typeof iat === "number"),
    ],
    [
      "signal.reason",
      "CAEPI-3-1",
      "The event has reason_admin.",
      told,
      tells(
        "there is a reason_admin",
        (set) => typeof (eventsOf(set)[REVOKED] as Json | undefined)?.reason_admin === "object",
      ),
    ],
    [
      "signal.timestamp",
      "CAEP-3.1-1",
      "event_timestamp is the time of revocation.",
      told,
      tells(
        "it is iat, to 60 s",
        (set) =>
          Math.abs(Number((eventsOf(set)[REVOKED] as Json | undefined)?.event_timestamp) - Number(set.iat)) <=
          60,
      ),
    ],
    [
      "signal.no-exp",
      "SSF-D-4",
      "There is no exp, nor a token.",
      told,
      tells("no exp", ({ exp, sub }) => exp === undefined && sub === undefined),
    ],
    [
      "signal.signed",
      "SSF-7.1-1",
      "It is signed by a published key.",
      told,
      that("such a signature", async ({ headers }, c) => {
        const { body } = await c.get(c.endpoint("jwks_uri"));
        return isSignedBy(headers.signed ?? "", Array.isArray(body.keys) ? body.keys : []);
      }),
    ],
    [
      "signal.metadata",
      "SSF-7.2-1",
      "The metadata of the transmitter are at their well-known path.",
      (c) =>
        c.get(
          `${new URL(c.server.issuer).origin}/.well-known/ssf-configuration${new URL(c.server.issuer).pathname.replace(/\/$/, "")}`,
        ),
      that(
        "200 and the same issuer",
        ({ status: got, body }, c) => got === 200 && body.issuer === c.server.issuer,
      ),
    ],
  ],
);

/** A token of a user, after an event; what introspection then says. */
async function afterEvent(
  c: Context,
  sub: string,
  setOf: (sub: string) => string,
  wanted = 202,
): Promise<Answer> {
  const token = await c.tokenOf(
    c.exchange("planner", {
      resource: c.names.api,
      scope: c.names.read,
      subject_token: c.userToken({ claims: { sub } }),
    }),
  );
  const { status: got } = await c.push(setOf(sub));
  if (wanted === 202 && got !== 202)
    return { status: got, headers: {}, body: {}, text: "the event was not taken" };
  return c.introspect("gate", token);
}
const refusedEvent = that(
  "400 with err, in JSON",
  ({ status: got, body }) => got === 400 && typeof body.err === "string",
);
const wrong = (id: string, clause: string, what: string, changes: (c: Context) => Changes): Row => [
  `event.${id}`,
  clause,
  `An event ${what} is refused with 400 and err.`,
  (c) => c.push(c.event(REVOKED, "bob", changes(c))),
  refusedEvent,
];
const without = (id: string, clause: string, what: string, setOf: (c: Context) => string): Row => [
  `event.${id}`,
  clause,
  `An event ${what} ends nothing.`,
  (c) => afterEvent(c, "bob", () => setOf(c), 0),
  isActive,
];

const received = {
  needs: ["signals_received", "delegation", "introspection"] as const,
  basis: "event.taken",
};
export const signalsReceived = area("security events, received", received, [
  [
    "event.taken",
    "RFC8935-2-2",
    "An event of the provider is answered with 202.",
    (c) => c.push(c.event(REVOKED, "frank")),
    status(202),
    { basis: undefined },
  ],
  [
    "event.repeated",
    "RFC8935-2-3",
    "The same event is answered like the first time.",
    async (c) => {
      const set = c.event(REVOKED, "frank");
      await c.push(set);
      return c.push(set);
    },
    status(202),
  ],
  [
    "event.unknown",
    "SSF-4.2-2",
    "An event that is not known is answered with 202.",
    (c) => c.push(c.event("https://suite.example/event", "frank")),
    status(202),
  ],
  wrong("other-key", "RFC8935-2.4-1", "by another key", (c) => ({ key: makeKey(c.scene.idp.key.kid) })),
  wrong("other-issuer", "RFC8935-2.4-1", "of an issuer that is not trusted", (c) => ({
    claims: { iss: c.scene.untrusted.issuer },
    key: c.scene.untrusted.key,
  })),
  wrong("other-audience", "RFC8935-2.4-1", "for another receiver", () => ({
    claims: { aud: "https://other-server.example" },
  })),
  wrong("typ", "RFC8725-3.12-1", "of another type", () => ({ header: { typ: "JWT" } })),
  wrong("no-events", "RFC8935-2.4-1", "without events", () => ({ claims: { events: undefined } })),
  wrong("format", "PCL-D-16", "about a subject in a format that is not known", () => ({
    claims: { sub_id: { format: "suite", id: "bob" } },
  })),
  [
    "event.bad-signature",
    "RFC8935-2.4-1",
    "An event with a bad signature is refused.",
    (c) => c.push(withBadSignature(c.event(REVOKED, "bob"))),
    refusedEvent,
  ],
  ["event.garbage", "RFC8935-2.4-1", "What is no JWT is refused.", (c) => c.push("suite"), refusedEvent],
  without("forged", "RFC8935-2.4-1", "by another key", (c) =>
    c.event(REVOKED, "bob", { key: makeKey(c.scene.idp.key.kid) }),
  ),
  without("of-another-user", "SSF-3.1-1", "about another user", (c) => c.event(REVOKED, "frank")),
  without("about-another-issuer", "SSF-D-6", "about a user of another issuer", (c) =>
    c.event(REVOKED, "bob", {
      claims: { sub_id: { format: "iss_sub", iss: c.scene.partner.issuer, sub: "bob" } },
    }),
  ),
  without("old", "CAEP-3.1-1", "about what began before the token", (c) =>
    c.event(REVOKED, "bob", {
      claims: {
        jti: randomId(),
        events: { [REVOKED]: { event_timestamp: seconds() - 86_400 } },
      },
    }),
  ),
  [
    "event.session-revoked",
    "CAEP-3.1-2",
    "With session-revoked the tokens of the user end.",
    (c) => afterEvent(c, "carol", (sub) => c.event(REVOKED, sub)),
    isInactive,
  ],
  [
    "event.credential-change",
    "SSF-D-6",
    "A credential that was taken away ends them, too.",
    (c) =>
      afterEvent(c, "dave", (sub) =>
        c.event(`${CAEP}/credential-change`, sub, {
          claims: {
            events: {
              [`${CAEP}/credential-change`]: {
                event_timestamp: seconds(),
                credential_type: "password",
                change_type: "revoke",
              },
            },
          },
        }),
      ),
    isInactive,
  ],
  [
    "event.account-disabled",
    "SSF-D-8",
    "So does account-disabled.",
    (c) => afterEvent(c, "erin", (sub) => c.event(`${RISC}/account-disabled`, sub)),
    isInactive,
  ],
  [
    "event.kept-out",
    "SSF-D-8",
    "The user is then kept out.",
    (c) => c.exchange("planner", { subject_token: c.userToken({ claims: { sub: "erin" } }) }),
    that(
      "a status of 4xx with an error",
      ({ status: got, body }) => got >= 400 && got < 500 && typeof body.error === "string",
    ),
    { basis: "event.account-disabled" },
  ],
]);
