/** Answers one request: head, body, handler, answer, log. This is the only place where a fault becomes an answer. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { TLSSocket } from "node:tls";
import { type Awaitable, whenDone } from "../result.ts";
import {
  DeadlinePassed,
  type Dress,
  faultResponse,
  type HttpRefusal,
  httpError,
  PeerGone,
  REFUSALS,
} from "./answers.ts";
import type { Connection, Connections } from "./connections.ts";
import type { Handler, HttpResponse, Peer } from "./handler.ts";
import type { LogEntry } from "./log.ts";
import { discard, leafOf, presented, readBody, refuseHead, toRequest, write } from "./message.ts";
import { entryOf, newTrace, type RequestTrace } from "./trace.ts";
import { readTraceparent } from "./trace-context.ts";

/** What the head expects: nothing; to be asked for the body (100-continue); or something that is not supported. */
export type Expect = "none" | "continue" | "other";

type ResponderOptions = {
  handler: Handler;
  /** The base of every request's URL. */
  origin: string;
  connections: Connections;
  log: (entry: LogEntry) => void;
  /** The form of an answer that the handler did not make. */
  dress: Dress;
  limit: {
    headersMax: number;
    bodyBytesMax: number;
    requestsPerConnectionMax: number;
    connectionAgeMaxMs: number;
    answerTimeoutMs: number;
  };
};

type Responder = (request: IncomingMessage, response: ServerResponse, expect: Expect) => Promise<void>;

export function makeResponder(options: ResponderOptions): Responder {
  const { handler, connections, log, limit } = options;
  const untilAllAreRead = makeTurns();
  return async (request, response, expect) => {
    const connection = connections.find(request.socket);
    if (connection === undefined || connection.last || connection.refused) return;
    const context = readTraceparent(request.headers.traceparent?.toString());
    const trace = newTrace(request.method ?? "", pathIn(request), connection.address, context);
    const last = begin(options, connection, request, response);
    const send = (answer: HttpResponse): void =>
      write(response, answer, trace.requestId, last || connections.draining);
    const answered = (answer: HttpResponse): void => {
      send(answer);
      log(entryOf(trace, response.destroyed && !response.writableFinished ? 0 : answer.status, answer));
    };
    const refused = (refusal: HttpRefusal): void =>
      answered(dressed(options, request, trace, httpError(refusal)));
    // While one request of a connection is at work, this one waits until that is answered; no other one waits then,
    // because the intake passes on nothing more.
    if (connection.open > 1) await turnOf(connection);
    try {
      // The peer is gone, or the answer before this request ended the connection.
      if (!request.socket.writable) return log(entryOf(trace, 0));
      const refusal = expect === "other" ? REFUSALS.expectation : refuseHead(request, limit);
      if (refusal !== undefined) {
        discard(request);
        return refused(refusal);
      }
      if (expect === "continue") response.writeContinue();
      connection.reading = trace;
      const body = await readBody(request, limit.bodyBytesMax);
      // A pipelined request may have taken the place of this one meanwhile.
      if (connection.reading === trace) connection.reading = undefined;
      await untilAllAreRead();
      // The request was refused meanwhile, because it was too slow or because of what follows it, so no handler may act
      // on it any more.
      if (connection.refused) return;
      if (!body.ok && body.error === "peer_gone") return log(entryOf(trace, 0));
      if (!body.ok) return refused(REFUSALS.body);
      const whole = toRequest(request, body.value, options.origin, pathIn(request));
      if (!whole.ok) return refused(whole.error);
      const answer = await inTime(limit.answerTimeoutMs, (deadline) =>
        handler(whole.value, new ConnectedPeer(connection, request, response, trace, deadline)),
      );
      answered(answer);
    } catch (fault) {
      if (fault instanceof PeerGone) return log(entryOf(trace, 0));
      const answer = dressed(options, request, trace, faultResponse(fault));
      // A part of the answer was written already: there is no second answer, and the first one must not pass for whole.
      if (response.headersSent) response.destroy();
      else send(answer);
      log(entryOf(trace, answer.status, { ...answer, fault }));
    }
  };
}

/**
 * The requests that come in whole in one turn of the event loop are handled together at its end, one step after the
 * other for all of them. The processor's caches do not hold what one request runs through from its first byte to its
 * answer; so they hold each step for the next request, which needs a tenth to four tenths less CPU time.
 */
