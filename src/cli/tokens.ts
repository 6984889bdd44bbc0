/** `mandate tokens`: ends tokens by what they have in common, shows one, and lists the subjects that are disabled. */
import { openClients } from "../adapters/clients/clients.ts";
import { clock } from "../adapters/clock.ts";
import { hash } from "../adapters/crypto/hash.ts";
import { REASONS } from "../audit/reasons.ts";
import { asEvent, type EndingPorts, enableSubject, endTokens, previewEnding } from "../flows/endings.ts";
import { endedJson, tokenJson } from "../flows/record-json.ts";
import { within } from "../flows/standing.ts";
import { EXIT } from "../limits/process.ts";
import type { Origin } from "../policy/access.ts";
import type { EndingSelector } from "../policy/endings.ts";
import { parseRevocation } from "../policy/revocation.ts";
import type { Journal } from "../ports.ts";
import type { TokenFacts, TokenRecord } from "../records.ts";
import { defined, err, ok, type Result } from "../result.ts";
import type { JsonObject } from "../spec/rfc8259.ts";
import { byOperator, recordAccess, recordEntry } from "./admin-log.ts";
import { FORMATS } from "./audit/trail.ts";
import { type Admin, type Command, onStore } from "./command.ts";
import { showDisabled } from "./disabled.ts";
import { readFormat } from "./formats.ts";
import type { CommandArguments } from "./options.ts";
import { endedText, fields, jsonLine, time, word } from "./text.ts";

/** The page is large, because each page counts what is left behind it. */
const PAGE = 20_000;

export function tokensCommand(given: CommandArguments): Result<Command, string> {
  const [jti = ""] = given.args;
  const json = given.has("json");
  if (given.form === "disabled") {
    const format = readFormat(given, FORMATS);
    return format.ok ? onStore(given, (admin) => showDisabled(admin, format.value)) : format;
  }
  if (given.form === "show") return onStore(given, (admin) => showOne(admin, jti, json));
  if (given.form === "enable") {
    const [iss = "", sub = ""] = [given.one("issuer"), given.one("subject")];
    return onStore(given, (admin) => enableByCommand(admin, { iss, sub }, json));
  }
  const selector = readSelector(given);
  if (!selector.ok) return selector;
  const run = given.has("dry-run") ? previewByCommand : endByCommand;
  return onStore(given, (admin) => run(admin, selector.value, json));
}

/** Reads exactly one selector; `--issuer` and `--subject` together are one. */
function readSelector(given: CommandArguments): Result<EndingSelector, string> {
  const [issuer, subject, upTo] = ["issuer", "subject", "up-to"].map(given.one);
  const everything = given.has("everything");
  const upToSeconds = upTo === undefined ? undefined : Math.ceil(Date.parse(upTo) / 1000);
  if (upTo !== undefined && !((everything || subject !== undefined) && Number.isInteger(upToSeconds))) {
    return err("--up-to requires --everything or --subject, and a time like 2026-11-21T08:00:00Z");
  }
  if (subject !== undefined && issuer === undefined) return err("--subject requires --issuer");
  const named = defined<JsonObject>({
    token: given.one("jti"),
    subject:
      subject === undefined || issuer === undefined
        ? undefined
        : defined<JsonObject>({ iss: issuer, sub: subject, upTo: upToSeconds }),
    issuer: subject === undefined ? issuer : undefined,
    actor: given.one("actor"),
    client: given.one("client"),
    trustDomain: given.one("trust-domain"),
    rule: given.one("rule"),
    consent: given.one("consent"),
    grant: given.one("grant"),
    everyGrant: given.has("all-refresh") ? {} : undefined,
    everything: everything ? defined<JsonObject>({ upTo: upToSeconds }) : undefined,
  });
  if (Object.keys(named).length !== 1) {
    return err("give exactly one option that selects tokens; --issuer and --subject together count as one");
  }
  if (given.has("disable") && (subject === undefined || upTo !== undefined)) {
    return err("--disable requires --issuer and --subject, and goes without --up-to");
  }
  // Only a job belongs to a server, and `mandate jobs end` ends it.
  const order = parseRevocation(given.has("disable") ? { ...named, disabled: true } : named, "");
  return order.ok ? ok(order.value.selector) : err(order.error.join("; "));
}

export const endingPortsOf = ({ settings, store }: Admin): EndingPorts & { journal: Journal } => ({
  clock,
  hash,
  settings: () => settings,
  clients: openClients(() => settings, store.clients),
  facts: store.facts,
  endings: store.endings,
  families: store.families,
  sessions: store.shortLived,
  journal: { record: (entry) => recordEntry(store, entry) },
});

