/**
 * What servers load and call, by V8's coverage. Loaded before everything else in a process that writes it
 * (NODE_V8_COVERAGE): a server writes what it called in three parts, before its first connection, from then on, and
 * after the signal that stops it.
 */
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { stopCoverage, takeCoverage } from "node:v8";

const SRC = join(import.meta.dirname, "../../src");
const ROOT = `${pathToFileURL(SRC)}/`;
const FIRST_CONNECTION = "net.server.socket";

function writeStart(): void {
  unsubscribe(FIRST_CONNECTION, writeStart);
  takeCoverage();
}

if (process.env.NODE_V8_COVERAGE !== undefined) {
  if (process.argv[1] === join(SRC, "main.ts")) {
    subscribe(FIRST_CONNECTION, writeStart);
    process.once("SIGTERM", () => takeCoverage());
  } else {
    // A test that starts servers is not asked for its own.
    stopCoverage();
  }
}

/** The environment of a server, or of a test that starts some, that write into this folder. */
export const writesCoverage = (folder: string): Record<string, string> => ({
  NODE_V8_COVERAGE: folder,
  NODE_OPTIONS: `${process.env.NODE_OPTIONS ?? ""} --import=${import.meta.url}`,
});

/** Files of src, by their path in it. */
export type Coverage = {
  loaded: Set<string>;
  /** Those with a function. */
  functional: Set<string>;
  /** Those of which a function was called before the first connection. */
  starting: Set<string>;
  /** Those of which one was called from then on, until the server was told to stop. */
  serving: Set<string>;
};

type Script = {
  url: string;
  functions: { functionName: string; ranges: [{ startOffset: number; count: number }] }[];
};

/** What servers that have ended wrote into this folder. */
export function readCoverage(folder: string): Coverage {
  const found = { loaded: new Set<string>(), functional: new Set<string>() };
  const called = [new Set<string>(), new Set<string>()] as const;
  // A name has the process and the time.
  const parts = Map.groupBy(readdirSync(folder).sort(), (name) => name.split("-")[1]);
  for (const [index, name] of [...parts.values()].flatMap((names) => [...names.entries()])) {
    const { result } = JSON.parse(readFileSync(join(folder, name), "utf8")) as { result: Script[] };
    for (const { url, functions } of result) {
      if (!url.startsWith(ROOT)) continue;
      const file = url.slice(ROOT.length);
      // Not the module itself, which begins at 0, and not the fields of a class, which may be that of a fault.
      const own = functions.filter(
        ({ functionName, ranges: [{ startOffset }] }) =>
          startOffset > 0 && functionName !== "<instance_members_initializer>",
      );
      found.loaded.add(file);
      if (own.length > 0) found.functional.add(file);
      if (own.some(({ ranges: [{ count }] }) => count > 0)) called[index]?.add(file);
    }
  }
  return { ...found, starting: called[0], serving: called[1] };
}
