/** `mandate tokens`: ends tokens by what they have in common, and shows one with what has become of it. */
import { openClients } from "../adapters/clients/clients.ts";
import { clock, hash } from "../adapters/crypto/system.ts";
import { REASONS } from "../audit/reasons.ts";
import type { EndingPorts } from "../flows/endings.ts";
import { endTokens, previewEnding } from "../flows/endings.ts";
import { within } from "../flows/standing.ts";
import type { EndingSelector } from "../policy/endings.ts";
import { parseRevocation } from "../policy/revocation.ts";
import type { Journal } from "../ports.ts";
import type { TokenFacts, TokenRecord } from "../records.ts";
import type { Result } from "../result.ts";
import { defined, err, ok } from "../result.ts";
import type { JsonObject } from "../spec/rfc8259.ts";
import type { Admin, Command } from "./command.ts";
import { onStore } from "./command.ts";
import type { CommandArguments } from "./options.ts";
import { describeOperator, describePolicy, recordAsAdmin, recordEntry } from "./record.ts";
import { fields, time, word } from "./text.ts";

/** Large, because each page counts what is left behind it. */
const PAGE = 20_000;

export function tokensCommand(given: CommandArguments): Result<Command, string> {
  const [jti = ""] = given.args;
  if (given.form === "show") return onStore(given, (admin) => showToken(admin, jti));
  const selector = readSelector(given);
  if (!selector.ok) return selector;
  const run = given.has("dry-run") ? previewByCommand : endByCommand;
  return onStore(given, (admin) => run(admin, selector.value));
}

/** Exactly one selector, of which `--issuer` and `--subject` together are one. */
function readSelector(given: CommandArguments): Result<EndingSelector, string> {
  const [issuer, subject, upTo] = ["issuer", "subject", "up-to"].map(given.one);
  const everything = given.has("everything");
  const upToSeconds = upTo === undefined ? undefined : Math.ceil(Date.parse(upTo) / 1000);
  if (upTo !== undefined && !(everything && Number.isInteger(upToSeconds))) {
    return err("--up-to is a time like 2026-11-21T08:00:00Z, and only for --everything");
  }
  if (subject !== undefined && issuer === undefined) return err("--subject requires --issuer");
  const order = parseRevocation(
    defined<JsonObject>({
      token: given.one("jti"),
      subject: subject === undefined || issuer === undefined ? undefined : { iss: issuer, sub: subject },
      issuer: subject === undefined ? issuer : undefined,
      actor: given.one("actor"),
      client: given.one("client"),
      trustDomain: given.one("trust-domain"),
      rule: given.one("rule"),
      consent: given.one("consent"),
      everything: everything ? defined<JsonObject>({ upTo: upToSeconds }) : undefined,
    }),
  );
  return order.ok ? ok(order.value.selector) : err(order.error.join("; "));
}

const portsOf = ({ settings, store }: Admin): EndingPorts & { journal: Journal } => ({
  clock,
  hash,
  settings: () => settings,
  clients: openClients(() => settings, store.clients),
  facts: store.facts,
  endings: store.endings,
  journal: { record: (entry) => recordEntry(store, entry) },
});

async function endByCommand(admin: Admin, selector: EndingSelector): Promise<number> {
  const policy = describePolicy(admin.settings);
  const by = { reason: "by_operator", policy, detail: describeOperator() } as const;
  const { count, more, cutOffMs } = await endTokens(portsOf(admin), selector, by);
  const upTo = cutOffMs === undefined ? "" : `, and what is issued up to ${time(cutOffMs)}`;
  admin.print(`Ended: ${more ? "more than " : ""}${count} tokens that still stood${upTo}.`);
  admin.print("To keep a party out, change the configuration. Resource servers that verify tokens offline");
  admin.print("accept an ended token until it expires.");
  return 0;
}

async function previewByCommand(admin: Admin, selector: EndingSelector): Promise<number> {
  const ports = portsOf(admin);
  await recordLook(admin, { command: "tokens end --dry-run", ends: { ...selector } });
  let count = 0;
  for (let afterJti: string | undefined; ; ) {
    const page = await previewEnding(ports, selector, defined({ limit: PAGE, afterJti }));
    for (const token of page.tokens) admin.print(tokenLine(token));
    count += page.tokens.length;
    afterJti = page.tokens.at(-1)?.jti;
    if (page.count <= PAGE) break;
  }
  admin.print(`Would end: ${count} tokens. Nothing was ended.`);
  return 0;
}

/** AUDIT-D-6: recorded before anything is printed. */
async function recordLook({ settings, store }: Admin, detail: JsonObject): Promise<void> {
  await recordAsAdmin(store, {
    event: {
      type: "admin.access",
      outcome: "allow",
      reason: "by_operator",
      policy: describePolicy(settings),
      detail: { ...detail, ...describeOperator() },
    },
  });
}

async function showToken(admin: Admin, jti: string): Promise<number> {
  const ports = portsOf(admin);
  await recordLook(admin, { command: "tokens show", jti });
  const facts = await ports.facts.token(jti);
  if (facts === undefined) {
    admin.printError(
      `There is no record of a token ${word(jti)}: it never was, or it expired an hour ago or more.`,
    );
    return 1;
  }
  for (const ancestor of facts.ancestors.toReversed()) admin.print(tokenLine(ancestor));
  admin.print(tokenLine(facts.record));
  admin.print(await stateOf(ports, facts));
  return 0;
}

async function stateOf(ports: EndingPorts, facts: TokenFacts): Promise<string> {
  const { ended } = facts;
  if (ended !== undefined) return `It was ended at ${time(ended.atMs)} by event ${word(ended.eventId)}.`;
  const stands = await within(ports, facts, clock.nowSeconds());
  return stands.ok ? "It stands." : `It is refused (${stands.error}): ${REASONS[stands.error]}.`;
}

function tokenLine(record: TokenRecord): string {
  const { jti, clientId, origin, subject, audience, scope, chain, ruleId, consentId } = record;
  const rest = fields({
    client: word(clientId),
    subject: word(subject),
    issuer: word(origin.iss),
    chain: chain
      .toReversed()
      .map(({ sub }) => word(sub))
      .join(" → "),
    target: word(audience),
    scope: word(scope),
    rule: word(ruleId),
    consent: consentId === undefined ? undefined : word(consentId),
    issued: time(record.issuedAtSeconds * 1000),
    expires: time(record.expiresAtSeconds * 1000),
  });
  return `${word(jti)} ${rest}`;
}
