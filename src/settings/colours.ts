/**
 * The colours of our pages, and how well two can be told apart (WCAG-1.4.3-1).
 * WCAG 2.2, contrast ratio and relative luminance: https://www.w3.org/TR/WCAG22/#dfn-contrast-ratio
 */

/** `#rrggbb`, for a light and for a dark scheme. */
export type SchemeColours = { light: string; dark: string };

/** What text and controls of our pages stand on. */
export const GROUNDS: Readonly<Record<keyof SchemeColours, readonly string[]>> = {
  light: ["#ffffff", "#f1f3f6"],
  dark: ["#171b20", "#0e1114"],
};

/** The colour of links, buttons and the focus; the operator may name another. */
export const ACCENT: SchemeColours = { light: "#1f4fbf", dark: "#9dbdff" };

/** The colours beside those of the operator, for tests of their contrast too. */
export const TONES = {
  light: {
    ink: "#1b1f24",
    quiet: "#4d5662",
    line: "#d3d9e0",
    notice: "#fff5dc",
    edge: "#8f5f00",
    gift: "#1a6b34",
    refusal: "#b3261e",
  },
  dark: {
    ink: "#eceff3",
    quiet: "#b4bcc8",
    line: "#3a424c",
    notice: "#2c2410",
    edge: "#e3b341",
    gift: "#5bc980",
    refusal: "#ff8f85",
  },
} as const;

const [lightCard, lightPage] = GROUNDS.light;
const [darkCard, darkPage] = GROUNDS.dark;

const tones = (of: Record<string, string>): string =>
  Object.entries(of)
    .map(([name, colour]) => `--${name}:${colour}`)
    .join(";");

/** The colours of a page as variables of its style, in both schemes. */
export const rootColours = ({ light, dark }: SchemeColours): string =>
  `:root{color-scheme:light dark;${tones({ ...TONES.light, card: `${lightCard}`, page: `${lightPage}`, accent: light })}}
@media(prefers-color-scheme:dark){:root{${tones({ ...TONES.dark, card: `${darkCard}`, page: `${darkPage}`, accent: dark })}}}`;

export const CONTRAST_MIN = 4.5;

/** The contrast ratio, from 1 for the same colour to 21 for black on white. */
export function contrast(one: string, other: string): number {
  const [darker = 0, lighter = 0] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (lighter + 0.05) / (darker + 0.05);
}

/** Whether text of this colour can be read on all grounds of the scheme. */
export const isReadable = (colour: string, scheme: keyof SchemeColours): boolean =>
  GROUNDS[scheme].every((ground) => contrast(colour, ground) >= CONTRAST_MIN);

function luminance(colour: string): number {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((at) => {
    const part = Number.parseInt(colour.slice(at, at + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}
