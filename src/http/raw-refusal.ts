/**
 * Refusals of what Node's HTTP parser gave up on: there is no response object, so the answer is written to the socket,
 * and the connection ends with it.
 */
import type { Duplex } from "node:stream";
import { LINGER_MS } from "../limits/connections.ts";
import { type HttpRefusal, PRIVATE_JSON, REFUSALS, refusalBody } from "./answers.ts";
import type { Connection } from "./connections.ts";
import { isBusy } from "./intake.ts";
import type { LogEntry } from "./log.ts";
import { STATUS_CODES } from "./plain.ts";
import { entryOf, newTrace } from "./trace.ts";

/** The answer by the code of the parser's error; undefined where the peer is gone or an answer makes no sense. */
export function refusalOf(code: string): HttpRefusal | undefined {
  if (code === "ERR_HTTP_REQUEST_TIMEOUT") return REFUSALS.timeout;
  if (code === "HPE_HEADER_OVERFLOW") return REFUSALS.head;
  if (code === "HPE_CHUNK_EXTENSIONS_OVERFLOW") return REFUSALS.body;
  return code.startsWith("HPE_") && code !== "HPE_INVALID_EOF_STATE" ? REFUSALS.syntax : undefined;
}

export function refuseRaw(
  socket: Duplex,
  connection: Connection | undefined,
  refusal: HttpRefusal,
  log: (entry: LogEntry) => void,
): void {
  // The rest of the request that still comes in is a second error to Node; the answer to the first is on its way.
  if (connection?.refused) return;
  if (connection === undefined || !socket.writable) {
    socket.destroy();
    return;
  }
  // A request is at work, and its client would take this for the answer to it.
  if (isBusy(connection)) {
    const ending = (): void => refuseRaw(socket, connection, refusal, log);
    connection.ending ??= ending;
    return;
  }
  connection.refused = true;
  // A request that is incomplete and no longer read was refused before, and gets no second answer.
  if (connection.reading === undefined && connection.latest?.complete === false) {
    end(socket);
    return;
  }
  const trace = connection.reading ?? newTrace("", "", connection.address);
  end(socket, answerOf(refusal, trace.requestId));
  log(entryOf(trace, refusal.status));
}

function end(socket: Duplex, last = ""): void {
  socket.end(last);
  // Closing while bytes are still coming in would reset the connection and lose the answer.
  const cut = setTimeout(() => socket.destroy(), LINGER_MS);
  socket.once("close", () => clearTimeout(cut));
}

function answerOf(refusal: HttpRefusal, requestId: string): string {
  const body = JSON.stringify(refusalBody(refusal));
  const fields = {
    ...PRIVATE_JSON,
    ...refusal.headers,
    "X-Request-Id": requestId,
    "Content-Length": String(body.length),
    Connection: "close",
  };
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${refusal.status} ${STATUS_CODES[refusal.status]}\r\n${lines.join("")}\r\n${body}`;
}
