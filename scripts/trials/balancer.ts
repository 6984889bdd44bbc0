/**
 * A small balancer of connections, which follows the recipe for restarts in scripts/deploy/README.md: it asks `/readyz` of each
 * instance, and connects clients to those alone that were ready when asked last.
 */
import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { until } from "../../test/support/until.ts";

/** `health`: the port of the listener for operations; all are on this machine. */
export type Backend = { port: number; health: number };

export type Balancer = {
  /** Ends when this one is ready, and the balancer has seen it. */
  untilReady(backend: Backend): Promise<void>;
  /** Connections that an instance refused or reset, and clients that found no instance ready. */
  broken(): number;
  /** The longest time from one look at an instance to the next one. */
  slowestMs(): number;
  close(): void;
};

/** Asks each instance whether it is ready, now and every so often; `ready` are those that said so when asked last. */
export function watchReadiness(
  backends: readonly Backend[],
  everyMs: number,
): { ready: ReadonlySet<Backend>; slowestMs(): number; close(): void } {
  const ready = new Set<Backend>();
  const lookedMs = new Map(backends.map((backend) => [backend, performance.now()]));
  let slowestMs = 0;
  const look = async (backend: Backend): Promise<void> => {
    const signal = AbortSignal.timeout(everyMs);
    const answer = await fetch(`http://127.0.0.1:${backend.health}/readyz`, { signal }).catch(
      () => undefined,
    );
    await answer?.text().catch(() => undefined);
    slowestMs = Math.max(slowestMs, performance.now() - (lookedMs.get(backend) ?? 0));
    lookedMs.set(backend, performance.now());
    if (answer?.status === 200) ready.add(backend);
    else ready.delete(backend);
  };
  const lookAll = (): void => {
    for (const backend of backends) void look(backend);
  };
  lookAll();
  const timer = setInterval(lookAll, everyMs);
  return { ready, slowestMs: () => slowestMs, close: () => clearInterval(timer) };
}

export async function openBalancer(
  port: number,
  backends: readonly Backend[],
  everyMs: number,
): Promise<Balancer> {
  const { ready, slowestMs, close: endLooks } = watchReadiness(backends, everyMs);
  const sockets = new Set<Socket>();
  let broken = 0;
  let turn = 0;

  const join = (near: Socket): void => {
    const able = backends.filter((backend) => ready.has(backend));
    const backend = able[turn++ % Math.max(1, able.length)];
    if (backend === undefined) {
      broken += 1;
      near.destroy();
      return;
    }
    const far = connect({ port: backend.port, host: "127.0.0.1", allowHalfOpen: true });
    for (const socket of [near, far]) {
      sockets.add(socket);
      socket.once("close", () => {
        sockets.delete(socket);
        near.destroy();
        far.destroy();
      });
    }
    far.on("error", () => {
      broken += 1;
    });
    near.on("error", () => undefined);
    near.pipe(far).pipe(near);
  };
  const server = createServer({ allowHalfOpen: true }, join).listen(port, "127.0.0.1");
  await once(server, "listening");
  return {
    untilReady: (backend) => until(() => ready.has(backend), "an instance is ready"),
    broken: () => broken,
    slowestMs,
    close() {
      endLooks();
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}
