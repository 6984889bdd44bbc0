/** Asks a policy one question, as the token endpoint would, with the consents that come with the question. */
import { clock, random } from "../../src/adapters/system.ts";
import type { ExplainPorts, Explanation } from "../../src/flows/explain.ts";
import { explain } from "../../src/flows/explain.ts";
import type { Consent } from "../../src/policy/decide.ts";
import type { Question } from "../../src/policy/question.ts";
import type { Rule } from "../../src/policy/rules.ts";
import type { Client, Settings } from "../../src/ports.ts";
import { ACCESS_TOKEN_SECONDS_MAX } from "../../src/spec/limits.ts";
import { CLIENT_CREDENTIALS } from "../../src/spec/rfc6749.ts";
import { TOKEN_EXCHANGE } from "../../src/spec/rfc8693.ts";

/** What the subject of the question has consented to, for whoever asks. */
export type Given = { targets: readonly string[]; scopes: readonly string[] };

export type Asked = { question: Question; consents: readonly Given[] };

/** One moment for all questions of a run. */
const nowMs = clock.nowMs();

export function answer(settings: Settings, { question, consents }: Asked): Promise<Explanation> {
  const ports: ExplainPorts = {
    clock: { nowMs: () => nowMs },
    random,
    settings: () => settings,
    clients: {
      find: async (id) => settings.clients.get(id) ?? (id === question.client ? stored(question) : undefined),
    },
    facts: {
      token: async () => undefined,
      consents: async (origin, actor): Promise<readonly Consent[]> =>
        consents.map((given, index) => ({ ...given, id: `given-${index}`, version: 1, origin, actor })),
    },
  };
  return explain(ports, lasting(question));
}

/** PROD-2.1-2: of a client that the store or a document knows, the file knows nothing; so it is as it is asked for. */
function stored({ client: clientId, workload }: Question): Client | undefined {
  if (!clientId.startsWith("c_") && !clientId.startsWith("https://")) return undefined;
  return {
    clientId,
    auth: { method: "private_key_jwt", keys: [] },
    grantTypes: [CLIENT_CREDENTIALS, TOKEN_EXCHANGE],
    ...(workload !== undefined && { workload }),
  };
}

/** A token without times was issued just now, and outlives whatever is issued for it. */
function lasting(question: Question): Question {
  const { subjectClaims } = question;
  if (subjectClaims === undefined) return question;
  const nowSeconds = Math.floor(nowMs / 1000);
  const exp = nowSeconds + 2 * ACCESS_TOKEN_SECONDS_MAX;
  return { ...question, subjectClaims: { iat: nowSeconds, exp, ...subjectClaims } };
}

/** Every rule of a policy, by id. */
export function rulesOf({ policy }: Settings): readonly Rule[] {
  const rules = new Set([...policy.byWho.values()].flat());
  return [...rules].sort((a, b) => (a.id < b.id ? -1 : 1));
}
