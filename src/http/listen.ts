/** Binds a server to its address; a port that is taken is a fault (EADDRINUSE). */
import type { AddressInfo, Server } from "node:net";

export async function listen(
  server: Server,
  { host, port }: { host: string; port: number },
): Promise<AddressInfo> {
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen({ host, port }, () => {
      server.off("error", reject);
      resolve();
    });
  });
  return server.address() as AddressInfo;
}
