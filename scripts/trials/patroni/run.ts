/**
 * A cluster of Patroni under three instances that are asked all the time: its leader is killed, moved, cut off, paused, or
 * gone while its replicas are behind. All that was answered is matched with rows and events afterwards.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import postgres from "postgres";
import { until } from "../../../test/support/until.ts";
import { type Cluster, type Member, missingPrograms, patroniVersion, startCluster } from "./cluster.ts";
import { type Load, PER_SECOND, startLoad } from "./load.ts";
import { openSite, type Site } from "./site.ts";

const INSTANCES = 3;
const FAMILIES = 24;
const CALM_MS = 6_000;
const AFTER_MS = 8_000;
const PROBE_MS = 25;
const PROBE_LATE_MS = 2_000;
/** With a member away, each look at it takes PROBE_LATE_MS; the other two make ten times as many in calm. */
const LOOKS_PER_SECOND_MIN = 2;
const WRITES_MS = 60_000;
const PAUSED_MS = 34_000;
const CUT_MS = 38_000;
const BEHIND_MS = 800;

type Scene = {
  name: string;
  /** Returns when the fault is over; what heals it runs after the load. */
  happen(cluster: Cluster, leader: Member): Promise<void>;
  heal?(cluster: Cluster, leader: Member): void;
  /** Without the last moment the store goes back. */
  loses?: true;
  /** Wakes the manager of a leader that was replaced. */
  wakes?: true;
};

/**
 * Before it a leader whose daemon was paused took the lock back from the one that was promoted meanwhile, where etcd is asked
 * by its third version: what that one had written was lost, in synchronous mode too (patroni/patroni#2689).
 */
const KEEPS_LOCK = [3, 0, 3];

const kill = (cluster: Cluster, leader: Member): void => {
  cluster.signal(leader, "daemon", "SIGKILL");
  cluster.signal(leader, "postgres", "SIGKILL");
};
const restart = (cluster: Cluster, leader: Member): void => cluster.restart(leader);

const SCENES: readonly Scene[] = [
  {
    name: "PostgreSQL of the leader killed",
    happen: async (cluster, leader) => cluster.signal(leader, "postgres", "SIGKILL"),
  },
  { name: "leader and its daemon killed", happen: async (...all) => kill(...all), heal: restart },
  { name: "switchover", happen: (cluster, leader) => cluster.switchOver(leader) },
  {
    name: `leader cut off for ${CUT_MS / 1000} s`,
    async happen(cluster, leader) {
      cluster.signal(leader, "network", "SIGSTOP");
      await sleep(CUT_MS);
      cluster.signal(leader, "network", "SIGCONT");
    },
  },
  {
    name: `leader paused for ${PAUSED_MS / 1000} s`,
    wakes: true,
    async happen(cluster, leader) {
      for (const part of ["daemon", "postgres"] as const) cluster.signal(leader, part, "SIGSTOP");
      await sleep(PAUSED_MS);
      for (const part of ["postgres", "daemon"] as const) cluster.signal(leader, part, "SIGCONT");
    },
  },
  {
    name: `daemon alone paused for ${PAUSED_MS / 1000} s`,
    wakes: true,
    async happen(cluster, leader) {
      cluster.signal(leader, "daemon", "SIGSTOP");
      await sleep(PAUSED_MS);
      cluster.signal(leader, "daemon", "SIGCONT");
    },
  },
];

const BEHIND: Scene = {
  name: `leader gone with replicas ${BEHIND_MS / 1000} s behind`,
  async happen(cluster, leader) {
    cluster.holdReplicas(leader, true);
    await sleep(BEHIND_MS);
    kill(cluster, leader);
    cluster.holdReplicas(leader, false);
  },
  heal: restart,
  loses: true,
};

const KILLS = [SCENES[1], SCENES[2]].filter((scene) => scene !== undefined);

/** In synchronous mode all scenes, in asynchronous mode the ones that differ; and some of each by the balancer. */
const PLAN: readonly { synchronous: boolean; ways: readonly { way: Way; scenes: readonly Scene[] }[] }[] = [
  {
    synchronous: true,
    ways: [
      { way: "list of hosts", scenes: SCENES },
      { way: "HAProxy", scenes: KILLS },
    ],
  },
  {
    synchronous: false,
    ways: [
      { way: "list of hosts", scenes: [...KILLS, BEHIND] },
      { way: "HAProxy", scenes: KILLS },
    ],
  },
];

type Way = "list of hosts" | "HAProxy";

