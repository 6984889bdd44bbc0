/** Asks a server the checks of a table, one after the other, and says of each what became of it. */
import { AREAS } from "./checks/all.ts";
import { type Context, makeContext, type Server } from "./context.ts";
import { send } from "./http.ts";
import type { Json } from "./keys.ts";
import { levelOf } from "./levels.ts";
import { CannotAsk, type Client, type Role } from "./parties.ts";
import { makeScene } from "./scene.ts";
import type { Adapter, Check, Outcome, Result, Started } from "./types.ts";

export type Asked = {
  /** Where the server is, if the adapter does not start it. */
  issuer?: string;
  /** PEM of further authorities. */
  ca?: string;
  /** Only checks whose id begins with one of these, and what they rest on. */
  only?: readonly string[];
  onResult?(result: Result): void;
};

export type Run = { server: string; issuer: string; results: readonly Result[] };

export async function runSuite(adapter: Adapter, asked: Asked = {}): Promise<Run> {
  const scene = await makeScene();
  let started: Started | undefined;
  try {
    const given = { ...adapter, ...(await adapter.start?.(scene)) };
    const issuer = given.issuer ?? asked.issuer;
    if (issuer === undefined) throw new Error("name the server by --issuer");
    started = { ...given, issuer };
    const ca = [started.ca, asked.ca].filter((one) => one !== undefined);
    const metadata = await findMetadata(issuer, ca);
    const tokenEndpoint = started.tokenEndpoint ?? metadata.token_endpoint;
    if (typeof tokenEndpoint !== "string")
      throw new Error(`${issuer} has no metadata: name its token endpoint by --token-endpoint`);
    const server: Server = {
      ...{
        issuer,
        metadata,
        tokenEndpoint,
        ca,
        signals: started.signals,
        registration: started.registration ?? {},
        subjectToken: started.subjectToken,
      },
      offers: new Set(adapter.offers),
    };
    const roles =
      adapter.start === undefined ? only(started.roles ?? {}) : { ...scene.clients, ...started.roles };
    const names = { ...scene.names, ...started.names };
    const results = await askAll(makeContext(scene, server, roles, names), asked);
    return { server: adapter.server, issuer, results };
  } finally {
    await started?.stop?.();
    await scene.close();
  }
}

/** The clients of a server that was set up by hand: it knows those alone that the adapter names. */
const only = (roles: Partial<Record<Role, Client>>): Record<Role, Client> =>
  new Proxy(roles as Record<Role, Client>, {
    get(known, role: Role) {
      if (known[role] === undefined) throw new CannotAsk(`no client plays the part of ${role}`);
      return known[role];
    },
  });

/** RFC 8414 3.1, and the place of OpenID Connect Discovery; empty where there are none. */
async function findMetadata(issuer: string, ca: readonly string[]): Promise<Json> {
  const { origin, pathname } = new URL(issuer);
  const path = pathname.replace(/\/$/, "");
  for (const url of [
    `${origin}/.well-known/oauth-authorization-server${path}`,
    `${origin}${path}/.well-known/openid-configuration`,
  ]) {
    const { status, body, fault } = await send({ method: "GET", url, headers: {} }, ca);
    if (fault !== undefined) throw new Error(`${issuer} does not answer: ${fault}`);
    if (status === 200 && typeof body.token_endpoint === "string") return body;
  }
  return {};
}

/** Those that are wanted, after those that they rest on. */
function chosen(only: readonly string[] | undefined) {
  const all = AREAS.flatMap(({ area, checks }) => checks.map((check) => ({ area, check })));
  if (only === undefined) return all;
  const wanted = new Set(
    all.map(({ check }) => check.id).filter((id) => only.some((one) => id.startsWith(one))),
  );
  for (const { check } of all.toReversed())
    if (wanted.has(check.id) && check.basis !== undefined) wanted.add(check.basis);
  return all.filter(({ check }) => wanted.has(check.id));
}

async function askAll(c: Context, { only, onResult }: Asked): Promise<Result[]> {
  const outcomes = new Map<string, Outcome>();
  const results: Result[] = [];
  for (const { area, check } of chosen(only)) {
    const { id, clause, must } = check;
    c.exchanged.length = 0;
    const { outcome, note } = await askOne(c, check, outcomes);
    outcomes.set(id, outcome);
    const result = {
      id,
      clause,
      must,
      level: levelOf(clause),
      area,
      outcome,
      note,
      exchanged: [...c.exchanged],
    };
    results.push(result);
    onResult?.(result);
  }
  return results;
}

async function askOne(
  c: Context,
  { needs, basis, request, verdict }: Check,
  outcomes: ReadonlyMap<string, Outcome>,
): Promise<Pick<Result, "outcome" | "note">> {
  const missing = needs.filter((feature) => !c.server.offers.has(feature));
  if (missing.length > 0) return { outcome: "not offered", note: missing.join(", ") };
  if (basis !== undefined && outcomes.get(basis) !== "passed")
    return { outcome: "could not be asked", note: `the good request of ${basis} did not pass` };
  try {
    const answer = await request(c);
    if (await verdict.holds(answer, c)) return { outcome: "passed", note: "" };
    return { outcome: "failed", note: `would pass: ${verdict.wants}` };
  } catch (fault) {
    if (fault instanceof CannotAsk) return { outcome: "could not be asked", note: fault.message };
    throw fault;
  }
}