function makeTurns(): () => Promise<void> {
  let end: Promise<void> | undefined;
  return () => {
    end ??= new Promise((resolve) => {
      setImmediate(() => {
        end = undefined;
        resolve();
      });
    });
    return end;
  };
}

/** Gives its form to an answer that no handler made. */
function dressed(
  { dress }: ResponderOptions,
  request: IncomingMessage,
  { requestId }: RequestTrace,
  answer: HttpResponse,
): HttpResponse {
  const { "accept-language": acceptLanguage = null, origin = null } = request.headers;
  try {
    return dress({ requestId, path: pathIn(request), acceptLanguage, origin }, answer);
  } catch {
    // A fault while the form is made must not cost the answer.
    return answer;
  }
}

const pathIn = ({ url = "" }: IncomingMessage): string => url.split("?", 1)[0] ?? "";

/** Counts the request until its answer is sent, and returns whether it is the last of its connection. */
function begin(
  { connections, limit }: ResponderOptions,
  connection: Connection,
  request: IncomingMessage,
  response: ServerResponse,
): boolean {
  connection.requests += 1;
  connection.open += 1;
  connection.latest = request;
  // Node's own cap leaves it to the peer to close, does not hold for HTTP/1.0, and knows no age of a connection.
  connection.last =
    connection.requests >= limit.requestsPerConnectionMax ||
    performance.now() - connection.startMs > limit.connectionAgeMaxMs ||
    request.httpVersion !== "1.1";
  response.on("close", () => {
    connection.open -= 1;
    // A connection is not cut while it drains: its answer may have been written before that, and then does not say that
    // the connection ends.
    if (connections.ended && connection.open === 0) request.socket.destroySoon();
    connection.next?.();
    connection.next = undefined;
    if (connection.open === 0) connection.ending?.();
    connection.proceed?.();
  });
  return connection.last;
}

const turnOf = (connection: Connection): Promise<void> =>
  new Promise((resolve) => {
    connection.next = resolve;
  });

/**
 * The certificates are read, and the leaf is parsed, when the handler asks for them and once for the connection; and
 * few requests wait so long that it matters whether the peer has left. A literal with getters would keep the whole
 * request until the next full collection, because V8 makes a hidden class for each that refers to its functions.
 */
class ConnectedPeer implements Peer {
  readonly address: string;
  readonly requestId: string;
  readonly trace: Peer["trace"];
  readonly deadline: AbortSignal;
  readonly #connection: Connection;
  readonly #socket: TLSSocket;
  readonly #response: ServerResponse;

  constructor(
    connection: Connection,
    { socket }: IncomingMessage,
    response: ServerResponse,
    { requestId, context }: RequestTrace,
    deadline: AbortSignal,
  ) {
    this.address = connection.address;
    this.requestId = requestId;
    this.trace = context;
    this.deadline = deadline;
    this.#connection = connection;
    this.#socket = socket as TLSSocket;
    this.#response = response;
  }

  get certificates(): Peer["certificates"] {
    this.#connection.certificates ??= presented(this.#socket);
    return this.#connection.certificates;
  }

  get leaf(): Peer["leaf"] {
    this.#connection.leaf ??= leafOf(this.certificates);
    return this.#connection.leaf;
  }

  get gone(): AbortSignal {
    const controller = new AbortController();
    const abort = (): void => controller.abort(new PeerGone("the peer left before its answer"));
    if (this.#response.destroyed) abort();
    else this.#response.once("close", abort);
    return controller.signal;
  }
}

/**
 * There is one deadline for all that the handler waits for, because the deadlines of its steps would add up. The first
 * of answer, fault and deadline is told.
 */
function inTime(
  timeoutMs: number,
  handle: (deadline: AbortSignal) => Awaitable<HttpResponse>,
): Promise<HttpResponse> {
  const { promise, resolve, reject } = Promise.withResolvers<HttpResponse>();
  const controller = new AbortController();
  const timer = setTimeout(() => {
    const fault = new DeadlinePassed("the request was not answered in time");
    controller.abort(fault);
    reject(fault);
  }, timeoutMs);
  const end =
    <A>(tell: (value: A) => void) =>
    (value: A): void => {
      clearTimeout(timer);
      tell(value);
    };
  void whenDone(() => handle(controller.signal), end(resolve), end(reject));
  return promise;
}
