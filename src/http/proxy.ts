/**
 * The listener behind a proxy that terminates TLS: client certificates come in header fields, and only the proxy that
 * proved its own certificate in our handshake with it may send them (RFC9440-4-1, RFC9440-4-2). By setting, the
 * address of the client comes the same way.
 */
import type { Ports } from "../ports.ts";
import { chainFieldOf, otherFields, type ProxyForm, readForwarded } from "../settings/proxy-forms.ts";
import { type ForwardedField, parseForwarded } from "../spec/rfc7239.ts";
import { checkClientCertificate, type ExpectedSubject } from "../spec/rfc8705.ts";
import { httpError } from "./answers.ts";
import { type Handler, type HttpRequest, type Peer, pathOf } from "./handler.ts";
import { leafOf } from "./message.ts";

export type TrustedProxy = {
  /** The proxy's own certificate must be issued under these authorities, for this subject. */
  anchors: readonly Uint8Array[];
  subject: ExpectedSubject;
  /**
   * The field in which the proxy tells the address of its client; absent if every client has the address of the proxy.
   */
  clientAddress?: ForwardedField;
  /** How the certificate of a client is written, and in which field. */
  form: ProxyForm;
  field: string;
  /** What completes the path of a client whose intermediates the proxy does not send. */
  intermediates: readonly Uint8Array[];
};

const NOT_THE_PROXY = { status: 400, description: "the peer is not the configured proxy" };
const MALFORMED = { status: 400, description: "the client certificate fields are malformed" };

/** What requests of the proxy show of its configuration. */
type Noticed = {
  /** It was to tell the address of its client, and did not, or not in a form that can be read. */
  unread(): void;
  /** The request has a field of another form. */
  otherField(name: string): void;
};

export function behindProxy(
  ports: Pick<Ports, "authFailures" | "clock" | "hash" | "paths">,
  proxy: TrustedProxy,
  handler: Handler,
  noticed: Noticed = { unread: () => undefined, otherField: () => undefined },
): Handler {
  const others = otherFields(proxy.field);
  return async (request, peer) => {
    const from = { id: peer.requestId, endpoint: pathOf(request) };
    if (!isProxy(ports, proxy, peer)) {
      ports.authFailures.note({ ...from, source_ip: peer.address }, "proxy_not_proven");
      return { ...httpError(NOT_THE_PROXY), refused: { reason: "proxy_not_proven" } };
    }
    const told = clientAddress(request, proxy, noticed.unread);
    // PXC-D-14: such a field is not read; it means a proxy that does not strip what clients send, or one of another form.
    for (const name of others) if (request.headers.get(name) !== null) noticed.otherField(name);
    const address = told ?? peer.address;
    const { form, field, intermediates } = proxy;
    // PXC-D-4: several lines of a field come as one text, joined by a comma and a blank, which each form refuses.
    const values = [field, chainFieldOf(field)].map((name) => request.headers.get(name) ?? undefined);
    const fields = readForwarded(form, values, ports.hash.sha256);
    if (!fields.ok) {
      const reason = fields.error.kind;
      ports.authFailures.note({ ...from, source_ip: address }, reason);
      return { ...httpError(MALFORMED), refused: { reason }, clientAddress: told };
    }
    // RFC9440-2.4-3: without the field there is no client certificate; the proxy's own is never used as one.
    const { leaf, chain = [] } = fields.value ?? {};
    // PXC-D-12: the path is validated here in every form; only what the proxy did not send is completed.
    const certificates = leaf === undefined ? [] : [leaf, ...(chain.length > 0 ? chain : intermediates)];
    return { ...(await handler(request, new ProxiedPeer(peer, address, certificates))), clientAddress: told };
  };
}

/** The client of a proxy: its own address and certificates, and the deadline of the proxy's request. */
class ProxiedPeer implements Peer {
  readonly address: string;
  readonly certificates: Peer["certificates"];
  readonly requestId: string;
  readonly trace: Peer["trace"];
  readonly deadline: AbortSignal;
  readonly #proxy: Peer;

  constructor(proxy: Peer, address: string, certificates: Peer["certificates"]) {
    this.address = address;
    this.certificates = certificates;
    this.requestId = proxy.requestId;
    this.trace = proxy.trace;
    this.deadline = proxy.deadline;
    this.#proxy = proxy;
  }

  get leaf(): Peer["leaf"] {
    return leafOf(this.certificates);
  }

  get gone(): Peer["gone"] {
    return this.#proxy.gone;
  }
}

/**
 * RFC7239-8.1-1: the address is told by the proxy that has proven itself, and by no other peer. It is undefined where
 * the proxy hides it or it cannot be read: such clients share the address of the proxy, so that a client that spoils
 * the field gains nothing.
 */
function clientAddress(
  request: HttpRequest,
  { clientAddress: field }: TrustedProxy,
  onUnread: () => void,
): string | undefined {
  if (field === undefined) return undefined;
  const told = parseForwarded(field, request.headers.get(field) ?? "");
  if (told.ok) return told.value;
  onUnread();
  return undefined;
}

export function isProxy(
  ports: Pick<Ports, "clock" | "paths">,
  { anchors, subject }: Pick<TrustedProxy, "anchors" | "subject">,
  { leaf, certificates }: Pick<Peer, "certificates" | "leaf">,
): boolean {
  if (!leaf?.ok) return false;
  const nowSeconds = ports.clock.nowSeconds();
  const path = ports.paths.verify(leaf.value, certificates.slice(1), anchors, nowSeconds);
  return path.ok && checkClientCertificate(leaf.value, subject).ok;
}
