/** A proxy to a shared PostgreSQL that can be made to fail, as if that server were away. */
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

export type DatabaseProxy = {
  /** The database behind it, at the port of the proxy. */
  url: string;
  manner: "pass" | "close" | "close after data" | "never answer";
  /** Connections that were begun. */
  attempts: number;
  /** Called with each piece that a client says. */
  onPiece(): void;
  /** Ends every connection. */
  cut(): void;
  close(): void;
};

export async function openDatabaseProxy(url: string): Promise<DatabaseProxy> {
  const { hostname, port } = new URL(url);
  const open = new Set<Socket>();
  const listener = createServer((near) => {
    proxy.attempts++;
    open.add(near);
    near.on("error", () => {});
    near.on("data", () => proxy.onPiece());
    if (proxy.manner === "close") near.end();
    if (proxy.manner === "close after data") near.once("data", () => near.end());
    if (proxy.manner === "never answer") near.resume();
    if (proxy.manner !== "pass") return;
    const far = connect({ host: hostname, port: Number(port) });
    open.add(far);
    far.on("error", () => near.destroy());
    near.on("close", () => far.destroy());
    far.on("close", () => near.destroy());
    near.pipe(far).pipe(near);
  });
  listener.listen(0, "127.0.0.1");
  await once(listener, "listening");
  const ours = new URL(url);
  ours.port = String((listener.address() as AddressInfo).port);
  const proxy: DatabaseProxy = {
    url: ours.href,
    manner: "pass",
    attempts: 0,
    onPiece() {},
    cut() {
      for (const socket of open) socket.destroy();
    },
    close() {
      proxy.cut();
      listener.close();
    },
  };
  return proxy;
}
