/**
 * How many rounds a test of random input, or of a race, has: few in the suite, and with `npm run trials -- random` many times as many.
 * The first of them are the same ones.
 */
export const rounds = (few: number): number => few * Number(process.env.MANDATE_TEST_TIMES ?? 1);
