/** Whether a listener could be opened now; what is opened for that is closed at once. */
import { once } from "node:events";
import { createServer } from "node:net";

/** Undefined if the port is free, else the code of the platform, such as EADDRINUSE. */
export async function whyNotFree({
  host,
  port,
  reusePort = false,
}: {
  host: string;
  port: number;
  reusePort?: boolean;
}): Promise<string | undefined> {
  const server = createServer();
  try {
    server.listen({ port, host, reusePort });
    await once(server, "listening");
    return undefined;
  } catch (fault) {
    return fault instanceof Error && "code" in fault ? String(fault.code) : "no reason given";
  } finally {
    if (server.listening) {
      server.close();
      await once(server, "close");
    }
  }
}