async function endByCommand(admin: Admin, selector: EndingSelector, json: boolean): Promise<number> {
  tellUnknownIssuer(admin, selector);
  const ended = await endTokens(
    endingPortsOf(admin),
    selector,
    asEvent(selector, byOperator(admin.settings)),
  );
  const { count, more, cutOffMs, acceptedUntilSeconds: until, streams, held } = ended;
  if (json) {
    admin.print(jsonLine(endedJson(ended)));
    return EXIT.done;
  }
  const upTo = cutOffMs === undefined ? "" : `, and every token that is issued up to ${time(cutOffMs)}`;
  const valid = `${more ? "at least " : ""}${count === 1 ? "1 token that was" : `${count} tokens that were`}`;
  admin.print(`Ended ${endedText({ ...selector })}: ${valid} still valid${upTo}.`);
  if (held !== undefined)
    admin.print(
      `Refresh tokens of ${held.families} clicks and ${held.sessions} sessions of the user ended with it.`,
    );
  if (selector.by === "grant" || selector.by === "every_grant") {
    admin.print(
      "Refresh tokens that were issued before are refused from now on, whether or not a token was still valid.",
    );
  }
  admin.print(
    selector.by === "subject" && selector.disabled
      ? "The subject is kept out until it is enabled again (mandate tokens enable)."
      : "To keep a party out, change the configuration, or add --disable for a subject.",
  );
  if (until !== undefined)
    admin.print(
      `Resource servers that verify tokens offline accept an ended token until it expires, at the latest ${time(until * 1000)}.`,
    );
  if (streams.length > 0) admin.print(`The servers tell ${streams.map(word).join(", ")} by security events.`);
  return EXIT.done;
}

/** The ending is recorded all the same: an issuer may have been removed, and its tokens are still on record. */
function tellUnknownIssuer({ settings, printError }: Admin, selector: EndingSelector): void {
  const iss = "iss" in selector ? selector.iss : selector.by === "issuer" ? selector.issuer : undefined;
  if (iss === undefined || iss === settings.issuer || settings.trustedIssuers.has(iss)) return;
  printError(
    `Note: ${word(iss)} is neither this server nor in trustedIssuers. A slash or a letter more names another issuer, and nothing of it is on record.`,
  );
}

async function enableByCommand(admin: Admin, subject: Origin, json: boolean): Promise<number> {
  const enabled = await enableSubject(endingPortsOf(admin), subject, byOperator(admin.settings));
  if (json)
    admin.print(jsonLine(defined<JsonObject>({ enabled: enabled !== undefined, event: enabled?.eventId })));
  else if (enabled === undefined)
    admin.printError(
      `The subject ${word(subject.sub)} of ${word(subject.iss)} is not disabled by command, API or its issuer. What the configuration disables (disabledSubjects) is enabled there.`,
    );
  else
    admin.print(
      `Enabled ${word(subject.sub)} of ${word(subject.iss)}. What it had before stays ended: the user signs in again.`,
    );
  return enabled === undefined ? EXIT.refused : EXIT.done;
}

async function previewByCommand(admin: Admin, selector: EndingSelector, json: boolean): Promise<number> {
  const ports = endingPortsOf(admin);
  await recordAccess(admin, { command: "tokens end --dry-run", ends: { ...selector } });
  let count = 0;
  for (let afterJti: string | undefined; ; ) {
    const page = await previewEnding(ports, selector, defined({ limit: PAGE, afterJti }));
    for (const token of page.tokens) admin.print(json ? jsonLine(tokenJson(token)) : tokenLine(token));
    count += page.tokens.length;
    afterJti = page.tokens.at(-1)?.jti;
    if (page.count <= PAGE) break;
  }
  const keepsOut = selector.by === "subject" && selector.disabled;
  if (!json)
    admin.print(
      `Would end ${endedText({ ...selector })}: ${count} token${count === 1 ? "" : "s"}${keepsOut ? ", and keep the subject out until it is enabled again" : ""}. Nothing was ended.`,
    );
  return EXIT.done;
}

async function showOne(admin: Admin, jti: string, json: boolean): Promise<number> {
  const ports = endingPortsOf(admin);
  await recordAccess(admin, { command: "tokens show", jti });
  const facts = await ports.facts.token(jti);
  if (facts === undefined) {
    admin.printError(
      `There is no record of a token ${word(jti)}: it never existed, or it expired an hour ago or more.`,
    );
    return EXIT.refused;
  }
  const tokens = [...facts.ancestors.toReversed(), facts.record];
  const state = await stateOf(ports, facts);
  if (json) admin.print(jsonLine({ tokens: tokens.map(tokenJson), ...state }));
  else for (const line of [...tokens.map(tokenLine), stateLine(state)]) admin.print(line);
  return EXIT.done;
}

type TokenState = {
  stands: boolean;
  ended?: { at_ms: number; event: string };
  refused?: keyof typeof REASONS;
};

async function stateOf(ports: EndingPorts, facts: TokenFacts): Promise<TokenState> {
  const { ended } = facts;
  if (ended !== undefined) return { stands: false, ended: { at_ms: ended.atMs, event: ended.eventId } };
  const stands = await within(ports, facts, clock.nowSeconds());
  return stands.ok ? { stands: true } : { stands: false, refused: stands.error };
}

function stateLine({ ended, refused }: TokenState): string {
  if (ended !== undefined) return `It was ended at ${time(ended.at_ms)} by event ${word(ended.event)}.`;
  return refused === undefined ? "It is valid." : `It is refused (${refused}): ${REASONS[refused]}.`;
}

export function tokenLine(record: TokenRecord): string {
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
