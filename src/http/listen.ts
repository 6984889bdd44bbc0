/** Binds a server to its address; a port that is taken is a fault (EADDRINUSE), unless both processes share it. */
import type { AddressInfo, Server } from "node:net";

export async function listen(
  server: Server,
  { host, port, reusePort = false }: { host: string; port: number; reusePort?: boolean },
): Promise<AddressInfo> {
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen({ host, port, reusePort }, () => {
      server.off("error", reject);
      resolve();
    });
  });
  return server.address() as AddressInfo;
}
