/** One HTTPS request, and what was sent and received as a report may show it: secrets and signatures are cut. */
import { Agent, request as ask } from "node:https";
import { claimsOf, headerOf, isJwt } from "./keys.ts";

export type Answer = {
  status: number;
  headers: Record<string, string>;
  body: Record<string, unknown>;
  text: string;
  /** Why no response came; the status is 0 then. */
  fault?: string;
};

export type Sent = {
  method: string;
  url: string;
  headers: Readonly<Record<string, string | readonly string[]>>;
  body?: string | undefined;
  /** The client's certificate, PEM. */
  certificate?: { key: string; cert: string } | undefined;
};

/** A request with its answer, as reports print them. */
export type Exchanged = { sent: string; received: string };

const TIMEOUT_MS = 15_000;
/** Connections without a certificate are kept for the next request. */
const KEPT = new Agent({ keepAlive: true });

export function send(sent: Sent, ca: readonly string[]): Promise<Answer> {
  const { promise, resolve } = Promise.withResolvers<Answer>();
  const failed = (fault: Error): void =>
    resolve({ status: 0, headers: {}, body: {}, text: "", fault: fault.message });
  const length = sent.body === undefined ? {} : { "content-length": String(Buffer.byteLength(sent.body)) };
  const outgoing = ask(sent.url, {
    method: sent.method,
    headers: { ...sent.headers, ...length },
    agent: sent.certificate === undefined ? KEPT : false,
    timeout: TIMEOUT_MS,
    ...(ca.length > 0 && { ca: [...ca] }),
    ...sent.certificate,
  });
  outgoing.on("timeout", () => outgoing.destroy(new Error(`no answer within ${TIMEOUT_MS / 1000} s`)));
  outgoing.on("error", failed);
  outgoing.on("response", (response) => {
    response.toArray().then((parts) => {
      const text = Buffer.concat(parts).toString("utf8");
      const headers = Object.entries(response.headers).map(([name, value]) => [name, String(value)]);
      resolve({
        status: response.statusCode ?? 0,
        headers: Object.fromEntries(headers),
        body: objectOf(text),
        text,
      });
    }, failed);
  });
  outgoing.end(sent.body);
  return promise;
}

function objectOf(text: string): Record<string, unknown> {
  try {
    const read = JSON.parse(text);
    return typeof read === "object" && read !== null && !Array.isArray(read) ? read : {};
  } catch {
    return {};
  }
}

const SECRET = /secret|password|registration_access_token|deferral_code|refresh_token$|^code$/;

/** A JWT as its header and claims, without the signature by which it could be used. */
const cutValue = (name: string, value: string): string => {
  if (isJwt(value)) return `JWT ${JSON.stringify(headerOf(value))}.${JSON.stringify(claimsOf(value))}.…`;
  return SECRET.test(name) || /_token$|_assertion$|^token$|^assertion$/.test(name) ? cut(value) : value;
};
const cut = (value: string): string => (value === "" ? "" : `${value.slice(0, 4)}…`);

function cutHeader(name: string, value: string): string {
  if (name.toLowerCase() === "dpop") return cutValue("proof_token", value);
  if (name.toLowerCase() !== "authorization") return value;
  const [scheme = "", ...rest] = value.split(" ");
  return `${scheme} ${cutValue("access_token", rest.join(" "))}`;
}

function cutBody(body: string): string {
  if (body.startsWith("{")) return JSON.stringify(cutMembers(objectOf(body)));
  if (isJwt(body)) return cutValue("token", body);
  return [...new URLSearchParams(body)].map(([name, value]) => `${name}=${cutValue(name, value)}`).join("\n");
}

const cutMembers = (body: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(body).map(([name, value]) => [
      name,
      typeof value === "string" ? cutValue(name, value) : value,
    ]),
  );

export function told(sent: Sent, answer: Answer): Exchanged {
  const headers = Object.entries(sent.headers).flatMap(([name, values]) =>
    [values].flat().map((value) => `${name}: ${cutHeader(name, String(value))}`),
  );
  const certificate = sent.certificate === undefined ? [] : ["(with a client certificate)"];
  const body = sent.body === undefined ? [] : ["", cutBody(sent.body)];
  const shown = ["content-type", "cache-control", "www-authenticate", "location", "dpop-nonce"].flatMap(
    (name) => (answer.headers[name] === undefined ? [] : [`${name}: ${answer.headers[name]}`]),
  );
  const text =
    Object.keys(answer.body).length > 0 ? JSON.stringify(cutMembers(answer.body)) : answer.text.slice(0, 500);
  return {
    sent: [`${sent.method} ${sent.url}`, ...headers, ...certificate, ...body].join("\n"),
    received: answer.fault ?? [String(answer.status), ...shown, "", text].join("\n"),
  };
}
