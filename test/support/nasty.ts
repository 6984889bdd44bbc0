/**
 * A document server that is as nasty as the Internet: real TLS on loopback, and answers written byte by byte, so that
 * it can say what no honest server says. It counts who comes, and what this process opens anywhere.
 */
import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { once } from "node:events";
import { type AddressInfo, createServer as createTcpServer, type Socket } from "node:net";
import type { TestContext } from "node:test";
import { createServer, type TLSSocket } from "node:tls";
import ipaddr from "ipaddr.js";
import type { Authority, TrustDomain } from "../../scripts/dev-keys.ts";
import {
  type Issued,
  issueServerCertificate,
  makeAuthority,
  makeIntermediate,
  makeTrustDomain,
  mintX509Svid,
  x509,
} from "../../scripts/dev-pki.ts";
import type { Reach } from "../../src/settings/settings.ts";
import { parseFetchUrl } from "../../src/spec/rfc3986.ts";

export type Request = { method: string; path: string; fields: ReadonlyMap<string, string> };
export type Page = (socket: TLSSocket, request: Request) => void;

export type NastyServer = {
  port: number;
  /** What it answers, by path; nothing there is 404. */
  pages: Map<string, Page>;
  requests: Request[];
  connections: () => number;
};

export const NAME = "client.example";

export type Underworld = Awaited<ReturnType<typeof makeUnderworld>>;

/** Where the servers of a test may be reached, and the certificates that they have. */
export async function makeUnderworld() {
  const authority = await makeTrustDomain("authority.example");
  const stranger = await makeAuthority("Another authority");
  const below = await makeIntermediate(stranger, "An intermediate of the other authority");
  const of = (signer: Authority, name = NAME): Promise<Issued> => issueServerCertificate(signer, [name]);
  const [foreign, foreignBelow] = await Promise.all([of(stranger), of(below)]);
  const reach: Reach = { privateNetworks: ["127.0.0.1/32"], ca: authority.x509.certPem };
  return {
    reach,
    certificates: {
      good: await of(authority.x509),
      expired: await issueFor(authority, -7200, -3600),
      notYetValid: await issueFor(authority, 3600, 7200),
      otherName: await of(authority.x509, "other.example"),
      selfSigned: await issueToItself(),
      foreign,
      foreignWithRoot: { ...foreign, certPem: foreign.certPem + stranger.certPem },
      foreignWithIntermediate: { ...foreignBelow, certPem: foreignBelow.certPem + below.certPem },
    },
  };
}

async function issueToItself(): Promise<Issued> {
  const algorithm = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };
  const keys = await crypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    keys,
    signingAlgorithm: algorithm,
    name: [{ CN: [NAME] }],
    extensions: [new x509.SubjectAlternativeNameExtension([{ type: "dns", value: NAME }])],
  });
  const key = await crypto.subtle.exportKey("pkcs8", keys.privateKey);
  return { keyPem: x509.PemConverter.encode(key, "PRIVATE KEY"), certPem: certificate.toString("pem") };
}

function issueFor(authority: TrustDomain, fromSeconds: number, toSeconds: number): Promise<Issued> {
  return mintX509Svid(authority, "", {
    names: [{ type: "dns", value: NAME }],
    notBefore: new Date(Date.now() + fromSeconds * 1000),
    expSeconds: toSeconds,
  });
}

export async function startNasty(
  t: Pick<TestContext, "after">,
  { keyPem, certPem }: Issued,
): Promise<NastyServer> {
  const pages = new Map<string, Page>();
  const requests: Request[] = [];
  const sockets: Socket[] = [];
  const server = createServer({ key: keyPem, cert: certPem }, (socket) => {
    let head = "";
    socket.on("error", () => {});
    socket.on("data", (chunk: Buffer) => {
      if (head.endsWith("\r\n\r\n")) return;
      head += chunk.toString("latin1");
      if (!head.endsWith("\r\n\r\n")) return;
      const request = parse(head);
      requests.push(request);
      const page = pages.get(request.path) ?? answer("", { status: "404 Not Found" });
      page(socket, request);
    });
  });
  server.on("connection", (socket) => sockets.push(socket));
  server.on("tlsClientError", () => {});
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  const { port } = server.address() as AddressInfo;
  return { port, pages, requests, connections: () => sockets.length };
}

