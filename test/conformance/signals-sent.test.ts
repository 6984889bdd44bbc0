/** Security events for receivers over TLS: what each is told of an ending, how often, and what a failing one costs. */
import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { createRemoteJWKSet, customFetch, decodeProtectedHeader, type JWTPayload, jwtVerify } from "jose";
import { type Answer, basic, send } from "../../scripts/http-client.ts";
import { stop } from "../support/stop.ts";
import { until } from "../support/until.ts";
import { fetchAt, startWebServer, type WebServer } from "../support/web.ts";
import {
  ACCESS_TOKEN,
  claimsOf,
  type Event,
  EXCHANGE,
  IDP,
  ISSUER,
  JWT,
  makeWorld,
  type World,
  workload,
} from "../support/world.ts";

const SECRET = "signals-signals-signals-1234567890";
const HOPS = ["planner", "booking", "crew"];
const agent = (name: string): string => workload(`agents/${name}`);
const scopes = ["trips.read"];
const REVOKED = "https://schemas.openid.net/secevent/caep/event-type/session-revoked";
const VERIFICATION = "https://schemas.openid.net/secevent/ssf/event-type/verification";

/** A receiver, which answers as the test says. */
type Receiver = WebServer & {
  got: { set: string; headers: Headers }[];
  answer: () => Response | Promise<Response>;
};

const taken = (): Response => new Response(null, { status: 202 });

async function startReceiver(): Promise<Receiver> {
  const receiver: Pick<Receiver, "got" | "answer"> = { got: [], answer: taken };
  const server = await startWebServer(async (request) => {
    const set = await request.text();
    receiver.got.push({ set, headers: request.headers });
    return receiver.answer();
  });
  return Object.assign(receiver, server);
}

let world: World;
let booking: Receiver;
let crew: Receiver;
before(async () => {
  [booking, crew] = await Promise.all([startReceiver(), startReceiver()]);
  const streamOf = (name: string, { origin }: WebServer) => ({
    ...{ audience: `https://${name}.example`, targets: [name], url: `${origin}/events` },
    ...{ ca: { file: `${name}.pem` }, privateNetworks: ["127.0.0.0/8", "::1/128"] },
  });
  const configuration = {
    operations: { host: "127.0.0.1", port: 0 },
    clients: { desk: { method: "client_secret_basic", secrets: [SECRET] } },
    targets: HOPS.map((name) => ({ names: [name], owners: [agent(name)], scopes })),
    signals: {
      streams: {
        booking: { ...streamOf("booking", booking), authorization: "Bearer of-the-stream" },
        crew: streamOf("crew", crew),
        // Its certificate is that of another authority.
        impostor: {
          ...{ ...streamOf("crew", crew), audience: "https://impostor.example" },
          ca: { file: "booking.pem" },
        },
      },
    },
    policies: [
      {
        ...{ id: "desk", allow: "client_credentials", clients: ["desk"] },
        ...{ targets: [`${ISSUER}/api`], scopes: ["token:revoke"] },
      },
      {
        ...{ id: "hops", allow: "delegation", actors: HOPS.map(agent), subjects: { issuers: [IDP] } },
        ...{ subjectToken: { audiences: [ISSUER, "self"] }, consent: "record", targets: HOPS, scopes },
      },
    ],
  };
  const files = { "booking.pem": booking.ca, "crew.pem": crew.ca };
  world = await makeWorld(configuration, { clock: true, files });
  for (const sub of ["alice", "bob", "carol", "dave", "erin"]) {
    for (const name of HOPS) {
      for (const target of HOPS) await world.consent(sub, `agents/${name}`, target, scopes);
    }
  }
});
after(() => stop(world, booking, crew));

async function exchange(name: string, audience: string, sub: string, subject?: string): Promise<string> {
  const svid = await world.svid(`agents/${name}`, { expSeconds: world.passed() + 300 });
  const seconds = Math.floor(world.nowMs() / 1000);
  const claims = { iat: seconds, exp: seconds + 600 };
  const user = () => world.idp.mintUserToken({ sub, aud: ISSUER, scope: scopes.join(" "), claims });
  const { status, body, text } = await world.token({
    ...{ grant_type: EXCHANGE, subject_token: subject ?? (await user()), actor_token: svid },
    ...{ subject_token_type: subject === undefined ? JWT : ACCESS_TOKEN, actor_token_type: JWT, audience },
    ...world.as(svid),
  });
  assert.equal(status, 200, text);
  return String(body.access_token);
}

