/**
 * The network of one machine of the cluster, as a process: each port leads to another one. Stopped by a signal, it is a
 * network that loses everything; connections stay open and are silent in both directions.
 */
import { connect, createServer, type Socket } from "node:net";

const ends = (near: Socket, far: Socket): void => {
  near.on("error", () => undefined).on("close", () => far.destroy());
};

for (const [port, to] of JSON.parse(process.argv[2] ?? "[]") as [number, number][]) {
  createServer((near) => {
    const far = connect({ host: "127.0.0.1", port: to });
    ends(near, far);
    ends(far, near);
    near.pipe(far).pipe(near);
  }).listen(port, "127.0.0.1");
}
process.on("disconnect", () => process.exit());
