/** The way of a share of the inputs: byte by byte over TLS, to a listener of this process. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { connect } from "node:tls";
import { app } from "../../src/app.ts";
import { serve } from "../../src/http/serve.ts";
import { ISSUER } from "../../test/support/world.ts";
import type { Corpus } from "./corpus.ts";
import type { Message } from "./run.ts";

export async function openWire({ service: { folder, ca, ports, people } }: Corpus) {
  const read = (name: string): string => readFileSync(join(folder, "tls", name), "utf8");
  const server = await serve(
    {
      host: "127.0.0.1",
      port: 0,
      key: read("key.pem"),
      cert: read("cert.pem"),
      origin: ISSUER,
      log: () => {},
    },
    app(ports, people),
  );
  return {
    /** The status of the answer, or "closed" without one. */
    send({ method, target, fields, body }: Message): Promise<number | string> {
      const lines = [`${method} ${target} HTTP/1.1`, "Connection: close", `Content-Length: ${body.length}`];
      for (let at = 0; at + 1 < fields.length; at += 2) lines.push(`${fields[at]}: ${fields[at + 1]}`);
      const { promise, resolve } = Promise.withResolvers<number | string>();
      let text = "";
      const socket = connect({ host: "127.0.0.1", port: server.port, servername: "as.example", ca });
      socket.on("error", () => {});
      socket.on("data", (chunk) => {
        text += chunk.toString("latin1");
        socket.end();
      });
      socket.on("close", () => resolve(Number(/^HTTP\/1\.1 (\d+)/.exec(text)?.[1]) || "closed"));
      socket.write(Buffer.concat([Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1"), body]));
      return promise;
    },
    close: () => server.shutdown(),
  };
}
