/** Which versions of TLS a server accepts, and which certificate it shows. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, type SecureVersion } from "node:tls";

const VERSIONS: readonly SecureVersion[] = ["TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3"];

export type Shown = { accepted: readonly SecureVersion[]; fingerprint: string };

/** `ca`: PEM of the authority that has to have signed the certificate. */
export async function lookAt(port: number, ca: string): Promise<Shown> {
  const found: [SecureVersion, string][] = [];
  for (const version of VERSIONS) {
    const fingerprint = await shakeHands(version, port, ca);
    if (fingerprint !== undefined) found.push([version, fingerprint]);
  }
  const [first] = found;
  return { accepted: found.map(([version]) => version), fingerprint: first?.[1] ?? "" };
}

/** The fingerprint of the certificate; undefined where the server refuses the version. */
async function shakeHands(version: SecureVersion, port: number, ca: string): Promise<string | undefined> {
  // Our own library would refuse the old versions before the server does.
  const ciphers = "DEFAULT@SECLEVEL=0";
  const at = { host: "127.0.0.1", port, ca, minVersion: version, maxVersion: version, ciphers };
  const socket = connect(at);
  try {
    await once(socket, "secureConnect");
    return socket.getPeerX509Certificate()?.fingerprint256;
  } catch (fault) {
    assert.match(String(fault), /alert protocol version/);
    return undefined;
  } finally {
    socket.destroy();
  }
}
