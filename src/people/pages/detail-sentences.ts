/** One object of `authorization_details` as people read it (RAR-D-9): every field by the operator's label, every value whole. */
import { spelledOut } from "../../audit/safe-text.ts";
import { inLanguage, type Worded } from "../../policy/worded.ts";
import { defined } from "../../result.ts";
import { type Html, html } from "../../spec/html.ts";
import { isolated, QUOTES, shownId } from "./display-names.ts";
import { dayOf, minuteOf } from "./language.ts";
import type { Texts } from "./texts.ts";

/** A number as it was sent, what it is of, and the bound that it is where no label says that. */
export type ShownAmount = { amount: string; unit?: string; bound?: "max" | "min" };

/** What a field says: texts, a point in time, an amount, or yes or no. */
type ShownValue = readonly string[] | { atSeconds: number } | ShownAmount | boolean;

export type DetailView = { title: Worded; fields: readonly { label: Worded; value: ShownValue }[] };

/** The last moment that a date can have. */
const SECONDS_MAX = 8_640_000_000_000;

/** `only` stands before each field of what is a limit. */
export function sentence({ title, fields }: DetailView, texts: Texts, only = ""): Html {
  const { language } = texts;
  const all = fields.map(
    ({ label, value }, index) =>
      html`${index === 0 ? " " : ", "}${only}${isolated(shownId(inLanguage(label, [language])))} ${said(value, texts)}`,
  );
  return html`<strong>${isolated(shownId(inLanguage(title, [language])))}${fields.length === 0 ? "" : ":"}</strong>${all}`;
}

function said(value: ShownValue, texts: Texts): Html {
  if (typeof value === "boolean") return html`${value ? texts.yes : texts.no}`;
  if ("atSeconds" in value) {
    const { atSeconds } = value;
    if (atSeconds > SECONDS_MAX) return quoted(String(atSeconds), texts);
    return html`${dayOf(atSeconds, texts)}, ${minuteOf(atSeconds * 1000, texts)}`;
  }
  if ("amount" in value) return amountOf(value, texts);
  return html`${value.map((one, index) => html`${index === 0 ? "" : ", "}${quoted(one, texts)}`)}`;
}

/** RAR-D-9: no digit of it is rounded away; what is not the code of a currency is the word of the one that asks. */
function amountOf({ amount, unit, bound }: ShownAmount, texts: Texts): Html {
  const isMoney = unit !== undefined && CURRENCIES.has(unit);
  const form = new Intl.NumberFormat(
    texts.language,
    defined<Intl.NumberFormatOptions>({
      style: isMoney ? "currency" : "decimal",
      currency: isMoney ? unit : undefined,
      currencyDisplay: "code",
      maximumFractionDigits: FRACTION_DIGITS_MAX,
    }),
  );
  const number = form.format(amount as Intl.StringNumericLiteral);
  const told = isMoney || unit === undefined ? html`${number}` : html`${number} ${quoted(unit, texts)}`;
  return bound === undefined ? told : texts.bounds[bound](told);
}

const CURRENCIES: ReadonlySet<string> = new Set(Intl.supportedValuesOf("currency"));
/** More than an amount may have. */
const FRACTION_DIGITS_MAX = 20;

/** RFC9396-12-1: the value is another's text, so it neither ends its quotation nor hides a part of itself. */
function quoted(raw: string, texts: Texts): Html {
  const told = spelledOut(raw, QUOTES);
  return html`${texts.quoted(isolated(told))}${told === raw ? undefined : ` (${texts.unusual})`}`;
}
