/** Mandate, started as its users start it: from these sources, or the program that `MANDATE` names. */
import { randomBytes } from "node:crypto";
import { dirname, join } from "node:path";
import { FEATURES } from "../parties.ts";
import { startProcess } from "../process.ts";
import type { Scene } from "../scene.ts";
import type { Adapter, Started } from "../types.ts";
import { configurationOf } from "./mandate-configuration.ts";

const PROGRAM = process.env.MANDATE ?? join(import.meta.dirname, "../../../src/main.ts");

/** `program` is the file that Node runs. */
export const startMandate =
  (program: string) =>
  async (scene: Scene): Promise<Started> => {
    const configuration = configurationOf(scene, [await scene.freePort(), await scene.freePort()]);
    scene.write("ca.pem", scene.ca);
    scene.write("key.pem", scene.server.key);
    scene.write("cert.pem", scene.server.cert);
    scene.write("bundle.json", scene.trustDomain.bundle);
    scene.write("encryption-key", randomBytes(32).toString("base64url"));
    const file = scene.write("config.json", configuration);
    const permissions = [
      ...["--permission", "--allow-net", `--allow-fs-read=${dirname(dirname(program))}`],
      ...[`--allow-fs-read=${scene.folder}`, `--allow-fs-write=${scene.folder}/*`],
    ];
    const words = ["--disable-warning=ExperimentalWarning", ...permissions, program, "--config", file];
    const { stop } = await startProcess([process.execPath, ...words], /listens on .*:\d+\.(\n|$)/);
    const { issuer } = configuration;
    return { issuer, ca: scene.ca, signals: `${issuer}/signals/idp`, stop };
  };

export const adapter: Adapter = { server: "Mandate", offers: FEATURES, start: startMandate(PROGRAM) };
