/**
 * The catalogue of all text on our pages, by key and language (PAGE-D-17): the keys are those of the English texts, and one
 * that another language lacks does not compile.
 */
import type { en } from "./texts-en.ts";

/** `zone` is the time zone of the reader, and `operator` the one in whose name a page is, where known; no language has them. */
export type Texts = typeof en & { zone?: string; operator?: string };
