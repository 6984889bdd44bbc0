/** The HTTPS client of the demo and the tests: one trusted authority, form bodies, JSON responses. */
import type { OutgoingHttpHeaders } from "node:http";
import { type Agent, type RequestOptions, request } from "node:https";
import type { Socket } from "node:net";
import { TLSSocket } from "node:tls";
import { defined } from "../src/result.ts";

export type Answer = {
  status: number;
  headers: Record<string, string>;
  body: Record<string, unknown>;
  text: string;
};

export type Sent = {
  method?: string;
  headers?: Record<string, string>;
  body?: string;
  /** PEM of the authority to trust. */
  ca: string;
  /** A client certificate, PEM. */
  key?: string;
  cert?: string;
  /** Connects here instead of the URL's host, which stays the server name and Host header. */
  connect?: { host: string; port: number };
  /** Keeps connections for further requests; without one, each request has its own. */
  agent?: Agent;
};

export function send(
  url: string,
  { method = "GET", headers = {}, body, ca, key, cert, connect, agent }: Sent,
): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  const { hostname, port, pathname, search, host } = new URL(url);
  const length = body === undefined ? undefined : Buffer.byteLength(body);
  const options: RequestOptions = {
    method,
    host: connect?.host ?? hostname,
    port: connect?.port ?? (port || 443),
    path: `${pathname}${search}`,
    servername: hostname,
    headers: defined<OutgoingHttpHeaders>({ host, ...headers, "content-length": length }),
    agent: agent ?? false,
    ca,
    key,
    cert,
  };
  const outgoing = request(options);
  // Whether the handshake was done, without which nothing of the request was sent.
  outgoing.on("error", (fault) => reject(Object.assign(fault, { connected: isConnected(outgoing.socket) })));
  outgoing.on("response", async (response) => {
    const text = (await response.toArray()).join("");
    const fields = Object.entries(response.headers).map(([name, value]) => [name, String(value)]);
    resolve({
      status: response.statusCode ?? 0,
      headers: Object.fromEntries(fields),
      body: text !== "" && /[/+]json/.test(response.headers["content-type"] ?? "") ? JSON.parse(text) : {},
      text,
    });
  });
  outgoing.end(body);
  return promise;
}

const isConnected = (socket: Socket | null): boolean => socket instanceof TLSSocket && socket.authorized;

export type Form = Record<string, string | readonly string[]>;

/** POST of an `application/x-www-form-urlencoded` body; an array sends its parameter once for each value. */
export function postForm(url: string, form: Form | string, options: Sent): Promise<Answer> {
  const headers = { "content-type": "application/x-www-form-urlencoded", ...options.headers };
  return send(url, {
    ...options,
    method: "POST",
    headers,
    body: typeof form === "string" ? form : encodeForm(form),
  });
}

export function encodeForm(form: Form): string {
  const pairs = Object.entries(form).flatMap(([name, value]) =>
    [value].flat().map((one) => [name, String(one)]),
  );
  return new URLSearchParams(pairs).toString();
}

/** RFC 6749 2.3.1: client_id and secret are form-encoded, joined by a colon, then base64-encoded. */
export function basic(clientId: string, secret: string): string {
  const half = (text: string): string => encodeForm({ "": text }).slice(1);
  return `Basic ${Buffer.from(`${half(clientId)}:${half(secret)}`).toString("base64")}`;
}

/** The claims of a JWT, without verification. */
export function claimsOf(jwt: unknown): Record<string, unknown> {
  const part = typeof jwt === "string" ? jwt.split(".")[1] : undefined;
  return JSON.parse(Buffer.from(part ?? "", "base64url").toString("utf8"));
}
