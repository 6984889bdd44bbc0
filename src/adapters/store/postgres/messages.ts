/**
 * What a server says, looked at before the driver reads it. What the driver does not expect it meets outside of any
 * promise, or in a loop without an end: one broken message would end this process, or stop it.
 */
import { EventEmitter } from "node:events";
import type { Socket } from "node:net";
import { SCRAM_ITERATIONS_MAX } from "../../../limits/store.ts";
import { failed } from "./socket.ts";

/** A kind, and the length of what follows with itself. */
const HEADER_BYTES = 5;
/** What answers our statements; none copies or is read in portions. */
const KINDS = "RSKZENATDCtn12I";
/** Of each column in a description, behind its name. */
const COLUMN_BYTES = 18;
/** The server's first message of SCRAM (RFC 5802 section 5.1): the driver relies on each attribute. */
const SCRAM_FIRST = /^r=[^,]+,s=[A-Za-z0-9+/]+=*,i=(\d+)$/;

/** The socket as the driver sees it: it reads whole messages that are in order, and the first other one cuts the connection. */
export function guardedSocket(socket: Socket, cut: AbortController): EventEmitter {
  const driven = Object.assign(new EventEmitter(), {
    write: (bytes: Buffer, written?: () => void) => socket.write(bytes, written),
    end: (bytes: Buffer) => socket.end(bytes),
    destroy: () => socket.destroy(),
  });
  const read = makeMessages();
  socket.on("data", (bytes: Buffer) => {
    if (cut.signal.aborted) return;
    try {
      driven.emit("data", read(bytes));
    } catch (error) {
      cut.abort(error);
    }
  });
  socket.on("drain", () => driven.emit("drain"));
  // Its errors cut the connection, and are told by that.
  socket.once("close", () => driven.emit("close"));
  return driven;
}

/** Takes bytes as they come, and gives those of the messages that are whole; throws for one that is out of order. */
function makeMessages(): (bytes: Buffer) => Buffer {
  let parts: Buffer[] = [];
  let missing = HEADER_BYTES;
  return (bytes) => {
    parts.push(bytes);
    missing -= bytes.length;
    if (missing > 0) return Buffer.alloc(0);
    const all = Buffer.concat(parts);
    let at = 0;
    for (;;) {
      const left = all.length - at;
      const size = left < HEADER_BYTES ? HEADER_BYTES : sizeOf(all.subarray(at));
      missing = size - left;
      if (missing > 0) break;
      check(all.toString("latin1", at, at + 1), all.subarray(at + HEADER_BYTES, at + size));
      at += size;
    }
    parts = [all.subarray(at)];
    return all.subarray(0, at);
  };
}

function sizeOf(message: Buffer): number {
  const size = 1 + message.readUInt32BE(1);
  if (size < HEADER_BYTES || !KINDS.includes(message.toString("latin1", 0, 1))) throw outOfOrder();
  return size;
}

function check(kind: string, body: Buffer): void {
  if (kind === "R") checkAuthentication(body);
  if (kind === "T" && !isDescription(body)) throw outOfOrder();
  if (kind === "E") checkError(body);
}

/** HTTP-D-66: the driver tells an error once the server is ready again, and after one that ends the session it never is. */
function checkError(body: Buffer): void {
  const fields = new Map(
    body
      .toString("latin1")
      .split("\0")
      .map((field) => [field.slice(0, 1), field.slice(1)]),
  );
  const severity = fields.get("V") ?? fields.get("S") ?? "";
  if (["FATAL", "PANIC"].includes(severity))
    throw failed("the server ended the session", fields.get("C") ?? "no code");
}

function checkAuthentication(body: Buffer): void {
  if (body.length < 4) throw outOfOrder();
  const type = body.readUInt32BE(0);
  // Done, a password, its MD5 digest with a salt of four bytes, and the three steps of SCRAM.
  if (![0, 3, 5, 10, 11, 12].includes(type)) {
    throw failed("the server asks for another proof", "AUTHENTICATION");
  }
  if (type === 5 && body.length !== 8) throw outOfOrder();
  if (type !== 11) return;
  const [, iterations] = SCRAM_FIRST.exec(body.toString("latin1", 4)) ?? [];
  // They are computed at once, and nothing else is done meanwhile.
  if (!(Number(iterations) >= 1 && Number(iterations) <= SCRAM_ITERATIONS_MAX)) throw outOfOrder();
}

/** Whether there are as many columns as it says. */
function isDescription(body: Buffer): boolean {
  if (body.length < 2) return false;
  let at = 2;
  for (let left = body.readUInt16BE(0); left > 0; left--) {
    const end = body.indexOf(0, at);
    at = end + 1 + COLUMN_BYTES;
    if (end === -1 || at > body.length) return false;
  }
  return at === body.length;
}

const outOfOrder = (): Error => failed("the server answered out of order", "PROTOCOL");
