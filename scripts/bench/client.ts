/**
 * Requests over TLS, prepared before the measurement as the bytes of a whole HTTP/1.1 request, and a client that
 * does little more than write them, so that it leaves the processor to the server that is measured.
 */
import { once } from "node:events";
import { connect, type TLSSocket } from "node:tls";

/** A whole request: head and body. */
export type Call = string;
export type Answer = { status: number; head: string; body: string };
export type Endpoint = { host: string; port: number; ca: string };

export function makeCall(url: URL, form: Record<string, string>, authorization?: string): Call {
  const body = new URLSearchParams(form).toString();
  const head = [
    `POST ${url.pathname} HTTP/1.1`,
    `Host: ${url.host}`,
    "Content-Type: application/x-www-form-urlencoded",
    `Content-Length: ${Buffer.byteLength(body)}`,
    ...(authorization === undefined ? [] : [`Authorization: ${authorization}`]),
  ];
  return `${head.join("\r\n")}\r\n\r\n${body}`;
}

export const makeGet = (url: URL, cookie?: string): Call =>
  [
    `GET ${url.pathname}${url.search} HTTP/1.1`,
    `Host: ${url.host}`,
    ...(cookie === undefined ? [] : [`Cookie: ${cookie}`]),
    "\r\n",
  ].join("\r\n");

/** The value of a header field of an answer, up to its first parameter. */
export const fieldOf = ({ head }: Answer, name: string): string =>
  new RegExp(`\\r\\n${name}: *([^;\\r]+)`, "i").exec(head)?.[1] ?? "";

export async function handshake({ host, port, ca }: Endpoint): Promise<TLSSocket> {
  const socket = connect({ host, port, ca });
  await once(socket, "secureConnect");
  return socket;
}

const HEAD_END = "\r\n\r\n";

/** One connection with one request at a time; it is opened anew after an answer that ends it. */
export class Line {
  readonly #endpoint: Endpoint;
  #socket: TLSSocket | undefined;

  constructor(endpoint: Endpoint) {
    this.#endpoint = endpoint;
  }

  async send(call: Call): Promise<Answer> {
    const socket = this.#socket ?? (await this.#open());
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    let text = "";
    const onData = (chunk: Buffer): void => {
      text += chunk.toString("latin1");
      const headEnd = text.indexOf(HEAD_END);
      if (headEnd < 0) return;
      const head = text.slice(0, headEnd);
      const length = Number(/\r\ncontent-length: *(\d+)/i.exec(head)?.[1]);
      if (text.length < headEnd + HEAD_END.length + length) return;
      if (/\r\nconnection: *close/i.test(head)) this.close();
      resolve({ status: Number(head.slice(9, 12)), head, body: text.slice(headEnd + HEAD_END.length) });
    };
    const onEnd = (): void => reject(new Error("the server ended the connection before its answer"));
    socket.on("data", onData).once("close", onEnd);
    socket.write(call);
    try {
      return await promise;
    } finally {
      socket.off("data", onData).off("close", onEnd);
    }
  }

  async #open(): Promise<TLSSocket> {
    const socket = await handshake(this.#endpoint);
    // The server also ends connections that are idle.
    socket
      .on("error", () => undefined)
      .once("close", () => {
        if (this.#socket === socket) this.#socket = undefined;
      });
    this.#socket = socket;
    return socket;
  }

  close(): void {
    this.#socket?.destroy();
    this.#socket = undefined;
  }
}
