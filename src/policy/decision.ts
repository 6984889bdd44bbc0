/**
 * What becomes of a request, by the policy alone: the rules decide, a job that is asked for still has to be approved, and a
 * partner has to know the subject. Requests, questions and what is decided again pass here.
 */
import { defined, err, ok, type Result } from "../result.ts";
import { mapSubjectThere } from "../spec/identity-chaining.ts";
import type { AccessRequest, Allowed, Denied, JobBounds, Product } from "./access.ts";
import { decide } from "./decide.ts";
import { proposedJob } from "./jobs.ts";

/** The request with the `sub` that the token will have, and the bounds of a job that is asked for. */
export type AskedRequest = AccessRequest & { sub: string; proposes?: JobBounds };

type Granted = Extract<Product, { kind: "grant" }> & { subjectThere: string };
/** `product` has the subject as the partner knows it (IDC-2.5-3, IDJAG-5-2). */
export type PolicyDecision = Omit<Allowed, "product"> & {
  product: Exclude<Product, { kind: "grant" }> | Granted;
};

export function decideRequest(
  policy: Parameters<typeof decide>[0],
  asked: AskedRequest,
): Result<PolicyDecision, Denied> {
  const { proposes, sub } = asked;
  // JOB-D-4: a job that is asked for is approved by a click, whatever was consented to before.
  const inJob = proposes === undefined ? asked : { ...asked, job: proposedJob(proposes), consents: [] };
  const decided = decide(policy, inJob);
  if (!decided.ok) return decided;
  const { product, target, trace } = decided.value;
  const deny = (reason: Denied["reason"]) => err({ kind: "policy_denied", reason, trace } as const);
  if (proposes !== undefined) return deny("job_not_approved");
  if (product.kind !== "grant") return ok({ ...decided.value, product });
  const there = target.partner && mapSubjectThere(sub, target.partner.subjects);
  if (!there?.ok) return deny("subject_unknown_at_partner");
  return ok(
    defined<PolicyDecision>({ ...decided.value, product: { ...product, subjectThere: there.value } }),
  );
}
