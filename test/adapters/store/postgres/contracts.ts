/** The contracts of the stores on PostgreSQL. */
import type { TestContext } from "node:test";
import postgres from "postgres";
import { openStore } from "../../../../src/adapters/store/open.ts";
import type { SharedPostgres } from "../../../support/postgres.ts";
import { testAuditRows, testIndexRows } from "../audit.contract.ts";
import { testRestoredMark } from "../copies.contract.ts";
import { testEndings } from "../endings.contract.ts";
import { testFamilies } from "../families.contract.ts";
import { testJobs } from "../jobs.contract.ts";
import { testKeys } from "../keys.contract.ts";
import { testNames } from "../names.contract.ts";
import { testPendingConsents } from "../pending-consents.contract.ts";
import { testPolicies } from "../policies.contract.ts";
import { testRechecks } from "../rechecks.contract.ts";
import { testRegistrations } from "../registrations.contract.ts";
import { testShortLived } from "../short-lived.contract.ts";
import { testSignals } from "../signals.contract.ts";
import { type Harness, testStore } from "../store.contract.ts";
import { testSubjectEmails } from "../subject-emails.contract.ts";
import { freshSchema, type keepSchema } from "./schema.ts";

/** An error that the driver throws outside of any promise fails the running test, because the runner listens for it. */
export async function open(
  t: TestContext,
  url: string,
  timeoutMs?: number,
  how: typeof openStore = openStore,
) {
  const store = await how({ postgres: url }, timeoutMs);
  t.after(() => store.close());
  return store;
}

export async function openSql(t: TestContext, url: string) {
  const sql = postgres(url, { max: 1, onnotice: () => {} });
  t.after(() => sql.end({ timeout: 1 }));
  return sql;
}

export const harnessOf = (
  server: () => SharedPostgres,
  emptied: ReturnType<typeof keepSchema>,
  name = "PostgreSQL",
): Harness => ({
  name,
  shared: true,
  sql: "postgres",
  async create(t, { bare } = { bare: false }) {
    const kept = bare ? undefined : await emptied();
    const url = kept?.url ?? (await freshSchema(server()));
    const sql = kept?.sql ?? (await openSql(t, url));
    let unused = kept?.store;
    return {
      async open(how) {
        const store = unused ?? (await open(t, url, undefined, how));
        unused = undefined;
        return store;
      },
      async execute(text) {
        await sql.unsafe(text);
      },
      select: (text) => sql.unsafe(text),
    };
  },
});

export function testContracts(harness: Harness): void {
  testContested(harness);
  testRestoredMark(harness);
  testSubjectEmails(harness);
  testSignals(harness);
  testAuditRows(harness);
  testIndexRows(harness);
}

/** Those of what several instances write at the same time. */
export function testContested(harness: Harness): void {
  testKeys(harness);
  testNames(harness);
  testShortLived(harness);
  testFamilies(harness);
  testPendingConsents(harness);
  testJobs(harness);
  testRechecks(harness);
  testPolicies(harness);
  testStore(harness);
  testRegistrations(harness);
  testEndings(harness);
}