/** A round is the whole plan, in some 20 minutes; `MANDATE_TRIAL_SCENE` names scenes by a part of their names. */
export async function* runPatroni(rounds: number): AsyncIterable<string> {
  const missing = missingPrograms();
  if (missing.length > 0) {
    yield `not run here: there is no ${missing.join(", no ")}`;
    return;
  }
  const part = process.env.MANDATE_TRIAL_SCENE ?? "";
  const version = patroniVersion();
  const keepsLock = KEEPS_LOCK.map((least, at) => Math.sign((version[at] ?? 0) - least)).find(Boolean) !== -1;
  yield `Patroni ${version.join(".")}, ${PER_SECOND} requests/s beside ${FAMILIES} users who refresh`;
  for (let round = 0; round < rounds; round++) {
    for (const { synchronous, ways } of PLAN) {
      const mode = synchronous ? "synchronous" : "asynchronous";
      const wanted = ways.flatMap(({ way, scenes }) => scenes.map((scene) => ({ way, scene })));
      const chosen = wanted.filter(({ way, scene }) => ` ${mode}, ${way}: ${scene.name}`.includes(part));
      if (chosen.length === 0) continue;
      const cluster = await startCluster(synchronous);
      try {
        for (const { way, scene } of chosen) {
          if (scene.wakes && !keepsLock) {
            yield `${mode}, ${way}: ${scene.name}: not run: Patroni before ${KEEPS_LOCK.join(".")} loses what was committed`;
            continue;
          }
          const { line, wrong } = await play(cluster, way, scene, synchronous);
          yield `${mode}, ${way}: ${scene.name}: ${line}`;
          assert.deepEqual(wrong, [], `${scene.name}: ${wrong.join("; ")}`);
        }
      } finally {
        await cluster.close();
      }
    }
  }
}

let databases = 0;

async function play(cluster: Cluster, way: Way, scene: Scene, synchronous: boolean) {
  await cluster.untilWhole();
  const database = `trial_${++databases}`;
  const leader = await cluster.leader();
  const direct = ({ port }: Member, name: string) => `postgres://postgres@127.0.0.1:${port}/${name}`;
  await query(direct(leader, "postgres"), `create database ${database}`);
  await query(direct(leader, database), "create table probe (at timestamptz)");
  const hosts = cluster.members.map(({ port }) => `127.0.0.1:${port}`).join(",");
  const url =
    way === "HAProxy"
      ? `postgres://postgres@127.0.0.1:${cluster.balanced}/${database}`
      : `postgres://postgres@${hosts}/${database}?target_session_attrs=read-write`;
  const site = await openSite(url, () => direct(leader, database), INSTANCES);
  const probe = watchWriters(cluster, (member) => direct(member, database));
  try {
    const families = await site.families(FAMILIES);
    const load = startLoad(site, families);
    await sleep(CALM_MS);
    const faultMs = performance.now();
    const happened = scene.happen(cluster, leader);
    // It is awaited below; unhandled until then, a fault would end this process and leave the cluster.
    happened.catch(() => undefined);
    await Promise.race([
      until(() => probe.after(leader, faultMs) !== undefined, "a writer"),
      sleep(WRITES_MS),
    ]);
    await happened;
    const writerMs = probe.after(leader, faultMs);
    const looksPerSecond = probe.looksPerSecond(faultMs);
    await sleep(AFTER_MS);
    await load.stop();
    await probe.stop();
    scene.heal?.(cluster, leader);
    await cluster.untilWhole();
    const now = await cluster.leader();
    const times = { faultMs, writerMs, looksPerSecond };
    return await judge({ site, load, families, times, scene, synchronous, url: direct(now, database) });
  } finally {
    await probe.stop();
    await site.stop();
  }
}

/** When which member took a write, as a client sees it by the network. */
function watchWriters(cluster: Cluster, urlOf: (member: Member) => string) {
  const seen: { member: Member; ms: number; ok: boolean }[] = [];
  let going = true;
  // By one connection until it fails, because to connect each time keeps a busy machine busier than what it watches.
  const watch = async (member: Member): Promise<void> => {
    let sql = connect(urlOf(member));
    while (going) {
      const late = AbortSignal.timeout(PROBE_LATE_MS);
      const write = sql`insert into probe values (now())`.then(
        () => true,
        () => false,
      );
      const ok = await Promise.race([write, once(late, "abort").then(() => false)]);
      seen.push({ member, ms: performance.now(), ok });
      if (!ok) {
        void sql.end({ timeout: 1 }).catch(() => undefined);
        sql = connect(urlOf(member));
      }
      await sleep(PROBE_MS);
    }
    await sql.end({ timeout: 1 }).catch(() => undefined);
  };
  for (const member of cluster.members) void watch(member);
  return {
    /** The first write after the fault at another member, or at the leader after one that failed. */
    after(leader: Member, faultMs: number): number | undefined {
      const later = seen.filter(({ ms }) => ms > faultMs);
      const failedMs =
        later.find(({ member, ok }) => member === leader && !ok)?.ms ?? Number.POSITIVE_INFINITY;
      return later.find(({ member, ms, ok }) => ok && (member !== leader || ms > failedMs))?.ms;
    },
    /** How often each member was looked at in a second since, which the writes of the others are late by. */
    looksPerSecond: (faultMs: number): number =>
      seen.filter(({ ms }) => ms > faultMs).length /
      cluster.members.length /
      ((performance.now() - faultMs) / 1_000),
    async stop() {
      going = false;
    },
  };
}

