/**
 * A real browser: the Chromium that the package @sparticuz/chromium carries, without a window, driven by the DevTools
 * protocol (https://chromedevtools.github.io/devtools-protocol/).
 */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { brotliDecompressSync } from "node:zlib";
import { endsWithThis, removedWithThis } from "../../scripts/guard.ts";

const CACHE = join(import.meta.dirname, "../../node_modules/.cache");
const START_MS = 120_000;
const STEP_MS = 120_000;

export type Tab = {
  /** Loads this address; with the page that was loaded in the end. */
  open(url: string): Promise<void>;
  /** What it does makes the browser load another page, for which this waits. */
  leave(act: () => Promise<unknown>): Promise<void>;
  /** The value of an expression in the page, as JSON. */
  read<T>(expression: string): Promise<T>;
  /** Presses and releases a key, such as "Tab", "Enter" or " ". */
  press(key: "Tab" | "Enter" | " ", shift?: boolean): Promise<void>;
  /** A mouse click on the middle of the first element that fits. */
  click(selector: string): Promise<void>;
  size(width: number, height?: number): Promise<void>;
  /** The colour scheme that the user prefers. */
  scheme(scheme: "light" | "dark"): Promise<void>;
  /** The languages that the user prefers. */
  language(accept: string): Promise<void>;
  /** PNG of the whole page in this file, and how that is to what was there; then the former picture is kept beside it. */
  picture(file: string): Promise<"new" | "same" | "changed">;
  /** What the browser complained of: its console, and requests that it refused. */
  complaints: string[];
  /** The URL of every request, in their order. */
  requests: string[];
  send(method: string, parameters?: object): Promise<Record<string, unknown>>;
};

export type Chromium = {
  /** A tab with cookies of its own. */
  tab(): Promise<Tab>;
  stop(): Promise<void>;
};

/** Why there is no browser here. */
export type NoBrowser = { missing: string };

/**
 * `hosts` leads names to ports of this machine; beside localhost no other name is found. Certificates are not checked: who trusts the
 * authority of a test is a matter of the other tests.
 */
