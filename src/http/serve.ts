/**
 * HTTPS for handlers: node:https on one side, `Handler` on the other.
 * RFC 9110 and RFC 9112, HTTP: https://www.rfc-editor.org/rfc/rfc9112.html
 * RFC 8705, 6.1 the listener, 7.3 versions and suites: https://www.rfc-editor.org/rfc/rfc8705.html
 *
 * What reaches a handler has a bounded head, a whole body that is not longer than its limit, and a path that the
 * URL parser gave back byte for byte. The only place where a fault becomes an answer.
 */
import { constants, randomUUID } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { STATUS_CODES } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import net from "node:net";
import type { Duplex } from "node:stream";
import type { SecureContextOptions, TLSSocket } from "node:tls";
import ipaddr from "ipaddr.js";
import * as limits from "../limits.ts";
import { err } from "../result.ts";
import type { HttpRefusal } from "./answers.ts";
import { faultResponse, httpError, PRIVATE_JSON, REFUSALS, refusalBody } from "./answers.ts";
import type { Handler, HttpResponse, Peer } from "./handler.ts";
import type { LogEntry } from "./log.ts";
import { describeFault } from "./log.ts";
import { discard, presented, readBody, refuseHead, toRequest, write } from "./message.ts";

export type ServeOptions = {
  host: string;
  port: number;
  /** PEM. */
  key: string;
  /** PEM, with the intermediates. */
  cert: string;
  /** The base of every request's URL; `Host` and `Forwarded` have no say. */
  origin: string;
  /** Whether clients are asked for a certificate; false where another listener does that. */
  clientCertificates?: boolean;
  log: (entry: LogEntry) => void;
  limits?: Partial<typeof LIMITS>;
};

export type Server = {
  readonly address: string;
  readonly port: number;
  /** For new connections; those that stand keep theirs. Throws, and changes nothing, if the two do not match. */
  replaceCertificate(key: string, cert: string): void;
  /** Accepts no more, finishes what has begun, and cuts what is not done in time. */
  shutdown(): Promise<void>;
};

export const LIMITS = {
  headerBytesMax: limits.HEADER_BYTES_MAX,
  headersMax: limits.HEADERS_MAX,
  bodyBytesMax: limits.BODY_BYTES_MAX,
  connectionsMax: limits.CONNECTIONS_MAX,
  connectionsPerSourceMax: limits.CONNECTIONS_PER_SOURCE_MAX,
  requestsPerConnectionMax: limits.REQUESTS_PER_CONNECTION_MAX,
  connectionAgeMaxMs: limits.CONNECTION_AGE_MAX_MS,
  handshakeTimeoutMs: limits.HANDSHAKE_TIMEOUT_MS,
  headersTimeoutMs: limits.HEADERS_TIMEOUT_MS,
  requestTimeoutMs: limits.REQUEST_TIMEOUT_MS,
  idleTimeoutMs: limits.IDLE_TIMEOUT_MS,
  shutdownTimeoutMs: limits.SHUTDOWN_TIMEOUT_MS,
  checkIntervalMs: limits.CHECK_INTERVAL_MS,
};

type Trace = { requestId: string; method: string; path: string; startMs: number; address: string };

type Connection = {
  readonly address: string;
  readonly startMs: number;
  certificates?: readonly Uint8Array[];
  requests: number;
  /** Requests that were begun and not yet answered to the end. */
  open: number;
  /** The last of them, while its body is still coming in. */
  reading?: Trace;
  /** Its last request was taken: what follows is not looked at. */
  last: boolean;
  /** A raw answer was written: nothing else will be. */
  refused: boolean;
};

// RFC8705-7.3-1 (BCP 195): forward secrecy and authenticated encryption only.
const CIPHERS = [
  "TLS_AES_128_GCM_SHA256",
  "TLS_AES_256_GCM_SHA384",
  "TLS_CHACHA20_POLY1305_SHA256",
  "ECDHE-ECDSA-AES128-GCM-SHA256",
  "ECDHE-RSA-AES128-GCM-SHA256",
  "ECDHE-ECDSA-AES256-GCM-SHA384",
  "ECDHE-RSA-AES256-GCM-SHA384",
  "ECDHE-ECDSA-CHACHA20-POLY1305",
  "ECDHE-RSA-CHACHA20-POLY1305",
].join(":");

/** All of the secure context: what is not given again when it is replaced falls back to Node's default. */
const secureContext = (key: string, cert: string): SecureContextOptions => ({
  key,
  cert,
  // No anchors: no authority names narrow the choice of a client with several certificates, and Node vouches for none.
  ca: [],
  ciphers: CIPHERS,
  minVersion: "TLSv1.2",
  // A resumed session brings back a leaf that was never shown on this connection (RFC8705-2-2), without its chain.
  secureOptions: constants.SSL_OP_NO_TICKET | constants.SSL_OP_NO_RENEGOTIATION,
});

