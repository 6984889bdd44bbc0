/** Receivers of security events over TLS: those that take each event at once, and those that fail in the ways that a network has. */
import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { LOOPBACK } from "../../../test/support/web.ts";
import { issueServerCertificate, makeAuthority } from "../../dev-pki.ts";
import { claimsOf } from "../../http-client.ts";
import { freePorts } from "../../server-process.ts";
import { API } from "./site.ts";

const CLOSED = "closed";
const TRICKLE_MS = 1_000;
const HUGE_CHUNKS = 1_024;
const CHUNK = Buffer.alloc(64 * 1024, "x");

type Answering = (response: ServerResponse, request: IncomingMessage, count: number) => unknown;

const take = (response: ServerResponse): unknown => response.writeHead(202).end();

/** By the name of their stream; the port of `closed` has no listener. */
const HOSTILE: Readonly<Record<string, Answering>> = {
  silent: () => undefined,
  fails: (response) => response.writeHead(500).end("failed"),
  trickles: async ({ socket }) => {
    for (const byte of `HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n`) {
      if (socket === null || socket.destroyed) return;
      socket.write(byte);
      await sleep(TRICKLE_MS);
    }
  },
  redirects: (response) => response.writeHead(307, { location: "/healthy-0" }).end(),
  lies: (response, _, count) =>
    count % 2 === 0
      ? response.writeHead(202, { "content-type": "text/html" }).end("<p>Sign in first</p>")
      : response.writeHead(200, { "content-type": "application/json" }).end('{"err":null,"delivered":true}'),
  breaks: (response) => {
    response.writeHead(202, { "content-length": "100" }).write("half");
    response.socket?.destroySoon();
  },
  huge: (response) => {
    response.writeHead(202, { "content-length": String(HUGE_CHUNKS * CHUNK.length) });
    return pipeline(Readable.from(Array(HUGE_CHUNKS).fill(CHUNK)), response).catch(() => undefined);
  },
};

export const HOSTILE_NAMES: readonly string[] = [...Object.keys(HOSTILE), CLOSED];

/** An event that a receiver got first: when, and its content. */
export type Got = {
  stream: string;
  jti: string;
  cause: string;
  subject: Record<string, string>;
  atMs: number;
};

export type Receivers = {
  /** PEM of their authority. */
  ca: string;
  /** For the configuration. */
  streams: Record<string, object>;
  healthy: readonly string[];
  /** By stream, in order, each `jti` once; tests are left out. */
  got: ReadonlyMap<string, readonly Got[]>;
  /** How many came again. */
  again(): number;
  /** Those with an audience that is not theirs. */
  foreign(): number;
  /** From now on, the healthy ones answer a part of all pushes with 503. */
  fail(part: number): void;
  close(): Promise<void>;
};

export async function startReceivers(healthyCount: number, withHostile: boolean): Promise<Receivers> {
  const authority = await makeAuthority("Authority of receivers");
  const { keyPem: key, certPem: cert } = await issueServerCertificate(authority, ["localhost"]);
  const healthy = Array.from({ length: healthyCount }, (_, index) => `healthy-${index}`);
  const hostile = withHostile ? Object.keys(HOSTILE) : [];
  const got = new Map<string, Got[]>(healthy.map((name) => [name, []]));
  const known = new Set<string>();
  const pushes = new Map<string, number>();
  let [again, foreign, failing] = [0, 0, 0];

  const note = (stream: string, text: string): void => {
    const claims = claimsOf(text);
    if (claims.aud !== audienceOf(stream)) foreign++;
    const subject = claims.sub_id as Got["subject"];
    if (subject.format === "opaque") return;
    const jti = String(claims.jti);
    if (known.has(`${stream} ${jti}`)) return void again++;
    known.add(`${stream} ${jti}`);
    got.get(stream)?.push({ stream, jti, cause: String(claims.txn), subject, atMs: performance.now() });
  };
  const server = createServer({ key, cert }, async (request, response) => {
    const stream = request.url?.slice(1) ?? "";
    response.on("error", () => undefined);
    const text = (await request.toArray().catch(() => [])).join("");
    const count = (pushes.get(stream) ?? 0) + 1;
    pushes.set(stream, count);
    const answer = HOSTILE[stream];
    if (answer !== undefined) return void answer(response, request, count);
    if (Math.random() < failing) return void response.writeHead(503).end();
    note(stream, text);
    take(response);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const [closed = 0] = await freePorts(1);
  const streamOf = (name: string, at: number) => ({
    ...{ audience: audienceOf(name), targets: [API], url: `https://localhost:${at}/${name}` },
    ...{ ca: { file: "receivers.pem" }, privateNetworks: LOOPBACK },
  });
  const streams = Object.fromEntries([...healthy, ...hostile].map((name) => [name, streamOf(name, port)]));
  if (withHostile) streams[CLOSED] = streamOf(CLOSED, closed);
  return {
    ...{ ca: authority.certPem, streams, healthy, got },
    again: () => again,
    foreign: () => foreign,
    fail(part) {
      failing = part;
    },
    async close() {
      const ended = once(server, "close");
      server.close();
      server.closeAllConnections();
      await ended;
    },
  };
}

const audienceOf = (stream: string): string => `https://${stream}.example`;
