/** `mandate jobs create`: makes a job as an operator says (JOB-D-4). */
import { readJsonFile } from "../../config/json-file.ts";
import { type CreatePorts, createJob } from "../../flows/create-job.ts";
import { type JobPorts, readStatus } from "../../flows/jobs.ts";
import { jobJson } from "../../flows/record-json.ts";
import { EXIT } from "../../limits/process.ts";
import type { Origin } from "../../policy/access.ts";
import { defined, err, ok, type Result } from "../../result.ts";
import type { JsonObject } from "../../spec/rfc8259.ts";
import { byOperator } from "../admin-log.ts";
import type { Admin } from "../command.ts";
import { type CommandArguments, readWhole } from "../options.ts";
import { jsonLine } from "../text.ts";

/** The order as `POST /jobs` takes it, but for the details, which are in a file. */
export function readJobOptions(
  given: CommandArguments,
  subject: Origin | undefined,
): Result<JsonObject, string> {
  const [maxTokens, maxDepth] = [readWhole(given, "max-tokens"), readWhole(given, "max-depth")];
  if (!maxTokens.ok) return maxTokens;
  if (!maxDepth.ok) return maxDepth;
  const until = given.one("not-after");
  const notAfter = until === undefined ? undefined : Math.floor(Date.parse(until) / 1000);
  if (Number.isNaN(notAfter)) return err("--not-after is not a time like 2026-11-21T08:00:00Z");
  const [targets, agents] = [given.all("target"), given.all("agents")];
  return ok(
    defined<JsonObject>({
      client: given.one("client"),
      agent: given.one("actor"),
      subject: subject && { ...subject },
      title: given.one("title"),
      notAfter,
      targets: targets && [...targets],
      scopes: given.one("scope")?.split(" "),
      agents: agents && [...agents],
      maxTokens: maxTokens.value,
      maxDepth: maxDepth.value,
    }),
  );
}

export async function createByCommand(
  { settings, print, printError }: Admin,
  ports: JobPorts & CreatePorts,
  order: JsonObject,
  { details: file, json }: { details: string | undefined; json: boolean },
): Promise<number> {
  const details = file === undefined ? ok(undefined) : readJsonFile(file);
  if (!details.ok) {
    printError(details.error);
    return EXIT.unusable;
  }
  const whole = defined<JsonObject>({ ...order, details: details.value });
  const made = await createJob(ports, whole, { ...byOperator(settings), as: "operator" });
  if (!made.ok) {
    for (const problem of made.error.problems) printError(problem);
    return EXIT.refused;
  }
  print(json ? jsonLine(jobJson(await readStatus(ports, { job: made.value }))) : made.value.id);
  return EXIT.done;
}
