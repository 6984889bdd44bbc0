/** Several instances on one database, each asked for the same thing at the same moment. */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { SignJWT } from "jose";
import { type Answer, basic } from "../../scripts/http-client.ts";
import type { ServerProcess } from "../../scripts/server-process.ts";
import { type Guests, JWT_BEARER, type Kind, SECRET } from "./guests.ts";
import { type Form, ISSUER, type World } from "./world.ts";

const BY_ASSERTION = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
/** At each instance, so that two meet in one journal too. */
const REQUESTS = 2;

export type Instances = {
  world: World;
  guests: Guests;
  ports: readonly number[];
  /** Redeems a grant at one of them, as the client `hotel`. */
  redeemAt(port: number, assertion: string): Promise<Answer>;
  stop(): Promise<void>;
};

export async function openInstances(guests: Guests, postgres: string, count = 2): Promise<Instances> {
  const world = await guests.another(postgres);
  const others: ServerProcess[] = [];
  while (others.length < count - 1) others.push(await world.beside(`beside-${others.length}`));
  const authorization = basic("hotel", SECRET);
  return {
    world,
    guests,
    ports: [world.server, ...others].map(({ port }) => port),
    redeemAt: (port, assertion) =>
      world.token({ grant_type: JWT_BEARER, assertion }, { authorization }, {}, port),
    async stop() {
      for (const other of others) await other.stop();
      await world.stop();
    },
  };
}

/** IDC-5.5-2: one of all these requests gets a token, and the grant is spent. */
export async function contestGrant({ guests, ports, redeemAt }: Instances, kind: Kind): Promise<void> {
  const grant = await guests.grant({}, kind);
  assertOneWins(await Promise.all(everywhere(ports).map((port) => redeemAt(port, grant))), "invalid_grant");
  for (const port of ports) assert.equal((await redeemAt(port, grant)).body.error, "invalid_grant");
}

/** RFC7523-3-14: likewise for a client's assertion, each time with a grant of its own. */
export async function contestAssertion({ world, guests, ports }: Instances): Promise<void> {
  const seconds = Math.floor(Date.now() / 1000);
  const claims = { iss: "keyed", sub: "keyed", aud: ISSUER, iat: seconds, exp: seconds + 60 };
  const assertion = await new SignJWT({ ...claims, jti: randomUUID() })
    .setProtectedHeader({ alg: "ES256", kid: "k-1" })
    .sign(guests.clientKey);
  const proof: Form = { client_assertion_type: BY_ASSERTION, client_assertion: assertion };
  const redeem = async (port: number): Promise<Answer> => {
    const grant = await guests.grant({ client_id: "keyed" });
    return world.token({ grant_type: JWT_BEARER, assertion: grant, ...proof }, {}, {}, port);
  };
  assertOneWins(await Promise.all(everywhere(ports).map(redeem)), "invalid_client");
}

const everywhere = (ports: readonly number[]): number[] =>
  Array.from({ length: REQUESTS }, () => ports).flat();

function assertOneWins(answers: readonly Answer[], error: string): void {
  const outcomes = answers.map(({ status, body }) => (status === 200 ? "token" : body.error));
  assert.deepEqual(outcomes.toSorted(), [...answers.slice(1).map(() => error), "token"]);
}
