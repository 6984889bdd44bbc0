/** Answers one question as the token endpoint would, with the consents that accompany the question. */
import { clock, makeClock } from "../../adapters/clock.ts";
import { hash } from "../../adapters/crypto/hash.ts";
import { random } from "../../adapters/crypto/random.ts";
import { type ExplainPorts, type Explanation, explain } from "../../flows/explain.ts";
import { ACCESS_TOKEN_SECONDS_MAX, GRANT_SECONDS } from "../../limits/tokens.ts";
import { MACHINE_GRANT_TYPES } from "../../modes.ts";
import type { Consent } from "../../policy/access.ts";
import type { Question } from "../../policy/question.ts";
import type { Rule } from "../../policy/rules.ts";
import type { ClientDocuments } from "../../ports.ts";
import { defined, ok } from "../../result.ts";
import { documentPlace } from "../../settings/client-metadata.ts";
import type { Client, Settings } from "../../settings/settings.ts";
import { AUTHORIZATION_CODE } from "../../spec/rfc6749.ts";
import { CLIENT_ID_PREFIX } from "../../spec/rfc7591.ts";

/** A consent of the question's subject to the question's actor. */
type ConsentOnRecord = Pick<Consent, "targets" | "scopes" | "details">;

export type Scenario = {
  question: Question;
  consents: readonly ConsentOnRecord[];
  /** The class of a client that registered itself, which is not in the configuration. */
  registrationClass?: string;
};

/** All questions of a run are answered for the same time. */
const nowMs = clock.nowMs();

export const answer = (settings: Settings, scenario: Scenario): Promise<Explanation> =>
  explain(portsOfFile(settings, scenario), withTimes(scenario.question));

/** What the reader of questions finds without a store. */
export function portsOfFile(settings: Settings, scenario: Scenario): ExplainPorts {
  const { question, consents } = scenario;
  return {
    clock: makeClock(() => nowMs),
    random,
    settings: () => settings,
    clients: {
      find: async (id) => settings.clients.get(id) ?? (id === question.client ? stored(scenario) : undefined),
    },
    clientDocuments: documents(settings, scenario),
    hash,
    // A file has no store, in which subjects are disabled.
    endings: { isEnded: async () => false },
    facts: {
      token: async () => undefined,
      claims: async () => undefined,
      consents: async (origin, actor): Promise<readonly Consent[]> =>
        consents.map((given, index) => ({ ...given, id: `given-${index}`, version: 1, origin, actor })),
    },
  };
}

/** PROD-2.1-2: a registered client or a metadata document is not in the file, so the question's values are assumed. */
function assumed({ question, registrationClass }: Scenario, source: Client["source"]): Client {
  const { client: clientId, workload } = question;
  return defined<Client>({
    clientId,
    source,
    auth: { method: "private_key_jwt", keys: [] },
    grantTypes: [...MACHINE_GRANT_TYPES, AUTHORIZATION_CODE],
    workload,
    registrationClass,
  });
}

function stored(scenario: Scenario): Client | undefined {
  return scenario.question.client.startsWith(CLIENT_ID_PREFIX)
    ? assumed(scenario, "registration")
    : undefined;
}

function documents(settings: Settings, scenario: Scenario): ClientDocuments {
  return {
    find: async (url) => {
      const place = documentPlace(url, settings);
      return place.ok ? ok(assumed(scenario, "metadata_document")) : place;
    },
  };
}

/**
 * Adds `iat` and `exp` where they are absent: issued now, and valid for longer than any token that is issued for it.
 */
function withTimes(question: Question): Question {
  const { subjectClaims, grantClaims } = question;
  const iat = Math.floor(nowMs / 1000);
  return defined<Question>({
    ...question,
    subjectClaims: subjectClaims && { iat, exp: iat + 2 * ACCESS_TOKEN_SECONDS_MAX, ...subjectClaims },
    grantClaims: grantClaims && { iat, exp: iat + GRANT_SECONDS, ...grantClaims },
  });
}

/** Every rule of a policy, by id. */
export function rulesOf({ policy }: Settings): readonly Rule[] {
  const rules = new Set([...policy.byWho.values()].flatMap(({ rules }) => rules));
  return [...rules].sort((a, b) => (a.id < b.id ? -1 : 1));
}