export async function startChromium(hosts: Record<string, number>): Promise<Chromium | NoBrowser> {
  if (process.platform !== "linux" || process.arch !== "x64") {
    return { missing: `the package has no browser for ${process.platform} on ${process.arch}` };
  }
  const program = unpack();
  if (program === undefined) return { missing: "the package @sparticuz/chromium is not installed" };
  const profile = removedWithThis(mkdtempSync(join(tmpdir(), "mandate-browser-")));
  const rules = Object.entries(hosts).map(([host, port]) => `MAP ${host} 127.0.0.1:${port}`);
  const flags = [
    "--headless=shell",
    "--no-sandbox",
    "--no-zygote",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--no-first-run",
    "--no-proxy-server",
    "--disable-background-networking",
    "--disable-component-update",
    "--ignore-certificate-errors",
    `--host-resolver-rules=${[...rules, "MAP * ~NOTFOUND", "EXCLUDE localhost", "EXCLUDE 127.0.0.1"].join(",")}`,
    "--remote-debugging-port=0",
    `--user-data-dir=${profile}`,
    "about:blank",
  ];
  const folder = dirname(program);
  // One font, so that pages are as wide on every machine, also where there is none.
  const fonts = join(profile, "fonts.conf");
  writeFileSync(
    fonts,
    `<?xml version="1.0"?><fontconfig><dir>${folder}/fonts</dir><cachedir>${profile}/fonts</cachedir></fontconfig>`,
  );
  const libraries = [process.env.LD_LIBRARY_PATH, join(folder, "lib")].filter(Boolean).join(":");
  const child = endsWithThis(
    spawn(program, flags, {
      stdio: ["ignore", "ignore", "pipe"],
      env: { ...process.env, HOME: profile, LD_LIBRARY_PATH: libraries, FONTCONFIG_FILE: fonts },
    }),
  );
  const end = async (): Promise<void> => {
    if (child.exitCode === null && child.signalCode === null) {
      const exited = once(child, "exit");
      child.kill("SIGKILL");
      await exited;
    }
    rmSync(profile, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
  };
  const address = await addressOf(child);
  if ("missing" in address) {
    await end();
    return address;
  }
  const protocol = await connect(address.url);
  return {
    tab: () => openTab(protocol),
    async stop() {
      protocol.close();
      await end();
    },
  };
}

/** Once for each version of the package, because that takes seconds. Undefined where the package is not installed. */
function unpack(): string | undefined {
  const manifest = fileOf("@sparticuz/chromium", "../package.json");
  if (manifest === undefined) return undefined;
  const { version } = JSON.parse(readFileSync(manifest, "utf8"));
  const folder = join(CACHE, `chromium-${version}`);
  const program = join(folder, "chromium");
  if (existsSync(program)) return program;
  const packed = join(dirname(manifest), "bin");
  const read = (name: string): Buffer => brotliDecompressSync(readFileSync(join(packed, name)));
  mkdirSync(CACHE, { recursive: true });
  const fresh = mkdtempSync(join(CACHE, "unpacking-"));
  for (const [name, place] of [
    ["al2023.tar.br", fresh],
    ["fonts.tar.br", join(fresh, "fonts")],
  ] as const) {
    mkdirSync(place, { recursive: true });
    execFileSync("tar", ["-x", "-C", place], { input: read(name) });
  }
  writeFileSync(join(fresh, "chromium"), read("chromium.br"), { mode: 0o755 });
  // As one step: a run that was interrupted leaves no half of it, and of two at the same time one is first.
  try {
    renameSync(fresh, folder);
  } catch (fault) {
    rmSync(fresh, { recursive: true });
    if (!existsSync(program)) throw fault;
  }
  return program;
}

/** A file of a package, by its place beside the package's entry. */
export function fileOf(name: string, beside: string): string | undefined {
  try {
    return fileURLToPath(new URL(beside, import.meta.resolve(name)));
  } catch {
    return undefined;
  }
}

async function addressOf({ stderr }: ChildProcess): Promise<{ url: string } | NoBrowser> {
  const { promise, resolve } = Promise.withResolvers<{ url: string } | NoBrowser>();
  const said: string[] = [];
  const fail = (why: string): void => resolve({ missing: `${why}: ${said.slice(-3).join(" / ")}` });
  if (stderr === null) return { missing: "its messages cannot be read" };
  createInterface({ input: stderr }).on("line", (line) => {
    said.push(line);
    const url = /^DevTools listening on (ws:\S+)/.exec(line)?.[1];
    if (url !== undefined) resolve({ url });
  });
  const timer = setTimeout(() => fail("the browser did not start"), START_MS);
  stderr.once("close", () => fail("the browser ended"));
  return promise.finally(() => clearTimeout(timer));
}

// --- the protocol -----------------------------------------------------------------------------------------------

type Params = Record<string, unknown>;
type Listener = (method: string, params: Params) => void;
type Protocol = {
  send(method: string, params?: object, session?: string): Promise<Params>;
  /** Calls with every event of a session. */
  listen(session: string, listener: Listener): void;
  close(): void;
};

async function connect(url: string): Promise<Protocol> {
  const socket = new WebSocket(url);
  const waiting = new Map<number, PromiseWithResolvers<Params>>();
  const listeners = new Map<string, Listener>();
  let count = 0;
  socket.addEventListener("message", ({ data }) => {
    const { id, result, error, method, params, sessionId } = JSON.parse(String(data));
    if (id === undefined) return listeners.get(sessionId)?.(method, params);
    if (error === undefined) waiting.get(id)?.resolve(result);
    else waiting.get(id)?.reject(new Error(`the browser: ${error.message}`));
    waiting.delete(id);
  });
  await once(socket, "open");
  return {
    send(method, params = {}, sessionId) {
      const answer = Promise.withResolvers<Params>();
      waiting.set(++count, answer);
      socket.send(JSON.stringify({ id: count, method, params, sessionId }));
      return inTime(answer.promise, method);
    },
    listen: (session, listener) => void listeners.set(session, listener),
    close: () => socket.close(),
  };
}

function inTime<T>(promise: Promise<T>, what: string): Promise<T> {
  const late = Promise.withResolvers<T>();
  const timer = setTimeout(() => late.reject(new Error(`no answer to ${what}`)), STEP_MS);
  return Promise.race([promise, late.promise]).finally(() => clearTimeout(timer));
}

const KEYS = {
  Tab: { key: "Tab", code: "Tab", windowsVirtualKeyCode: 9 },
  Enter: { key: "Enter", code: "Enter", windowsVirtualKeyCode: 13, text: "\r" },
  " ": { key: " ", code: "Space", windowsVirtualKeyCode: 32, text: " " },
} as const;

async function openTab(protocol: Protocol): Promise<Tab> {
  const { browserContextId } = await protocol.send("Target.createBrowserContext");
  const { targetId } = await protocol.send("Target.createTarget", { url: "about:blank", browserContextId });
  const attached = await protocol.send("Target.attachToTarget", { targetId, flatten: true });
  const session = String(attached.sessionId);
  const send = (method: string, params: object = {}) => protocol.send(method, params, session);
  const complaints: string[] = [];
  const requests: string[] = [];
  let loaded = Promise.withResolvers<void>();
  protocol.listen(session, (method, params) => {
    const { entry, request } = params as { entry?: { text: string }; request?: { url: string } };
    if (method === "Page.loadEventFired") loaded.resolve();
    if (method === "Log.entryAdded") complaints.push(entry?.text ?? "");
    if (method === "Network.requestWillBeSent") requests.push(request?.url ?? "");
  });
  for (const domain of ["Page", "Network", "Log", "Runtime", "DOM"]) await send(`${domain}.enable`);

  const leave = async (act: () => Promise<unknown>): Promise<void> => {
    loaded = Promise.withResolvers<void>();
    await act();
    await inTime(loaded.promise, "a page that loads");
  };
  const read = async <T>(expression: string): Promise<T> => {
    const { result, exceptionDetails } = (await send("Runtime.evaluate", {
      expression,
      awaitPromise: true,
      returnByValue: true,
    })) as { result: { value: T }; exceptionDetails?: { exception: { description: string } } };
    if (exceptionDetails !== undefined) throw new Error(exceptionDetails.exception.description);
    return result.value;
  };
  return {
    complaints,
    requests,
    send,
    leave,
    read,
    open: (url) => leave(() => send("Page.navigate", { url })),
    async press(key, shift = false) {
      const event = { ...KEYS[key], modifiers: shift ? 8 : 0 };
      await send("Input.dispatchKeyEvent", { type: "keyDown", ...event });
      await send("Input.dispatchKeyEvent", { type: "keyUp", ...event });
    },
    async click(selector) {
      const at = await read<{ x: number; y: number }>(`(() => {
        const element = document.querySelector(${JSON.stringify(selector)});
        element.scrollIntoView({ block: "center" });
        const { x, y, width, height } = element.getBoundingClientRect();
        return { x: x + width / 2, y: y + height / 2 };
      })()`);
      const mouse = { ...at, button: "left", clickCount: 1 };
      await send("Input.dispatchMouseEvent", { type: "mousePressed", ...mouse });
      await send("Input.dispatchMouseEvent", { type: "mouseReleased", ...mouse });
    },
    async size(width, height = 800) {
      const mobile = width < 600;
      await send("Emulation.setDeviceMetricsOverride", { width, height, deviceScaleFactor: 1, mobile });
    },
    async scheme(value) {
      const features = [{ name: "prefers-color-scheme", value }];
      await send("Emulation.setEmulatedMedia", { features });
    },
    async language(accept) {
      await send("Network.setExtraHTTPHeaders", { headers: { "Accept-Language": accept } });
    },
    async picture(file) {
      const { data } = await send("Page.captureScreenshot", {
        captureBeyondViewport: true,
        optimizeForSpeed: true,
      });
      const picture = Buffer.from(String(data), "base64");
      mkdirSync(dirname(file), { recursive: true });
      const is = !existsSync(file) ? "new" : readFileSync(file).equals(picture) ? "same" : "changed";
      if (is === "changed") renameSync(file, file.replace(/\.png$/, ".before.png"));
      if (is !== "same") writeFileSync(file, picture);
      return is;
    },
  };
}
