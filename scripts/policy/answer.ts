/** Asks a policy one question, as the token endpoint would, with the consents that come with the question. */
import { clock, random } from "../../src/adapters/crypto/system.ts";
import type { ExplainPorts, Explanation } from "../../src/flows/explain.ts";
import { explain } from "../../src/flows/explain.ts";
import { ACCESS_TOKEN_SECONDS_MAX, GRANT_SECONDS } from "../../src/limits.ts";
import type { Consent } from "../../src/policy/ask.ts";
import type { Question } from "../../src/policy/question.ts";
import type { Rule } from "../../src/policy/rules.ts";
import type { ClientDocuments } from "../../src/ports.ts";
import { err, ok } from "../../src/result.ts";
import type { Client, Settings } from "../../src/settings/settings.ts";
import { parseDocumentUrl } from "../../src/spec/cimd.ts";
import { CLIENT_ID_PREFIX, SERVED_GRANT_TYPES } from "../../src/spec/rfc7591.ts";

/** What the subject of the question has consented to, for whoever asks. */
export type Given = { targets: readonly string[]; scopes: readonly string[] };

export type Asked = {
  question: Question;
  consents: readonly Given[];
  /** Of a client that registered itself, and so is not in the configuration. */
  registrationClass?: string;
};

/** One moment for all questions of a run. */
const nowMs = clock.nowMs();

export function answer(settings: Settings, asked: Asked): Promise<Explanation> {
  const { question, consents } = asked;
  const ports: ExplainPorts = {
    clock: { nowMs: () => nowMs },
    random,
    settings: () => settings,
    clients: {
      find: async (id) => settings.clients.get(id) ?? (id === question.client ? stored(asked) : undefined),
    },
    clientDocuments: documents(settings, asked),
    facts: {
      token: async () => undefined,
      consents: async (origin, actor): Promise<readonly Consent[]> =>
        consents.map((given, index) => ({ ...given, id: `given-${index}`, version: 1, origin, actor })),
    },
  };
  return explain(ports, lasting(question));
}

/** PROD-2.1-2: of a client that the store or a document knows, the file knows nothing; so it is as it is asked for. */
function assumed({ question, registrationClass }: Asked, source: Client["source"]): Client {
  const { client: clientId, workload } = question;
  return {
    clientId,
    source,
    auth: { method: "private_key_jwt", keys: [] },
    grantTypes: SERVED_GRANT_TYPES,
    ...(workload !== undefined && { workload }),
    ...(registrationClass !== undefined && { registrationClass }),
  };
}

function stored(asked: Asked): Client | undefined {
  return asked.question.client.startsWith(CLIENT_ID_PREFIX) ? assumed(asked, "registration") : undefined;
}

function documents({ clientDocuments }: Settings, asked: Asked): ClientDocuments {
  return {
    find: async (url) => {
      const parsed = parseDocumentUrl(url);
      if (!parsed.ok) return err({ reason: parsed.error.kind });
      if (clientDocuments === undefined) return err({ reason: "documents_off" });
      if (clientDocuments.origins?.has(parsed.value.origin) === false) {
        return err({ reason: "document_origin_refused" });
      }
      return ok(assumed(asked, "metadata_document"));
    },
  };
}

/** A token without times was issued just now; a subject token outlives whatever is issued for it. */
function lasting(question: Question): Question {
  const { subjectClaims, grantClaims } = question;
  const iat = Math.floor(nowMs / 1000);
  return {
    ...question,
    ...(subjectClaims && {
      subjectClaims: { iat, exp: iat + 2 * ACCESS_TOKEN_SECONDS_MAX, ...subjectClaims },
    }),
    ...(grantClaims && { grantClaims: { iat, exp: iat + GRANT_SECONDS, ...grantClaims } }),
  };
}

/** Every rule of a policy, by id. */
export function rulesOf({ policy }: Settings): readonly Rule[] {
  const rules = new Set([...policy.byWho.values()].flat());
  return [...rules].sort((a, b) => (a.id < b.id ? -1 : 1));
}
