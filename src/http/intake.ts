/**
 * The input of one connection, passed to Node's HTTP parser one request at a time. The parser alone would turn
 * everything that has arrived into requests at once, so that one peer could put thousands of them to work together.
 * RFC 9112, 9.3.2 pipelining: https://www.rfc-editor.org/rfc/rfc9112.html
 */
import type { TLSSocket } from "node:tls";

const HEAD_END = "\r\n\r\n";

/**
 * What a connection knows of its requests: how many were begun and not yet answered to the end, and what may still
 * come.
 */
type Work = {
  readonly open: number;
  /** The last request that was begun. */
  readonly latest: { readonly complete: boolean } | undefined;
  readonly last: boolean;
  readonly refused: boolean;
  /** Refuses what the parser gave up on, when no request is at work any more. */
  readonly ending: (() => void) | undefined;
};

/**
 * Takes the place of the parser's listener, which Node has added to the socket by now. The function that it returns is
 * called when a request was answered; it passes on what waits, unless a request is at work.
 */
export function meterInput(socket: TLSSocket, connection: Work): () => void {
  const parse = socket.listeners("data")[0] as (this: TLSSocket, piece: Buffer) => void;
  socket.removeListener("data", parse);
  let waiting: Buffer | undefined;
  let scheduled = false;

  /** A piece ends with the first end of a head in it, so that it begins one request at most. */
  const pass = (input: Buffer): void => {
    let rest: Buffer | undefined = input;
    while (rest !== undefined && !isBusy(connection)) {
      // What follows the last request or a refused one is read and dropped.
      if (isOver(connection) || socket.destroyed) return;
      const end: number = rest.indexOf(HEAD_END) + HEAD_END.length;
      const whole: boolean = end < HEAD_END.length || end === rest.length;
      parse.call(socket, whole ? rest : rest.subarray(0, end));
      rest = whole ? undefined : rest.subarray(end);
    }
    if (rest === undefined) return;
    waiting = rest;
    socket.pause();
  };
  const resume = (): void => {
    scheduled = false;
    const input = waiting;
    if (input === undefined || isBusy(connection)) return;
    waiting = undefined;
    pass(input);
    if (waiting === undefined) socket.resume();
  };

  socket.on("data", (chunk: Buffer) => {
    if (waiting === undefined) pass(chunk);
    else waiting = Buffer.concat([waiting, chunk]);
  });
  return () => {
    if (waiting === undefined || scheduled) return;
    scheduled = true;
    // The next request is not begun at once, so that the other connections have their turn between two requests of this
    // one.
    setImmediate(resume);
  };
}

/** A request was read and is not answered yet. */
export const isBusy = ({ open, latest }: Work): boolean =>
  open > 1 || (open === 1 && latest?.complete === true);

const isOver = ({ refused, ending, last, latest }: Work): boolean =>
  refused || ending !== undefined || (last && latest?.complete === true);
