/** The server of `npm start`, with the stand-in provider of the development profile in its process. */
import { openStandIn } from "./stand-in.ts";

try {
  // Before the server, which asks it for its metadata at once.
  await openStandIn("data");
} catch (fault) {
  const { code, address, port } = fault as NodeJS.ErrnoException & { address?: string; port?: number };
  if (code !== "EADDRINUSE") throw fault;
  console.error(`${address}:${port} is in use: stop the process that listens there.`);
  process.exit(1);
}
await import("../src/main.ts");
