/** What a rule issues and what a target takes, which have to be the same: a target takes one kind of token and no other. */

type Product = "access_token" | "grant" | "transaction";
type Issuing = { id: string; issues?: Product | undefined; replacements?: number };
type Taking = { names: readonly string[]; partner?: unknown; transaction?: unknown };

const issuedBy = ({ issues = "access_token" }: Issuing): Product => issues;

/** Whether the rule issues grants for partners. */
export const issuesGrants = (rule: Issuing): boolean => issuedBy(rule) === "grant";

/** TXN-D-10: how often the rule lets a transaction token be replaced. */
export const replacementsOf = ({ replacements = 0 }: Issuing): number => replacements;

export const issuedTo = ({ partner, transaction }: Taking): Product =>
  partner !== undefined ? "grant" : transaction !== undefined ? "transaction" : "access_token";

const WORDS: Record<Product, readonly [issued: string, target: string]> = {
  access_token: ["access tokens", "a resource server"],
  grant: ["grants", "a partner"],
  transaction: ["transaction tokens", "a trust domain of transactions"],
};

/** PROD-1.7-3, PROD-4.1v7-4, TXN-D-1: what keeps the rule from having this target. */
export function misfitOf(rule: Issuing, target: Taking): string | undefined {
  const [issued, taken] = [issuedBy(rule), issuedTo(target)];
  return issued === taken
    ? undefined
    : `issues ${WORDS[issued][0]}, but its target "${target.names[0]}" is ${WORDS[taken][1]}`;
}