type Played = {
  site: Site;
  load: Load;
  families: readonly string[];
  times: { faultMs: number; writerMs: number | undefined; looksPerSecond: number };
  scene: Scene;
  synchronous: boolean;
  url: string;
};

async function judge({ site, load, times, scene, synchronous, url }: Played) {
  const { faultMs, writerMs, looksPerSecond } = times;
  // So seldom looks mean that this process does not get to do what it watches, nor to send what it counts.
  const isBusy = looksPerSecond < LOOKS_PER_SECOND_MIN;
  const { tokens, assertions, answered, counts, wrong, users } = load;
  const ended = site.servers.filter(({ child }) => child.exitCode !== null).length;
  if (ended === 0) {
    await load.each(tokens, (one, index) => load.introspect(index % INSTANCES, one));
    await load.each(assertions, (form, index) => load.replay(index % INSTANCES, form));
  }
  const rows = await query(url, "select jti from token");
  const events = await query(
    url,
    "select body::json -> 'granted' ->> 'jti' as jti from event where body like '%granted%'",
  );
  const [inRows, inEvents] = [rows, events].map((all) => all.map(({ jti }) => String(jti)));
  const known = new Set(inRows);
  const told = new Map<string, number>();
  for (const jti of inEvents ?? []) told.set(jti, (told.get(jti) ?? 0) + 1);
  const lost = tokens.filter(({ jti }) => !known.has(jti) || !told.has(jti)).length;
  const twice =
    tokens.length -
    new Set(tokens.map(({ jti }) => jti)).size +
    [...told.values()].filter((n) => n > 1).length;
  const gap = (at: number): string => {
    const wrote = answered.filter((one) => one.at === at && one.wrote);
    const first = wrote.find(({ ms }) => writerMs !== undefined && ms >= writerMs);
    return first === undefined ? "never" : ((first.ms - (writerMs ?? 0)) / 1000).toFixed(2);
  };
  const served = site.servers.map((_, at) => gap(at));
  const away =
    writerMs === undefined
      ? isBusy
        ? `not measured: this machine was too busy (${looksPerSecond.toFixed(1)} looks for a writer in a second)`
        : "no new writer was met"
      : `${((writerMs - faultMs) / 1000).toFixed(1)} s without a new writer`;
  const problems: string[] = [];
  // Without one, nothing was shown of what comes after it.
  if (writerMs === undefined && !isBusy) problems.push("no new writer was met");
  if (wrong.again > 0) problems.push(`${wrong.again} assertions accepted again`);
  if (wrong.alive > 0) problems.push(`${wrong.alive} ended tokens are active`);
  if (twice > 0) problems.push(`${twice} given twice`);
  if (synchronous && lost + wrong.dead + users.refused.size + ended > 0)
    problems.push("what was answered is lost");
  let after = "";
  if (ended > 0) {
    const told = site.servers
      .flatMap(({ errors, lines }) => [...errors, ...lines])
      .find((line) => line.includes("went back"));
    if (told === undefined) problems.push("instances ended without saying that the store went back");
    const next = site.startAgain();
    await until(
      () =>
        next.lines.some((line) => line.includes("no request is answered")) || next.child.exitCode !== null,
      "the next start waits",
    );
    if (next.child.exitCode !== null) problems.push(`the next start ended: ${next.errors.join(" ")}`);
    next.child.kill("SIGKILL");
    after = `; ${ended} instances ended (the store went back), the next start waits`;
  } else if (scene.loses) problems.push("the loss was not noticed");
  const line = [
    `${counts.answered} answered, ${counts.unavailable} 503, ${counts.unreached.length} unreached, ${counts.other.length} other`,
    `${away}, then served by instance after ${served.join(" / ")} s`,
    `${tokens.length} tokens: ${lost} lost, ${twice} twice`,
    `${wrong.replays} assertions sent again: ${wrong.again} accepted`,
    `${wrong.looks} looks: ${wrong.alive} alive though ended, ${wrong.dead} dead though not`,
    `of ${FAMILIES} users ${users.told503.size} met a 503, ${users.unreached.size} no instance, ${users.refused.size} must sign in`,
  ].join("; ");
  return {
    line: `${line}${after}${[...counts.other, ...counts.unreached].length > 0 ? ` (${[...new Set([...counts.other, ...counts.unreached])].slice(0, 3).join(", ")})` : ""}`,
    wrong: problems,
  };
}

/** Without the driver's own question for types, whose failure is in no promise of ours. */
const connect = (url: string): postgres.Sql =>
  postgres(url, { max: 1, connect_timeout: 2, fetch_types: false, onnotice: () => undefined });

async function query(url: string, text: string): Promise<readonly Record<string, unknown>[]> {
  const sql = connect(url);
  try {
    return await sql.unsafe(text);
  } finally {
    void sql.end({ timeout: 1 }).catch(() => undefined);
  }
}
