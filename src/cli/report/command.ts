/** `mandate report`: reads the trail once, and writes the pages and their data into a folder. */
import { existsSync, mkdirSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { clock } from "../../adapters/clock.ts";
import { hash } from "../../adapters/crypto/hash.ts";
import { previewEnding } from "../../flows/endings.ts";
import { EXIT } from "../../limits/process.ts";
import { gather } from "../../policy/replay.ts";
import type { Result } from "../../result.ts";
import { isWorkloadPattern } from "../../spec/workload-grant.ts";
import type { Admin, Command } from "../command.ts";
import type { CommandArguments } from "../options.ts";
import { type OverTrail, overTrail, type Period, readPeriod, recordedOptions } from "../policy/over-trail.ts";
import { digest } from "../policy/replay.ts";
import { recordedIn } from "../policy/trail-source.ts";
import { worldOf } from "../policy/world.ts";
import { word } from "../text.ts";
import { endingPortsOf } from "../tokens.ts";
import { countEvent, nothingCounted } from "./gather.ts";
import { type AgentRow, type Model, modelOf, showModel } from "./model.ts";
import { pagesOf } from "./pages.ts";
import { document } from "./parts.ts";
import { REPORT_STYLE } from "./style.ts";

/** So many agents are told with their living tokens, those that are used the most. */
const LIVING_MAX = 100;

export function reportCommand(given: CommandArguments): Result<Command, string> {
  const [folder = ""] = given.args;
  const nowMs = clock.nowMs();
  const period = readPeriod(given, nowMs, "30d");
  if (!period.ok) return period;
  const look = { command: "report", ...recordedOptions(given, ["since", "until"]) };
  return overTrail(given, look, (on) => report(on, folder, period.value, nowMs));
}

async function report(on: OverTrail, folder: string, period: Period, nowMs: number): Promise<number> {
  const { settings, source, admin, print, printError } = on;
  if (existsSync(folder) && !(statSync(folder).isDirectory() && readdirSync(folder).length === 0)) {
    printError(`${word(folder)} is not an empty folder, and nothing was written: give another name`);
    return EXIT.refused;
  }
  const trail = gather(digest);
  for await (const told of recordedIn(source.told())) trail.take(told);
  const counted = nothingCounted();
  for await (const event of recordedIn(source.events(period.fromMs), period)) countEvent(counted, event);
  const times = { madeMs: nowMs, fromMs: period.fromMs, toMs: Math.min(period.toMs, nowMs) };
  const made = modelOf(settings, await worldOf(settings), trail, counted, times);
  const model = admin === undefined ? made : { ...made, agents: await withLiving(admin, made.agents) };
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  writePages(folder, model);
  print(
    `${word(join(folder, "index.html"))}: ${counted.events} events, ${counted.agents.size} agents, ${counted.people.by.size} people.`,
  );
  return EXIT.done;
}

async function withLiving(admin: Admin, agents: Model["agents"]): Promise<Model["agents"]> {
  const ports = endingPortsOf(admin);
  const rows: AgentRow[] = [];
  for (const [index, agent] of agents.entries()) {
    const { id } = agent;
    if (index >= LIVING_MAX || id.endsWith("/*")) rows.push(agent);
    else {
      const by = isWorkloadPattern(id)
        ? ({ by: "actor", spiffeId: id } as const)
        : ({ by: "client", clientId: id } as const);
      rows.push({ ...agent, living: (await previewEnding(ports, by, { limit: 0 })).count });
    }
  }
  return rows;
}

function writePages(folder: string, model: Model): void {
  const write = (file: string, text: string): void =>
    writeFileSync(join(folder, file), text, { flag: "wx", mode: 0o600 });
  const digest = Buffer.from(hash.sha256(REPORT_STYLE), "base64url").toString("base64");
  for (const page of pagesOf(model)) write(page.file, document(page, model, digest));
  write("model.json", `${JSON.stringify(showModel(model))}\n`);
}