const jtiOf = (token: string): string => String(claimsOf(token).jti);

async function order(body: object): Promise<Answer> {
  const form = { grant_type: "client_credentials", audience: `${ISSUER}/api`, scope: "token:revoke" };
  const { body: issued } = await world.token(form, { authorization: basic("desk", SECRET) });
  const answer = await send(`${ISSUER}/revocations`, {
    ...{ method: "POST", ca: world.ca, connect: { host: "127.0.0.1", port: world.server.port } },
    headers: { authorization: `Bearer ${issued.access_token}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  assert.equal(answer.status, 200, answer.text);
  return answer;
}

type Set = {
  jti: string;
  txn?: string;
  sub_id: Record<string, string>;
  events: Record<string, Record<string, unknown>>;
};

const setsOf = ({ got }: Receiver): Set[] => got.map(({ set }) => claimsOf(set) as unknown as Set);
/** Those about endings. */
const revoked = (receiver: Receiver): Set[] => setsOf(receiver).filter(({ events }) => REVOKED in events);
const subjectsOf = (receiver: Receiver) => revoked(receiver).map(({ sub_id }) => sub_id);
const clear = (...receivers: Receiver[]): void => {
  for (const one of receivers) Object.assign(one, { got: [], answer: taken });
};
/** The time by which a change is waited for. */
const told = (receiver: Receiver, count: number): Promise<void> =>
  until(() => revoked(receiver).length >= count, `${count} events`);

suite("a receiver is told of a token that ended", () => {
  let token = "";
  let body: Record<string, unknown> = {};
  let sent: Receiver["got"][0];
  let payload: JWTPayload = {};
  let typ: unknown;
  before(async () => {
    clear(booking, crew);
    token = await exchange("planner", "booking", "alice");
    ({ body } = await order({ token: jtiOf(token) }));
    await told(booking, 1);
    sent =
      booking.got.find(({ set }) => REVOKED in (claimsOf(set).events as object)) ?? assert.fail("no event");
    ({ typ } = decodeProtectedHeader(sent.set));
    payload = claimsOf(sent.set);
  });
  const event = () => (payload.events as Record<string, Record<string, unknown>>)[REVOKED];

  test("RFC8935-2.1-1, SSF-6.1-1 it comes as a push of its type, with the authorization of its stream", () => {
    assert.deepEqual(body.streams, ["booking"]);
    assert.equal(sent.headers.get("content-type"), "application/secevent+jwt");
    assert.equal(sent.headers.get("accept"), "application/json");
    assert.equal(sent.headers.get("authorization"), "Bearer of-the-stream");
  });

  test("RFC8417-5.1-3, SSF-4.1-1, SSF-4.1-2, RFC8417-2.2-3 a library that is not ours verifies signature, issuer and audience", async () => {
    const at = fetchAt({ "as.example": { ca: world.ca, port: world.server.port } });
    const keys = createRemoteJWKSet(new URL(`${ISSUER}/jwks`), { [customFetch]: at as never });
    const { protectedHeader } = await jwtVerify(sent.set, keys, {
      ...{ issuer: ISSUER, audience: "https://booking.example", typ: "secevent+jwt" },
      currentDate: new Date(world.nowMs()),
    });
    assert.equal(protectedHeader.alg, "ES256");
    assert.equal(payload.aud, "https://booking.example");
  });

  test("SSF-4-1, RFC8417-2.3-1, RFC8417-2.3-2 it has the type of a security event", () => {
    assert.equal(typ, "secevent+jwt");
  });

  test("SSF-4-3, RFC8417-2.2-4, RFC8417-4-1, RFC8417-2.2-1, RFC8417-2-3 its claims are those of an event, without the sub and exp of other tokens", () => {
    assert.deepEqual(Object.keys(payload).sort(), ["aud", "events", "iat", "iss", "jti", "sub_id", "txn"]);
  });

  test("SSF-4-2, RFC9493-3-1 its subject is the token, in the members of that format", () => {
    assert.deepEqual(payload.sub_id, { format: "jwt_id", iss: ISSUER, jti: jtiOf(token) });
  });

  test("SSF-4-4, RFC8417-2.2-7, RFC8417-2-4, RFC8417-2.2-5 it has one event, whose cause is that of the trail", () => {
    assert.equal(payload.txn, body.event);
    assert.equal(Object.keys(payload.events as object).length, 1);
  });

  test("RFC8417-2-1, RFC8417-2-2, RFC8417-2.2-6 its events are an object by the URI of their type", () => {
    assert.deepEqual(Object.keys(payload.events as object), [REVOKED]);
    assert.equal(typeof event(), "object");
  });

  test("CAEP-2-1, CAEPI-3-1 the event says who began it, and why in one language", () => {
    assert.equal(event()?.initiating_entity, "admin");
    assert.deepEqual(event()?.reason_admin, { en: "by_administrator" });
  });
});

test("SSF-9-1, SSF-D-3, RFC8417-6-1, RFC9493-3-2 a receiver is told of tokens for its own targets, descendants among them, and of no other", async () => {
  clear(booking, crew);
  const first = await exchange("planner", "booking", "alice");
  const second = await exchange("booking", "crew", "alice", first);
  await exchange("planner", "booking", "bob");
  const { body } = await order({ token: jtiOf(first) });
  assert.deepEqual(body.streams, ["booking", "crew", "impostor"]);
  await Promise.all([told(booking, 1), told(crew, 1)]);
  assert.deepEqual(subjectsOf(booking), [{ format: "jwt_id", iss: ISSUER, jti: jtiOf(first) }]);
  assert.deepEqual(subjectsOf(crew), [{ format: "jwt_id", iss: ISSUER, jti: jtiOf(second) }]);
});

test("SSF-3.1-1, SSF-D-3, RFC8417-3-1, RFC9493-3.2.3-1 a subject that ended is told as one, with the cut-off", async () => {
  clear(booking, crew);
  const token = await exchange("planner", "booking", "carol");
  const { body } = await order({ subject: { iss: IDP, sub: "carol" } });
  await told(booking, 1);
  assert.deepEqual(subjectsOf(booking), [{ format: "iss_sub", iss: ISSUER, sub: claimsOf(token).sub }]);
  const cutOff = revoked(booking)[0]?.events[REVOKED]?.mandate_cutoff;
  assert.equal(cutOff, Math.ceil(Number(body.cut_off_ms) / 1000));
  assert.ok(Number(claimsOf(token).iat) <= Number(cutOff));
  world.pass(8);
});

test("SSF-D-2, SSF-D-5, RFC8417-2.2-2, RFC8935-2-1 an event that a receiver fails to take comes again, byte for byte, and the others are told meanwhile", async () => {
  clear(booking, crew);
  booking.answer = () => new Response("failed", { status: 500 });
  const first = await exchange("planner", "booking", "dave");
  const second = await exchange("booking", "crew", "dave", first);
  await order({ token: jtiOf(first) });
  await told(crew, 1);
  assert.deepEqual(subjectsOf(crew), [{ format: "jwt_id", iss: ISSUER, jti: jtiOf(second) }]);
  await told(booking, 2);
  booking.answer = taken;
  const before = booking.got.length;
  // The pause is one of at most a minute.
  world.pass(61);
  const isRevoked = ({ set }: { set: string }) => REVOKED in (claimsOf(set).events as object);
  await until(() => booking.got.slice(before).some(isRevoked), "the event is taken");
  const sets = new Set(booking.got.filter(isRevoked).map(({ set }) => set));
  assert.equal(sets.size, 1);
});

test("RFC8935-2.3-1 an event that its receiver refuses for good is not sent again, and the trail says so", async () => {
  clear(booking, crew);
  booking.answer = () => Response.json({ err: "invalid_request", description: "no" }, { status: 400 });
  const token = await exchange("planner", "booking", "dave");
  await order({ token: jtiOf(token) });
  // One that was under way in the test before may still come.
  const ofToken = () => revoked(booking).filter(({ sub_id }) => sub_id.jti === jtiOf(token));
  await until(() => ofToken().length > 0, "the event");
  const { jti } = ofToken()[0] ?? assert.fail();
  const isRefusal = ({ type, detail }: Event): boolean =>
    type === "signal.refused" && (detail as { jti?: string }).jti === jti;
  await until(async () => (await world.events()).some(isRefusal), "the refusal is recorded");
  world.pass(40);
  await order({ token: jtiOf(await exchange("planner", "crew", "dave")) });
  await told(crew, 1);
  assert.equal(ofToken().length, 1);
  clear(booking);
});

test("RFC8935-3-1, RFC8417-5.1-1, RFC8417-5.1-2 nothing is sent to a receiver whose certificate is not that of its authority", async () => {
  clear(booking, crew);
  const token = await exchange("booking", "crew", "dave", await exchange("planner", "booking", "dave"));
  await order({ token: jtiOf(token) });
  await told(crew, 1);
  assert.deepEqual(new Set(crew.got.map(({ set }) => claimsOf(set).aud)), new Set(["https://crew.example"]));
  assert.equal(revoked(crew).length, 1);
});

test("SSF-8.1.4-1 a stream is tested each minute by an event that ends nothing", async () => {
  clear(booking, crew);
  world.pass(60);
  await until(() => setsOf(crew).some(({ events }) => VERIFICATION in events), "a test");
  const [set] = setsOf(crew).filter(({ events }) => VERIFICATION in events);
  assert.deepEqual(set?.sub_id, { format: "opaque", id: "crew" });
  assert.deepEqual(set?.events[VERIFICATION], {});
});

test("a receiver that does not answer keeps no instance from being ready, and is told of in the trail once it is lost and once it answers", async () => {
  clear(booking, crew);
  booking.answer = () => new Response(null, { status: 503 });
  const typesOf = async () =>
    (await world.events()).flatMap(({ type, detail }) =>
      (detail as { stream?: string } | undefined)?.stream === "booking" ? [type] : [],
    );
  const [before] = [(await typesOf()).length];
  const fresh = async () => (await typesOf()).slice(before);
  await until(async () => {
    world.pass(60);
    return (await fresh()).includes("signal.unreachable");
  }, "it counts as lost");
  const lines = world.server.lines.flatMap(
    (line) => /^Health and metrics are at (\S+)$/.exec(line)?.[1] ?? [],
  );
  const [origin = assert.fail()] = lines;
  const ready = await fetch(`${origin}/readyz`);
  const shown = (await ready.json()) as { streams: Record<string, { reachable: boolean; waiting: number }> };
  assert.deepEqual([ready.status, shown.streams.booking?.reachable], [200, false]);
  const metrics = await (await fetch(`${origin}/metrics`)).text();
  assert.match(metrics, /^mandate_stream_reachable\{stream="booking"\} 0$/m);
  booking.answer = taken;
  await until(async () => {
    world.pass(61);
    return (await fresh()).includes("signal.reachable");
  }, "it answers");
  assert.deepEqual((await fresh()).slice(0, 2), ["signal.unreachable", "signal.reachable"]);
  const lost = (await world.events()).flatMap(({ type, detail }) =>
    type === "signal.unreachable" ? [detail as { stream?: string; cause?: string }] : [],
  );
  assert.equal(lost.find(({ stream }) => stream === "booking")?.cause, "status_503");
});

test("SSF-7.1-1, SSF-7.2-1 the metadata of the transmitter name its issuer and its keys", async () => {
  const { status, headers, body } = await world.get("/.well-known/ssf-configuration");
  assert.equal(status, 200);
  assert.equal(headers["content-type"], "application/json");
  assert.deepEqual([body.issuer, body.jwks_uri], [ISSUER, `${ISSUER}/jwks`]);
  assert.deepEqual(body.delivery_methods_supported, ["urn:ietf:rfc:8935"]);
});

test("SSF-D-1 an ending that was recorded before the process was killed is told after its next start", async () => {
  clear(booking, crew);
  booking.answer = () => new Response(null, { status: 503 });
  const token = await exchange("planner", "booking", "erin");
  await order({ token: jtiOf(token) });
  world.server.child.kill("SIGKILL");
  clear(booking, crew);
  const again = await world.start(world.configFile);
  try {
    await told(booking, 1);
    assert.deepEqual(subjectsOf(booking), [{ format: "jwt_id", iss: ISSUER, jti: jtiOf(token) }]);
  } finally {
    await again.stop();
  }
});
