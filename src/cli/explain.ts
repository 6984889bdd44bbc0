/** `mandate explain`: answers a policy question from a file with the code of `/policy/explain`. */
import { openClientDocuments } from "../adapters/clients/client-documents.ts";
import { openClients } from "../adapters/clients/clients.ts";
import { clock, timers } from "../adapters/clock.ts";
import { hash } from "../adapters/crypto/hash.ts";
import { random } from "../adapters/crypto/random.ts";
import { escapeUnsafe } from "../audit/safe-text.ts";
import { readJsonFile } from "../config/json-file.ts";
import { describeExplanation, explainRefusal, formatExplanation } from "../flows/explain.ts";
import { EXIT } from "../limits/process.ts";
import { formatSuggestion, showSuggestion } from "../policy/change-words.ts";
import { parseQuestion } from "../policy/question.ts";
import { smallestChange } from "../policy/smallest-change.ts";
import { ok, type Result } from "../result.ts";
import { operatorEvent, recordAsAdmin } from "./admin-log.ts";
import { type Admin, type Command, onStore } from "./command.ts";
import type { CommandArguments } from "./options.ts";

export function explainCommand(given: CommandArguments): Result<Command, string> {
  const [file = ""] = given.args;
  const json = given.has("json");
  return onStore(given, (admin) => explainFile(admin, file, json));
}

async function explainFile(
  { settings, store, print, printError }: Admin,
  file: string,
  asJson: boolean,
): Promise<number> {
  const json = readJsonFile(file);
  if (!json.ok) {
    printError(json.error);
    return EXIT.unusable;
  }
  const question = parseQuestion(json.value);
  if (!question.ok) {
    printError(`Invalid question in ${file}:`);
    for (const problem of question.error) printError(`  ${problem}`);
    return EXIT.unusable;
  }
  const inForce = () => settings;
  const budget = { begin: () => ok(() => undefined) };
  const ports = {
    clock,
    random,
    settings: inForce,
    facts: store.facts,
    hash,
    endings: store.endings,
    clients: openClients(inForce, store.clients),
    clientDocuments: openClientDocuments({ clock, timers, settings: inForce, budget }),
  };
  const { explanation, refused } = await explainRefusal(ports, question.value);
  await recordAsAdmin(store, {
    event: {
      ...operatorEvent(settings, "admin.access", describeExplanation(question.value, explanation)),
      reason: "explained",
    },
  });
  const { issued } = explanation;
  const claims = issued === undefined ? [] : JSON.stringify(issued.claims, null, 2).split("\n");
  // CHANGE-D-2: for the operator, never for the caller, so that the endpoint has none of it.
  const found = refused && smallestChange(settings.policy, refused);
  const suggestion = refused === undefined ? [] : formatSuggestion(found);
  const told = refused === undefined ? explanation : { ...explanation, suggestion: showSuggestion(found) };
  const lines = asJson
    ? [JSON.stringify(told)]
    : [...formatExplanation(explanation), ...suggestion, ...claims];
  for (const line of lines) print(escapeUnsafe(line));
  return issued === undefined ? EXIT.refused : EXIT.done;
}