function parse(head: string): Request {
  const [first = "", ...lines] = head.split("\r\n");
  const [method = "", path = ""] = first.split(" ");
  const fields = lines.map((line) => /^([^:]*): *(.*)$/.exec(line) ?? []);
  return {
    ...{ method, path },
    fields: new Map(fields.map(([, name = "", value = ""]) => [name.toLowerCase(), value])),
  };
}

/** Counts who connects to another address of loopback, at the same port; nobody should. */
export async function watchAddress(
  t: Pick<TestContext, "after">,
  address: string,
  port: number,
): Promise<() => number> {
  let count = 0;
  const server = createTcpServer((socket) => {
    count += 1;
    socket.destroy();
  });
  server.listen(port, address);
  await once(server, "listening");
  t.after(() => server.close());
  return () => count;
}

/** One that says of every name what it is told to, or nothing at all; what it is asked is counted by type. */
export async function startNameServer(t: Pick<TestContext, "after">) {
  const zone: { A: readonly string[] | "silence"; AAAA: readonly string[] | "silence" } = { A: [], AAAA: [] };
  const asked = { A: 0, AAAA: 0 };
  const server = createSocket("udp4", (message, { port, address }) => {
    const question = message.subarray(12, message.indexOf(0, 12) + 5);
    const type = question.readUInt16BE(question.length - 4) === 1 ? "A" : "AAAA";
    asked[type] += 1;
    const answers = zone[type];
    if (answers === "silence") return;
    const head = Buffer.from(message.subarray(0, 12));
    head.writeUInt16BE(0x8180, 2);
    head.fill(0, 6);
    head.writeUInt16BE(answers.length, 6);
    server.send(Buffer.concat([head, question, ...answers.map(toRecord)]), port, address);
  });
  server.bind(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  return { zone, asked, address: `127.0.0.1:${server.address().port}` };
}

/** The name by reference to the question, its type, IN, for ever, and the address. */
function toRecord(address: string): Buffer {
  const bytes = ipaddr.parse(address).toByteArray();
  const type = bytes.length === 4 ? 1 : 28;
  return Buffer.of(0xc0, 12, 0, type, 0, 1, 0, 0, 0xff, 0xff, 0, bytes.length, ...bytes);
}

/** How many sockets this process has opened to anywhere since. */
export function countSockets(t: Pick<TestContext, "after">): () => number {
  let count = 0;
  const opened = (): void => {
    count += 1;
  };
  subscribe("net.client.socket", opened);
  t.after(() => unsubscribe("net.client.socket", opened));
  return () => count;
}

// --- what it says ---------------------------------------------------------------------------------------------

type Fields = Record<string, string>;

const headOf = (status: string, fields: Fields): string =>
  [`HTTP/1.1 ${status}`, ...Object.entries(fields).map(([name, value]) => `${name}: ${value}`), "", ""].join(
    "\r\n",
  );

/** A whole answer, and an honest one if nothing is changed. */
export function answer(body: string | Buffer, { status = "200 OK", ...fields }: Fields = {}): Page {
  const all = {
    "content-type": "application/json",
    "content-length": String(Buffer.byteLength(body)),
    ...fields,
  };
  return (socket) => {
    socket.write(headOf(status, all));
    socket.end(body);
  };
}

/** These bytes and then the end, or no end. */
export const raw =
  (text: string | Buffer, { open = false } = {}): Page =>
  (socket) => {
    socket.write(text);
    if (!open) socket.end();
  };

export const OK_HEAD = headOf("200 OK", { "content-type": "application/json", connection: "close" });

/** One drop after the other, until the other side has enough. */
export const drip =
  (start: string, drop: string, everyMs = 10): Page =>
  (socket) => {
    socket.write(start);
    const timer = setInterval(() => socket.write(drop), everyMs);
    socket.on("close", () => clearInterval(timer));
  };

/** As fast as the other side takes it, without end. */
export const flood =
  (start: string, wave: string): Page =>
  (socket) => {
    const pour = (): void => {
      while (!socket.destroyed && socket.write(wave));
    };
    socket.write(start);
    socket.on("drain", pour);
    pour();
  };

/** A URL that a client supplied, as it is written and as it is parsed. */
export function supplied(url: string) {
  const parsed = parseFetchUrl(url);
  assert.ok(parsed.ok, url);
  return { url, parsed: parsed.value };
}
