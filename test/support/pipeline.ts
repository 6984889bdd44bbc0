/** Many requests on one connection. */
import { connect } from "node:tls";
import type { Form, World } from "./world.ts";

/** All of these requests for a token, the next one before the last one is answered; their statuses. */
export function pipeline(world: Pick<World, "server" | "ca">, forms: readonly Form[]): Promise<string[]> {
  const { promise, resolve, reject } = Promise.withResolvers<string[]>();
  const socket = connect({
    host: "127.0.0.1",
    port: world.server.port,
    servername: "as.example",
    ca: world.ca,
  });
  let received = "";
  socket.setEncoding("latin1").on("error", reject);
  socket.on("data", (more: string) => {
    received += more;
    const statuses = [...received.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status = ""]) => status);
    if (statuses.length === forms.length) resolve(statuses);
  });
  socket.on("close", () => reject(new Error("closed before every request was answered")));
  promise.finally(() => socket.destroy()).catch(() => undefined);
  for (const form of forms) {
    const body = new URLSearchParams(form as Record<string, string>).toString();
    const head = ["POST /token HTTP/1.1", "Host: as.example", `Content-Length: ${body.length}`];
    const type = "Content-Type: application/x-www-form-urlencoded";
    socket.write([...head, type, "", body].join("\r\n"));
  }
  return promise;
}
