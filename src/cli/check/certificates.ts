/** The certificates of the listeners as a client looks at them: whose names they have, and where their chain leads. */
import { X509Certificate } from "node:crypto";
import { isIP } from "node:net";
import { getCACertificates } from "node:tls";
import type { Config } from "../../config/config.ts";
import { certificatesIn } from "../../config/file-contents.ts";
import type { Finding } from "./finding.ts";

/** The listener for a proxy is left out: what name that one expects is in its own configuration. */
export function certificatesOf({ fixed, settings }: Config): readonly Finding[] {
  const { issuer, mtlsOrigin = issuer, production } = settings;
  const shown = [
    { name: "listen", cert: fixed.listen.cert, url: issuer },
    { name: "mtls", cert: fixed.mtls?.cert ?? "", url: mtlsOrigin },
  ];
  return shown.flatMap(({ name, cert, url }) => {
    const chain = certificatesIn(cert);
    const where = `${name}.tls.cert`;
    const found = [nameOf(chain, new URL(url).hostname), ...(production ? [chainOf(chain)] : [])];
    return found.flatMap((one) => (one === undefined ? [] : [{ where, ...one }]));
  });
}

type Found = Omit<Finding, "where"> | undefined;

function nameOf([leaf]: readonly X509Certificate[], hostname: string): Found {
  if (leaf === undefined) return undefined;
  const host = hostname.replace(/^\[(.*)\]$/, "$1");
  // A browser reads no name in the subject.
  const has = isIP(host) === 0 ? leaf.checkHost(host, { subject: "never" }) : leaf.checkIP(host);
  if (has !== undefined) return { level: "ok", says: `is for ${host}` };
  const whose = leaf.subjectAltName?.replaceAll("DNS:", "").replaceAll("IP Address:", "");
  const is = leaf.ca && whose === undefined ? "that of an authority" : `for ${whose ?? "no name"}`;
  return {
    level: "error",
    says: `is ${is} and not for ${host}, so that clients refuse it: get one for ${host}, or correct the URL`,
  };
}

/** Each certificate is issued by the next one, and the last one by an authority that clients have. */
function chainOf(chain: readonly X509Certificate[]): Found {
  const broken = chain.findIndex((one, index) => index > 0 && !isIssuedBy(chain[index - 1], one));
  if (broken > 0) {
    const says = `its certificate ${broken + 1} did not issue its certificate ${broken}: put the one of this server first, and behind each the one that issued it`;
    return { level: "error", says };
  }
  const last = chain.at(-1);
  if (last === undefined) return undefined;
  const issuer = /(?:CN|O)=(.*)$/m.exec(last.issuer)?.[1] ?? "an authority without a name";
  const anchors = getCACertificates("default").map((pem) => new X509Certificate(pem));
  if (anchors.some((anchor) => anchor.raw.equals(last.raw) || isIssuedBy(last, anchor))) {
    return { level: "ok", says: `leads to ${issuer}, which this machine knows` };
  }
  // Where to fetch its issuer is what certificates say that are not issued by a root.
  if (last.infoAccess?.includes("CA Issuers") && !isIssuedBy(last, last)) {
    const says = `was issued by ${issuer}, which is not in the file and not known to this machine: add that certificate behind it`;
    return { level: "warning", says };
  }
  return { level: "unseen", says: `whether clients know its authority, ${issuer}: this machine does not` };
}

const isIssuedBy = (one: X509Certificate | undefined, issuer: X509Certificate): boolean =>
  one?.checkIssued(issuer) === true && one.verify(issuer.publicKey);
