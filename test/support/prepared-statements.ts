/** A proxy to PostgreSQL that notes the text of every statement that is prepared over it. */
import { once } from "node:events";
import { type AddressInfo, connect, createServer } from "node:net";

/** In as many bytes. */
const COMMITTED = "'read committed'";
const SERIALIZABLE = "'serializable'  ";

/**
 * `url`: the database behind it, at the port of the proxy. With `conflicts` its sessions are serializable, and what was
 * rolled back for that is counted.
 */
export async function recordStatements(
  url: string,
  statements: Set<string>,
  conflicts?: { count: number },
): Promise<{ url: string; close(): void }> {
  const { hostname, port } = new URL(url);
  const listener = createServer((near) => {
    const far = connect({ host: hostname, port: Number(port) });
    near.on("data", readStatements(statements));
    near.on("error", () => far.destroy());
    far.on("error", () => near.destroy());
    if (conflicts === undefined) return void near.pipe(far).pipe(near);
    near.on("data", (chunk: Buffer) => {
      const at = chunk.indexOf(COMMITTED);
      if (at >= 0) chunk.write(SERIALIZABLE, at);
    });
    far.on("data", (chunk: Buffer) => {
      if (chunk.includes("\0C40001\0")) conflicts.count++;
    });
    near.pipe(far).pipe(near);
  });
  listener.listen(0, "127.0.0.1");
  await once(listener, "listening");
  const ours = new URL(url);
  ours.port = String((listener.address() as AddressInfo).port);
  return { url: ours.href, close: () => void listener.close() };
}

const PARSE = "P".charCodeAt(0);

/** A client sends a message without a type first, then messages of a type, a length and a content. */
function readStatements(statements: Set<string>): (chunk: Buffer) => void {
  let unread = Buffer.alloc(0);
  let typeBytes = 0;
  return (chunk) => {
    unread = Buffer.concat([unread, chunk]);
    while (unread.length >= typeBytes + 4) {
      const end = typeBytes + unread.readUInt32BE(typeBytes);
      if (unread.length < end) return;
      if (typeBytes === 1 && unread[0] === PARSE) {
        const [, text = ""] = unread.toString("utf8", typeBytes + 4, end).split("\0");
        statements.add(text);
      }
      unread = unread.subarray(end);
      typeBytes = 1;
    }
  };
}
