/** Closes a run with one plain line that any machine can read. */
export default class TotalReporter {
  onRunComplete(_contexts, { numPassedTests, numFailedTests, numFailedTestSuites, numPendingTests }) {
    const failed = Math.max(numFailedTests, numFailedTestSuites);
    const skipped = numPendingTests > 0 ? `, ${numPendingTests} skipped` : '';
    process.stdout.write(`${numPassedTests} passed, ${failed} failed${skipped}\n`);
  }
}
