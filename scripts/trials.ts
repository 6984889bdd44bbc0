/**
 * `npm run trials -- [NAME [ROUNDS]]`: what the suite does in one short round, in many rounds; all trials without a
 * name. Prints a row for each result, and exits non-zero when a trial fails.
 */
import { runBench } from "./trials/bench.ts";
import { raceCodes } from "./trials/codes.ts";
import { contestAssertions, contestGrants } from "./trials/contests.ts";
import { raceEndings } from "./trials/ending-races.ts";
import { listMany, priceMany } from "./trials/endings-many.ts";
import { runEqualFailures } from "./trials/equal-failures.ts";
import { runEqualIntrospection } from "./trials/equal-introspection.ts";
import { runExpiry } from "./trials/expiry.ts";
import { runFailover } from "./trials/failover.ts";
import { floodDocuments, floodGuesses } from "./trials/floods.ts";
import { runGoOauth2 } from "./trials/go-oauth2.ts";
import { runJobs } from "./trials/jobs.ts";
import { runKeyRotation } from "./trials/key-rotation.ts";
import { killOnPostgres, killOnSqlite } from "./trials/kills.ts";
import { runLogPipe } from "./trials/log-pipe.ts";
import { runMcpRunner } from "./trials/mcp-runner.ts";
import { runOauth2Proxy } from "./trials/oauth2-proxy.ts";
import { runPatroni } from "./trials/patroni/run.ts";
import { runPermissions } from "./trials/permissions.ts";
import { runPgFaults } from "./trials/pg-faults.ts";
import { runPgRestarts } from "./trials/pg-restarts.ts";
import { runPipelining } from "./trials/pipelining.ts";
import { runPlatformAgents } from "./trials/platform-agents.ts";
import { runProxies } from "./trials/proxies.ts";
import { runPython } from "./trials/python.ts";
import { runRandom } from "./trials/random.ts";
import { playReach, runReach } from "./trials/reach.ts";
import { raceRefresh } from "./trials/refresh-races.ts";
import { rehearse } from "./trials/rehearsal/run.ts";
import { runRenewal } from "./trials/renewal.ts";
import { runReplay } from "./trials/replay.ts";
import { runRolling } from "./trials/rolling.ts";
import { runRotation } from "./trials/rotation.ts";
import { runSeveral } from "./trials/several.ts";
import { runSignals } from "./trials/signals.ts";
import { runSpring } from "./trials/spring.ts";
import { runSqliteLock } from "./trials/sqlite-lock.ts";
import { controlSuite } from "./trials/suite-control.ts";
import { askServers } from "./trials/suite-servers.ts";
import { printTable, type Trials } from "./trials/table.ts";
import { runThrottle } from "./trials/throttle.ts";
import { runUpgrade } from "./trials/upgrade.ts";
import { runWycheproof } from "./trials/wycheproof.ts";

const TRIALS: Trials = new Map([
  ["bench", { rounds: 1, run: runBench }],
  ["codes", { rounds: 1_000, run: raceCodes }],
  ["contested-assertions", { rounds: 1_000, run: contestAssertions }],
  ["contested-grants", { rounds: 200, run: contestGrants }],
  ["endings-list", { rounds: 1, run: listMany }],
  ["endings-price", { rounds: 20, run: priceMany }],
  ["endings-races", { rounds: 34, run: raceEndings }],
  ["equal-failures", { rounds: 500, run: runEqualFailures }],
  ["equal-introspection", { rounds: 2000, run: runEqualIntrospection }],
  ["expiry", { rounds: 100, run: runExpiry }],
  ["failover", { rounds: 1, run: runFailover }],
  ["flood-documents", { rounds: 5, run: floodDocuments }],
  ["flood-guesses", { rounds: 100, run: floodGuesses }],
  ["go-oauth2", { rounds: 1, run: runGoOauth2 }],
  ["jobs", { rounds: 100_000, run: runJobs }],
  ["key-rotation", { rounds: 4, run: runKeyRotation }],
  ["kills-postgres", { rounds: 40, run: killOnPostgres }],
  ["kills-sqlite", { rounds: 40, run: killOnSqlite }],
  ["log-pipe", { rounds: 20, run: runLogPipe }],
  ["mcp-runner", { rounds: 1, run: runMcpRunner }],
  ["oauth2-proxy", { rounds: 1, run: runOauth2Proxy }],
  ["patroni", { rounds: 1, run: runPatroni }],
  ["permissions", { rounds: 10_000, run: runPermissions }],
  ["replay", { rounds: 100_000, run: runReplay }],
  ["pg-faults", { rounds: 10, run: runPgFaults }],
  ["pg-restarts", { rounds: 10, run: runPgRestarts }],
  ["pipelining", { rounds: 3, run: runPipelining }],
  ["platform-agents", { rounds: 10_000, run: runPlatformAgents }],
  ["python", { rounds: 1, run: runPython }],
  ["proxies", { rounds: 1, run: runProxies }],
  ["rehearsal", { rounds: 2, run: rehearse }],
  ["renewal", { rounds: 5, run: runRenewal }],
  ["random", { rounds: 20, run: runRandom }],
  ["reach", { rounds: 1_000, run: runReach }],
  ["reach-played", { rounds: 20, run: playReach }],
  ["refresh-races", { rounds: 200, run: raceRefresh }],
  ["rolling", { rounds: 20, run: runRolling }],
  ["rotation", { rounds: 2, run: runRotation }],
  ["several", { rounds: 5, run: runSeveral }],
  ["signals", { rounds: 50, run: runSignals }],
  ["spring", { rounds: 1, run: runSpring }],
  ["sqlite-lock", { rounds: 3, run: runSqliteLock }],
  ["suite-control", { rounds: 47, run: controlSuite }],
  ["suite-servers", { rounds: 1, run: askServers }],
  ["throttle", { rounds: 1, run: runThrottle }],
  ["upgrade", { rounds: 2, run: runUpgrade }],
  ["wycheproof", { rounds: 1, run: runWycheproof }],
]);

// By `exit`, at which each trial ends what it started.
for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => process.exit(130));

const [name, rounds] = process.argv.slice(2);
const known = name === undefined ? [...TRIALS] : [...TRIALS].filter(([each]) => each === name);
if (known.length === 0) {
  console.error(`npm run trials -- [NAME [ROUNDS]], where NAME is one of: ${[...TRIALS.keys()].join(" ")}`);
  process.exitCode = 2;
} else {
  const good = await printTable(known, rounds === undefined ? undefined : Number(rounds), console.log);
  process.exitCode = good ? 0 : 1;
}
