/** Whether a TLS listener asks its clients for a certificate, by what it says in a handshake of TLS 1.2, which is in the clear. */
import { connect as connectTcp } from "node:net";
import { Duplex } from "node:stream";
import { connect } from "node:tls";

const HANDSHAKE = 22;
const CERTIFICATE_REQUEST = 13;

export async function asksForCertificate(port: number, ca: string, servername: string): Promise<boolean> {
  const raw = connectTcp({ port, host: "127.0.0.1" });
  const received: Buffer[] = [];
  const tapped = new Duplex({
    read() {},
    write(chunk, _encoding, done) {
      raw.write(chunk, done);
    },
  });
  raw.on("data", (chunk: Buffer) => {
    received.push(chunk);
    tapped.push(chunk);
  });
  try {
    await new Promise<void>((resolve, reject) => {
      const socket = connect({ socket: tapped, ca, servername, maxVersion: "TLSv1.2" }, () => resolve());
      socket.once("error", reject);
    });
  } finally {
    raw.destroy();
  }
  return messagesIn(Buffer.concat(received)).includes(CERTIFICATE_REQUEST);
}

/** The types of the handshake messages in these records, up to those that are encrypted. */
function messagesIn(records: Buffer): readonly number[] {
  const parts: Buffer[] = [];
  for (let at = 0; at + 5 <= records.length && records[at] === HANDSHAKE; ) {
    const end = at + 5 + records.readUInt16BE(at + 3);
    parts.push(records.subarray(at + 5, end));
    at = end;
  }
  const messages = Buffer.concat(parts);
  const types: number[] = [];
  for (let at = 0; at + 4 <= messages.length; at += 4 + messages.readUIntBE(at + 1, 3)) {
    types.push(messages[at] ?? 0);
  }
  return types;
}
