/** A proxy that sends the reads of one session to a standby, as pgpool does, is found at the start and by each statement. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { join } from "node:path";
import { after, before, beforeEach, describe, test } from "node:test";
import postgres from "postgres";
import { openStore, openUnchangedStore } from "../../../../src/adapters/store/open.ts";
import { StoreMisplaced } from "../../../../src/adapters/store/store.ts";
import { StoreUnavailable } from "../../../../src/ports.ts";
import { type Postgres, startPostgres } from "../../../support/postgres.ts";
import { stop } from "../../../support/stop.ts";
import { until } from "../../../support/until.ts";
import { endingOf } from "../endings.contract.ts";
import { makeEvent, makeToken } from "../store.contract.ts";

const [BIND, PARSE] = [0x42, 0x50];
/** The end of a login: ReadyForQuery of a session without a transaction. */
const READY = Buffer.from([0x5a, 0, 0, 0, 5, 0x49]);

type Splitter = { url: string; sends(statement: string): boolean; sent: number; close(): void };

/** Logs each client in at both servers, and sends the statements that it is told to the standby, all others to the leader. */
async function startSplitter(leader: string, standby: string): Promise<Splitter> {
  const open = new Set<Socket>();
  const splitter: Splitter = {
    url: "",
    sends: () => false,
    sent: 0,
    close() {
      for (const socket of open) socket.destroy();
      listener.close();
    },
  };
  const listener = createServer((near) => {
    const [writer, reader] = [leader, standby].map((url) => connect(Number(new URL(url).port), "127.0.0.1"));
    assert.ok(writer !== undefined && reader !== undefined);
    const all = [near, writer, reader];
    for (const socket of all) {
      open.add(socket);
      socket.on("error", () => {});
      socket.on("close", () => all.map((one) => one.destroy()));
    }
    const atReader = new Map<string, boolean>();
    near.once("data", (login: Buffer) => {
      reader.write(login);
      reader.once("data", (answer: Buffer) => {
        assert.ok(answer.subarray(-READY.length).equals(READY));
        writer.write(login);
        writer.pipe(near);
        reader.pipe(near);
      });
      near.on("data", (bytes: Buffer) => {
        const [first = "", second = ""] = bytes.toString("latin1", 5).split("\0", 2);
        if (bytes[0] === PARSE) atReader.set(first, splitter.sends(second));
        const isRead = atReader.get(bytes[0] === BIND ? second : first) === true;
        if (isRead) splitter.sent++;
        (isRead ? reader : writer).write(bytes);
      });
    });
  });
  listener.listen(0, "127.0.0.1");
  await once(listener, "listening");
  const url = new URL(leader);
  url.port = String((listener.address() as AddressInfo).port);
  splitter.url = url.href;
  return splitter;
}

describe("STORE-D-8 a proxy that sends reads to a standby which lags", () => {
  let [leader, standby]: Postgres[] = [];
  let splitter: Splitter;
  let admin: postgres.Sql | undefined;
  before(async () => {
    leader = await startPostgres();
    // One login for both servers: each would ask for a proof of its own.
    writeFileSync(
      join(leader.socketFolder, "data", "pg_hba.conf"),
      "host all,replication all 127.0.0.1/32 trust\n",
    );
    await (await openStore({ postgres: leader.url })).close();
    admin = postgres(leader.url, { max: 1 });
    await admin`select pg_reload_conf()`;
    standby = await startPostgres({ standbyOf: leader });
    splitter = await startSplitter(leader.url, standby.url);
  });
  after(() => stop(splitter, () => admin?.end(), standby, leader));
  beforeEach(() => {
    splitter.sends = () => false;
    splitter.sent = 0;
  });

  test("is found by the start and by the check, which look as one that only reads", async () => {
    let looks = 0;
    splitter.sends = (statement) => statement.includes("pg_backend_pid()") && looks++ % 2 === 0;
    for (const open of [openStore, openUnchangedStore])
      await assert.rejects(open({ postgres: splitter.url }), (fault) => {
        assert.ok(fault instanceof StoreMisplaced);
        assert.match(fault.message, /a proxy that sends reads to other servers than writes/);
        return true;
      });
    assert.ok(splitter.sent > 0);
  });

  test("by the session, and what has a volatile function to the leader, as pgpool does by default, is used", async (t) => {
    const isRead = (statement: string): boolean =>
      /^\s*(?:select|with)\b/.test(statement) &&
      !/\binsert\b|\bupdate\b|pg_is_in_recovery|set_config|now_ms/.test(statement);
    splitter.sends = isRead;
    for (const open of [openStore, openUnchangedStore]) {
      const store = await open({ postgres: splitter.url });
      t.after(() => store.close());
      assert.equal(await store.facts.token("none"), undefined);
      assert.deepEqual(await store.endings.isEnded([]), false);
    }
    assert.ok(splitter.sent > 0, "the looks are reads");
  });

  test("that began to after the start answers no read that decides, with or without rows", async (t) => {
    const store = await openStore({ postgres: splitter.url });
    t.after(() => store.close());
    const token = makeToken({ clientId: "c-1" });
    await store.log.append([{ event: makeEvent("as-1", 0), token }]);
    const follower = postgres(standby?.url ?? "", { max: 1 });
    t.after(() => follower.end());
    await until(async () => (await follower`select from token`).length === 1, "the token is at the standby");
    await follower`select pg_wal_replay_pause()`;
    const ending = endingOf({ by: "client", clientId: "c-1" });
    await store.log.append([{ event: makeEvent("as-1", 1), ending }]);
    // The look of a session that begins is spared, so that each statement is left to itself.
    splitter.sends = (statement) =>
      /^\s*(?:select|with)\b/.test(statement) &&
      !/\binsert\b|\bupdate\b|'transaction_read_only'/.test(statement);
    const reads: (() => unknown)[] = [
      () => store.facts.token(token.jti),
      () => store.facts.token("none"),
      () => Promise.all([store.facts.token(token.jti), store.facts.token("none")]),
      () => store.endings.isEnded(token.endingKeys),
      () => store.log.head("as-1"),
      () => store.audit.heads(),
    ];
    for (const read of reads) {
      const { sent } = splitter;
      await assert.rejects(
        async () => read(),
        (fault) => {
          assert.ok(fault instanceof StoreUnavailable, String(fault));
          assert.match(fault.message, /25006: the server only reads: .* a proxy that sends reads to one/);
          return true;
        },
      );
      assert.ok(splitter.sent > sent);
    }
  });
});