type Expect = "none" | "continue" | "other";

export async function serve(options: ServeOptions, handler: Handler): Promise<Server> {
  const limit = { ...LIMITS, ...options.limits };
  const origin = new URL(options.origin).origin;
  const sockets = new Set<Socket>();
  const sources = new Map<string, number>();
  const connections = new Map<Duplex, Connection>();
  let stopping: Promise<void> | undefined;

  const server = createServer({
    ...secureContext(options.key, options.cert),
    // RFC8705-6.1-1, RFC8705-6.1-2: any certificate is asked for, none is required, none is refused here.
    requestCert: options.clientCertificates ?? true,
    rejectUnauthorized: false,
    handshakeTimeout: limit.handshakeTimeoutMs,
    maxHeaderSize: limit.headerBytesMax,
    headersTimeout: limit.headersTimeoutMs,
    requestTimeout: limit.requestTimeoutMs,
    connectionsCheckingInterval: limit.checkIntervalMs,
    keepAliveTimeout: limit.idleTimeoutMs,
    keepAliveTimeoutBuffer: 0,
    // Node's own answer would have no body: refuseHead counts the Host fields.
    requireHostHeader: false,
  });
  // The timers above start with a request; this one also ends a peer that is silent after the handshake.
  server.timeout = limit.idleTimeoutMs;
  server.maxConnections = limit.connectionsMax;
  // Node drops further fields without a word: let it keep one too many, so that refuseHead sees them.
  server.maxHeadersCount = limit.headersMax + 1;

  server.on("connection", (socket: Socket) => {
    const source = sourceOf(socket.remoteAddress);
    const count = (sources.get(source) ?? 0) + 1;
    if (count > limit.connectionsPerSourceMax) {
      socket.destroy();
      return;
    }
    sources.set(source, count);
    sockets.add(socket);
    socket.once("close", () => {
      sockets.delete(socket);
      const left = (sources.get(source) ?? 1) - 1;
      if (left === 0) sources.delete(source);
      else sources.set(source, left);
    });
  });

  server.on("secureConnection", (socket: TLSSocket) => {
    if (stopping !== undefined || socket.isSessionReused()) {
      socket.destroy();
      return;
    }
    const address = addressOf(socket.remoteAddress);
    connections.set(socket, {
      address,
      startMs: performance.now(),
      requests: 0,
      open: 0,
      last: false,
      refused: false,
    });
    socket.once("close", () => connections.delete(socket));
  });

  const log = (trace: Trace, status: number, fault?: unknown): void => {
    options.log({
      time: new Date().toISOString(),
      level: fault === undefined ? "info" : "error",
      requestId: trace.requestId,
      method: trace.method,
      path: trace.path,
      status,
      durationMs: Math.round((performance.now() - trace.startMs) * 1000) / 1000,
      address: trace.address,
      ...(fault === undefined ? {} : { fault: describeFault(fault) }),
    });
  };

  /** Answers where Node has no response object, and ends the connection. */
  const refuseRaw = (socket: Duplex, refusal: HttpRefusal): void => {
    const connection = connections.get(socket);
    // What still comes in of it is a second fault to Node; the answer to the first is on its way.
    if (connection?.refused) return;
    // A handler is at work on an earlier request of this connection: its client would take this for the answer.
    const busy = connection !== undefined && connection.open > (connection.reading === undefined ? 0 : 1);
    if (connection === undefined || busy || !socket.writable) {
      socket.destroy();
      return;
    }
    connection.refused = true;
    const trace = connection.reading ?? newTrace("", "", connection.address);
    const body = JSON.stringify(refusalBody(refusal));
    const fields = {
      ...PRIVATE_JSON,
      ...refusal.headers,
      "X-Request-Id": trace.requestId,
      "Content-Length": String(body.length),
      Connection: "close",
    };
    const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`);
    socket.end(`HTTP/1.1 ${refusal.status} ${STATUS_CODES[refusal.status]}\r\n${lines.join("")}\r\n${body}`);
    // Closing over bytes that are still coming in would reset the connection and take the answer with it.
    const cut = setTimeout(() => socket.destroy(), limits.LINGER_MS);
    socket.once("close", () => clearTimeout(cut));
    log(trace, refusal.status);
  };

  server.on("clientError", (error: NodeJS.ErrnoException, socket) => {
    const code = error.code ?? "";
    if (code === "ERR_HTTP_REQUEST_TIMEOUT") refuseRaw(socket, REFUSALS.timeout);
    else if (code === "HPE_HEADER_OVERFLOW") refuseRaw(socket, REFUSALS.head);
    else if (code === "HPE_CHUNK_EXTENSIONS_OVERFLOW") refuseRaw(socket, REFUSALS.body);
    else if (code.startsWith("HPE_") && code !== "HPE_INVALID_EOF_STATE") refuseRaw(socket, REFUSALS.syntax);
    else socket.destroy();
  });
  server.on("connect", (_request, socket) => {
    socket.on("error", () => socket.destroy());
    refuseRaw(socket, REFUSALS.method);
  });

  const exchange = async (
    request: IncomingMessage,
    response: ServerResponse,
    expect: Expect,
  ): Promise<void> => {
    const connection = connections.get(request.socket);
    if (connection === undefined || connection.last || connection.refused) return;
    const path = (request.url ?? "").split("?", 1)[0] ?? "";
    const trace = newTrace(request.method ?? "", path, connection.address);
    connection.requests += 1;
    connection.open += 1;
    // Node's own cap leaves it to the peer to close, HTTP/1.0 goes round it, and it knows no age.
    const last =
      connection.requests >= limit.requestsPerConnectionMax ||
      performance.now() - connection.startMs > limit.connectionAgeMaxMs ||
      request.httpVersion !== "1.1";
    connection.last = last;
    response.once("close", () => {
      connection.open -= 1;
      if (stopping !== undefined && connection.open === 0) request.socket.destroySoon();
    });
    const send = (answer: HttpResponse): void =>
      write(response, answer, trace.requestId, last || stopping !== undefined);

    try {
      const refusal = expect === "other" ? REFUSALS.expectation : refuseHead(request, limit);
      if (refusal !== undefined) {
        discard(request);
        send(httpError(refusal));
        log(trace, refusal.status);
        return;
      }
      if (expect === "continue") response.writeContinue();
      connection.reading = trace;
      const body = await readBody(request, limit.bodyBytesMax);
      // A pipelined request may have taken the place meanwhile.
      if (connection.reading === trace) delete connection.reading;
      // Refused meanwhile, for its own pace or for what follows it: no handler may act on it any more.
      if (connection.refused) return;
      if (!body.ok && body.error === "peer_gone") {
        log(trace, 0);
        return;
      }
      const received = body.ok ? toRequest(request, body.value, origin, path) : err(REFUSALS.body);
      const answer = received.ok
        ? await handler(received.value, peerOf(connection, request.socket as TLSSocket, trace.requestId))
        : httpError(received.error);
      send(answer);
      log(trace, response.destroyed && !response.writableFinished ? 0 : answer.status);
    } catch (fault) {
      // Written to already: no second answer, and the first must not pass for whole.
      const answer = faultResponse(fault);
      if (response.headersSent) response.destroy();
      else send(answer);
      log(trace, answer.status, fault);
    }
  };
  server.on("request", (request, response) => void exchange(request, response, "none"));
  server.on("checkContinue", (request, response) => void exchange(request, response, "continue"));
  server.on("checkExpectation", (request, response) => void exchange(request, response, "other"));

  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen({ host: options.host, port: options.port }, () => {
      server.off("error", reject);
      resolve();
    });
  });
  const bound = server.address() as AddressInfo;

  const shutdown = async (): Promise<void> => {
    // Not the close of https: it takes a connection for idle, and cuts it, whose answer is not yet sent to its end.
    const closed = new Promise<void>((resolve) => {
      net.Server.prototype.close.call(server, () => resolve());
    });
    for (const [socket, connection] of connections) if (connection.open === 0) socket.destroy();
    const cut = setTimeout(() => {
      for (const socket of sockets) socket.destroy();
    }, limit.shutdownTimeoutMs);
    await closed;
    clearTimeout(cut);
    // For Node's own timers.
    server.close();
  };

  return {
    address: bound.address,
    port: bound.port,
    replaceCertificate(key, cert) {
      server.setSecureContext(secureContext(key, cert));
    },
    shutdown() {
      stopping ??= shutdown();
      return stopping;
    },
  };
}

/** The certificates are read only if somebody asks for them, and then once for the connection. */
function peerOf(connection: Connection, socket: TLSSocket, requestId: string): Peer {
  return {
    address: connection.address,
    requestId,
    get certificates() {
      connection.certificates ??= presented(socket);
      return connection.certificates;
    },
  };
}

const newTrace = (method: string, path: string, address: string): Trace => ({
  requestId: randomUUID(),
  method,
  path: path.slice(0, limits.LOG_PATH_CHARS_MAX),
  startMs: performance.now(),
  address,
});

/** `::ffff:192.0.2.1` is 192.0.2.1. */
function addressOf(remote: string | undefined): string {
  return remote !== undefined && ipaddr.isValid(remote) ? ipaddr.process(remote).toString() : "";
}

/** One subscriber holds at least a /64 of IPv6: it counts as one source. */
function sourceOf(remote: string | undefined): string {
  if (remote === undefined || !ipaddr.isValid(remote)) return "";
  const address = ipaddr.process(remote);
  return address instanceof ipaddr.IPv6 ? address.parts.slice(0, 4).join(":") : address.toString();
}
