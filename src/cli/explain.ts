/** `mandate explain`: answers a policy question from a file with the code of `/policy/explain`. */
import { readFileSync } from "node:fs";
import { openClientDocuments } from "../adapters/clients/client-documents.ts";
import { openClients } from "../adapters/clients/clients.ts";
import { clock, timers } from "../adapters/clock.ts";
import { random } from "../adapters/crypto/random.ts";
import { escapeUnsafe } from "../audit/safe-text.ts";
import { describeExplanation, explain, formatExplanation } from "../flows/explain.ts";
import { CLAIMS_DEPTH_MAX } from "../limits/input.ts";
import { EXIT } from "../limits/process.ts";
import { parseQuestion } from "../policy/question.ts";
import type { Result } from "../result.ts";
import { ok } from "../result.ts";
import { decodeUtf8, parseJson } from "../spec/rfc8259.ts";
import { describeOperator, describePolicy, recordAsAdmin } from "./admin-log.ts";
import type { Admin, Command } from "./command.ts";
import { onStore } from "./command.ts";
import type { CommandArguments } from "./options.ts";

export function explainCommand(given: CommandArguments): Result<Command, string> {
  const [file = ""] = given.args;
  const json = given.has("json");
  return onStore(given, (admin) => explainFile(admin, file, json));
}

async function explainFile(
  { settings, store, print, printError }: Admin,
  file: string,
  json: boolean,
): Promise<number> {
  const content = decodeUtf8(readFileSync(file));
  const parsed = content.ok ? parseJson(content.value, CLAIMS_DEPTH_MAX) : content;
  const question = parsed.ok ? parseQuestion(parsed.value) : undefined;
  if (question === undefined || !question.ok) {
    printError(question === undefined ? `${file} is not valid JSON` : `Invalid question in ${file}:`);
    for (const problem of question?.error ?? []) printError(`  ${problem}`);
    return EXIT.unusable;
  }
  const inForce = () => settings;
  const budget = { begin: () => ok(() => undefined) };
  const ports = {
    clock,
    random,
    settings: inForce,
    facts: store.facts,
    clients: openClients(inForce, store.clients),
    clientDocuments: openClientDocuments({ clock, timers, settings: inForce, budget }),
  };
  const explanation = await explain(ports, question.value);
  await recordAsAdmin(store, {
    event: {
      type: "admin.access",
      outcome: "allow",
      reason: "explained",
      policy: describePolicy(settings),
      detail: { ...describeExplanation(question.value, explanation), ...describeOperator() },
    },
  });
  const { issued } = explanation;
  const claims = issued === undefined ? [] : JSON.stringify(issued.claims, null, 2).split("\n");
  const lines = json ? [JSON.stringify(explanation)] : [...formatExplanation(explanation), ...claims];
  for (const line of lines) print(escapeUnsafe(line));
  return issued === undefined ? EXIT.refused : EXIT.done;
}
